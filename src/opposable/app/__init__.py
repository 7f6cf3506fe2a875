"""The composition root: opens model, tools and data, and closes them."""

from opposable.app.agents import DEFAULT_INSTRUCTIONS, open_agent, open_chat_agent
from opposable.app.ask import (
    SQL_AGENT_OPTIONS,
    TeamPool,
    answer_from_run,
    answer_to_json,
    build_sql_agent_instructions,
    create_ask_data_tool,
    draft_semantics,
    lint_semantics,
    open_data_agent,
    open_data_team,
)
from opposable.app.inputs import create_limits, validate_task
from opposable.app.models import (
    check_model,
    list_model_kinds,
    models_directory,
    open_model,
    open_unwrapped_model,
    pull_embedded,
    select_best_mode,
)
from opposable.app.tools import create_builtin_library, open_tools, require_tool, select_tools

__all__ = [
    "DEFAULT_INSTRUCTIONS",
    "SQL_AGENT_OPTIONS",
    "TeamPool",
    "answer_from_run",
    "answer_to_json",
    "build_sql_agent_instructions",
    "check_model",
    "create_ask_data_tool",
    "create_builtin_library",
    "create_limits",
    "draft_semantics",
    "lint_semantics",
    "list_model_kinds",
    "models_directory",
    "open_agent",
    "open_chat_agent",
    "open_data_agent",
    "open_data_team",
    "open_model",
    "open_tools",
    "open_unwrapped_model",
    "pull_embedded",
    "require_tool",
    "select_best_mode",
    "select_tools",
    "validate_task",
]

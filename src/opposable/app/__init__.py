"""The composition root: opens model, tools and data, and closes them."""

from opposable.app.agents import INSTRUCTIONS, agent, chat_agent
from opposable.app.ask import (
    ASK_THE_DATABASE,
    Teams,
    answer,
    answer_as_json,
    ask_data,
    asking,
    data_agent,
    data_team,
    draft_semantics,
    lint_semantics,
)
from opposable.app.inputs import limits, task
from opposable.app.models import (
    best_way,
    check_model,
    model_kinds,
    models_directory,
    pull_embedded,
    ready_model,
    ready_raw,
)
from opposable.app.tools import chosen, found, ready_tools, tools

__all__ = [
    "ASK_THE_DATABASE",
    "INSTRUCTIONS",
    "Teams",
    "agent",
    "answer",
    "answer_as_json",
    "ask_data",
    "asking",
    "best_way",
    "chat_agent",
    "check_model",
    "chosen",
    "data_agent",
    "data_team",
    "draft_semantics",
    "found",
    "limits",
    "lint_semantics",
    "model_kinds",
    "models_directory",
    "pull_embedded",
    "ready_model",
    "ready_raw",
    "ready_tools",
    "task",
    "tools",
]

"""Rewrite the module paths of built-in function tools that earlier versions stored."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

NEW_PACKAGE = "opposable.builtin_tools"
NEW_MODULES = {
    "opposable.tools.builtin.api_caller": f"{NEW_PACKAGE}.api_caller",
    "opposable.tools.builtin.browser_navigator": f"{NEW_PACKAGE}.browser.browser_navigator",
    "opposable.tools.builtin.calculator": f"{NEW_PACKAGE}.calculator.calculator",
    "opposable.tools.builtin.clock": f"{NEW_PACKAGE}.clock",
    "opposable.tools.builtin.data_analyzer": f"{NEW_PACKAGE}.data_files.data_analyzer",
    "opposable.tools.builtin.echo": f"{NEW_PACKAGE}.echo",
    "opposable.tools.builtin.file_processor": f"{NEW_PACKAGE}.data_files.file_processor",
    "opposable.tools.builtin.file_search": f"{NEW_PACKAGE}.file_search",
    "opposable.tools.builtin.log_transform": f"{NEW_PACKAGE}.logs.log_transform",
    "opposable.tools.builtin.python_executor": f"{NEW_PACKAGE}.python.python_executor",
    "opposable.tools.builtin.web_scraper": f"{NEW_PACKAGE}.web_scraper",
}
"""Today's module of each tool module that a stored spec may name."""

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TOOLS = sa.table("tools", sa.column("id", sa.String), sa.column("tool_type", sa.String), sa.column("spec", JSON))


def upgrade() -> None:
    """Replace `module_path` in the specs of function tools. Other tools keep their rows."""
    connection = op.get_bind()
    rows = connection.execute(sa.select(TOOLS.c.id, TOOLS.c.spec).where(TOOLS.c.tool_type == "function")).all()
    for tool_id, spec in rows:
        new_module = NEW_MODULES.get(spec.get("module_path", ""))
        if new_module is not None:
            new_spec = {**spec, "module_path": new_module}
            connection.execute(sa.update(TOOLS).where(TOOLS.c.id == tool_id).values(spec=new_spec))

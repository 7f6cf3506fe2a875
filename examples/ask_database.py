"""A question to a database: the model receives the schema, and its read-only SQL is checked and repaired.

python examples/ask_database.py              with a scripted model
python examples/ask_database.py local        with the embedded model, or the name of another model
"""

import asyncio
import sys
from pathlib import Path

import orjson

from opposable import Agent, ForcedTool, Model, ModelOptions, RunFinished, ScriptedModel, ToolFinished
from opposable.app.tool_factory import create_sql_tools
from opposable.models.scripted import reply_with_calls, tool_call
from opposable.sql.factory import open_database

CHINOOK = Path(__file__).parent / "data" / "chinook.sqlite"
INSTRUCTIONS = "You answer questions about a {dialect} database. Call sql_execute with one SELECT.\n\n{schema}"


def make_scripted_model() -> ScriptedModel:
    """Return a model that tries to write, then uses unknown names, then corrects them and answers."""
    unknown_column = "SELECT Land, count(*) AS n FROM Customer GROUP BY Land ORDER BY n DESC LIMIT 1"
    similar_table = "SELECT Country, count(*) AS n FROM Customers GROUP BY Country ORDER BY n DESC LIMIT 1"
    correct = similar_table.replace("Customers", "Customer")
    return ScriptedModel(
        reply_with_calls(tool_call("sql_execute", '{"sql": "DELETE FROM Customer"}')),
        reply_with_calls(tool_call("sql_execute", orjson.dumps({"sql": unknown_column}).decode())),
        reply_with_calls(tool_call("sql_execute", orjson.dumps({"sql": similar_table}).decode())),
        reply_with_calls(tool_call("sql_execute", orjson.dumps({"sql": correct}).decode())),
        "Most customers live in the USA: 13.",
    )


async def main(model: Model | str) -> None:
    """Ask, and print the result of each query."""
    database = await open_database(str(CHINOOK))
    schema = (await database.get_schema()).to_ddl()
    async with Agent(
        model,
        create_sql_tools(database),
        instructions=INSTRUCTIONS.format(dialect=database.dialect, schema=schema),
        options=ModelOptions(tool_choice=ForcedTool("sql_execute")),
    ) as agent:
        async for event in agent.stream("Which country has the most customers?"):
            if isinstance(event, ToolFinished) and event.result.failure:
                print(f"{event.result.failure}: {event.result.content}")
            elif isinstance(event, ToolFinished):
                print(f"rows {event.result.data['rows']}")
            elif isinstance(event, RunFinished):
                print(event.text)
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else make_scripted_model()))

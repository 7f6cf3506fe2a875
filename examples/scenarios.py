"""Four tasks for an agent: one tool, two steps, a choice of tools, and a failure to report.

python examples/scenarios.py              with a scripted model
python examples/scenarios.py local        with the embedded model, or the name of another model
"""

import asyncio
import sys
from pathlib import Path

from opposable import Agent, Model, ScriptedModel
from opposable.app.tool_factory import create_builtin_tools
from opposable.models.scripted import reply_with_calls, tool_call

FILES = Path(__file__).parent / "data" / "files"

TASKS = (
    "echo hello",
    "搜索包含 'calculator' 的文件，然后计算 [1,2,3,4,5] 的平均值",
    "帮我分析一下 logs/app.log",
    "Search the folder nowhere for the word refund.",
)


def make_scripted_model() -> ScriptedModel:
    """Return a model that solves the tasks."""
    return ScriptedModel(
        reply_with_calls(tool_call("echo", '{"text": "hello"}')),
        "hello",
        reply_with_calls(tool_call("file_search", '{"query": "calculator"}')),
        reply_with_calls(tool_call("calculator", '{"numbers": [1, 2, 3, 4, 5], "operation": "mean"}')),
        "docs/calculator.md 等文件包含 calculator；平均值是 3。",
        reply_with_calls(tool_call("log_transform", '{"path": "logs/app.log"}')),
        "日志共 305 行，其中 ERROR 20 条。",
        reply_with_calls(tool_call("file_search", '{"query": "refund", "root_dir": "nowhere"}')),
        "There is no folder called nowhere, so nothing could be searched.",
    )


async def main(model: Model | str) -> None:
    """Run the tasks in order."""
    async with Agent(model, create_builtin_tools([FILES])) as agent:
        for task in TASKS:
            run_finished = await agent.run(task)
            print(f"task    {task}")
            for message in run_finished.messages:
                for call in message.tool_calls:
                    print(f"call    {call.name}{call.arguments_json}")
                if message.role == "tool":
                    print(f"result  {message.content[:100]}")
            print(f"answer  {run_finished.text}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else make_scripted_model()))

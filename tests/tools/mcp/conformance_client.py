"""Our client as the conformance suites start it: `python conformance_client.py URL`, the scenario in the environment."""

import asyncio
import json
import os
import sys

from opposable.domain.specs import McpServerSpec
from opposable.tools.library import ToolLibrary
from opposable.tools.mcp.remote_server import McpServer

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")


def arguments_for(schema: dict) -> dict:
    """Arguments that fit a schema of the suites' tools."""
    samples = {"integer": 5, "number": 5, "boolean": True, "string": "text", "array": [], "object": {}}
    required = schema.get("required", list(schema.get("properties", {})))
    return {name: samples.get(schema["properties"][name].get("type", "string"), "text") for name in required}


def calls(server: McpServer) -> list[tuple[str, dict]]:
    """The calls a scenario asks for by name, or one of every tool."""
    asked = CONTEXT.get("toolCalls")
    if asked:
        return [(f"{server.spec.tool_id}.{one['name']}", one.get("arguments", {})) for one in asked]
    return [(tool.definition.name, arguments_for(tool.definition.parameters)) for tool in server.tools]


async def main() -> None:
    async with McpServer(McpServerSpec(tool_id="suite", url=sys.argv[1], timeout=20)) as server:
        library = ToolLibrary(server.tools)
        for name, arguments in calls(server):
            print(name, await library.call(name, arguments))
        print(server.health)


asyncio.run(main())

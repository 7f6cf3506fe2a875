"""Removes malformed tools from a server's list; the SDK would reject the whole list for one of them."""

from typing import Any

from opposable.domain.validation_problems import list_problems


class ToolListFilter:
    """Filters the results of a server.

    `protocol_version` is set once it is negotiated. `dropped` holds the names of the tools that were removed, each
    with the reason.
    """

    def __init__(self) -> None:
        self.protocol_version = ""
        self.dropped: dict[str, str] = {}

    def drop_malformed(self, result: dict[str, Any]) -> None:
        """Remove malformed tools from a result, if it is a list of tools."""
        tools = result.get("tools")
        if not self.protocol_version or not isinstance(tools, list):
            return
        result["tools"] = [tool for number, tool in enumerate(tools) if self._is_valid(result, tool, number)]

    def _is_valid(self, result: dict[str, Any], tool: Any, number: int) -> bool:
        from mcp.shared.inbound import find_invalid_x_mcp_header
        from mcp_types.methods import validate_server_result
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS
        from pydantic import ValidationError

        name = str(tool.get("name", "")) if isinstance(tool, dict) else ""
        try:
            validate_server_result("tools/list", self.protocol_version, {**result, "tools": [tool]})
        except ValidationError as error:
            problems = [item for item in error.errors(include_url=False) if item["loc"][:1] == ("tools",)]
            if not problems:
                return True  # the problem is outside of the tool
            first = {**problems[0], "loc": problems[0]["loc"][2:]}
            [(path, description)] = list_problems([first])
            self.dropped[name or f"tool {number + 1}"] = ": ".join(filter(None, ("it is malformed", path, description)))
            return False
        if self.protocol_version in MODERN_PROTOCOL_VERSIONS and (
            problem := find_invalid_x_mcp_header(tool["inputSchema"])
        ):
            self.dropped[name] = f"its x-mcp-header is invalid: {problem}"
            return False
        return True

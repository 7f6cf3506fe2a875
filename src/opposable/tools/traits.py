"""What a tool declares about its calls: whether they change something, may be repeated, or return foreign text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opposable.tools.base import Tool

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import AnyToolSpec


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """The declarations about one tool; see the fields of `ToolSpec`."""

    read_only: bool = False
    idempotent: bool = False
    untrusted_output: bool = False


NO_TRAITS = ToolTraits()
"""Those of a tool that declares nothing."""


def get_traits(tool: Tool, spec: "AnyToolSpec | None") -> ToolTraits:
    """Return what is declared about a tool. Its spec comes before the tool's own declaration.

    A tool declares in its own spec (a decorated function), in the hints of its MCP server, or by its HTTP method.
    Nothing is inferred from names.
    """
    own_spec = getattr(tool, "spec", None)
    if spec is None:
        spec = own_spec
    if spec is None:
        return NO_TRAITS
    hints: Mapping[str, Any] = getattr(tool, "hints", {})
    endpoint = getattr(spec, "endpoint", None)
    is_query = endpoint is not None and endpoint.method in ("GET", "HEAD")
    read_only = _first(spec.read_only, getattr(own_spec, "read_only", None), hints.get("read_only_hint"), is_query)
    own_idempotent = getattr(own_spec, "idempotent", None)
    idempotent = _first(spec.idempotent, own_idempotent, hints.get("idempotent_hint")) or read_only
    is_foreign = spec.tool_type == "mcp_server"
    untrusted = _first(spec.untrusted_output, getattr(own_spec, "untrusted_output", None), is_foreign)
    return ToolTraits(read_only, idempotent, untrusted)


def _first(*declarations: bool | None) -> bool:
    return next((declared for declared in declarations if declared is not None), False)

"""Messages of `FieldProblem`: what is wrong with one argument, in English and Chinese."""

from collections.abc import Sequence
from typing import Literal

from opposable.domain.localized_text import LocalizedText

JsonType = Literal["integer", "number", "string", "boolean", "array", "object"]
Comparison = Literal["minimum", "exclusive minimum", "maximum", "exclusive maximum"]

_TYPES: dict[JsonType, tuple[str, str]] = {
    "integer": ("a valid integer", "必须是整数"),
    "number": ("a valid number", "必须是数字"),
    "string": ("a valid string", "必须是字符串"),
    "boolean": ("a valid boolean", "必须是布尔值（true 或 false）"),
    "array": ("a valid list", "必须是数组"),
    "object": ("a valid dictionary", "必须是对象"),
}
_COMPARISONS: dict[Comparison, tuple[str, str]] = {
    "minimum": ("greater than or equal to", "大于或等于"),
    "exclusive minimum": ("greater than", "大于"),
    "maximum": ("less than or equal to", "小于或等于"),
    "exclusive maximum": ("less than", "小于"),
}


def is_required() -> LocalizedText:
    """Return the message for a missing argument."""
    return LocalizedText("is required", "字段是必需的")


def unknown_parameter(parameter_names: Sequence[str]) -> LocalizedText:
    """Return the message for an argument that the tool does not take."""
    if not parameter_names:
        return LocalizedText("it takes no parameters", "该工具不需要参数")
    names = ", ".join(parameter_names)
    return LocalizedText(
        f"there is no such parameter; the parameters are {names}", f"没有这个参数，可用的参数是 {names}"
    )


def must_be_type(json_type: JsonType) -> LocalizedText:
    """Return the message for a value of another JSON type."""
    english, chinese = _TYPES[json_type]
    return LocalizedText(f"must be {english}", chinese)


def must_compare(comparison: Comparison, bound: str) -> LocalizedText:
    """Return the message for a number outside its bounds."""
    english, chinese = _COMPARISONS[comparison]
    return LocalizedText(f"must be {english} {bound}", f"必须{chinese} {bound}")


def must_be(requirement: str) -> LocalizedText:
    """Return the message for a value that has to be something else, such as "1 to 1000"."""
    return LocalizedText(f"must be {requirement}", f"必须是 {requirement}")

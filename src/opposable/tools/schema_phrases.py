"""Phrases for what a JSON Schema allows, in English and Chinese."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opposable.domain.json_pointer import resolve_pointer
from opposable.domain.json_text import preview_json
from opposable.domain.localized_text import LocalizedText, join_localized

MAX_DESCRIBED_FIELDS = 12
MAX_DEPTH = 8
"""Nested references and alternatives that are followed."""

_TYPES = {
    "integer": ("a valid integer", "整数"),
    "number": ("a valid number", "数字"),
    "string": ("a valid string", "字符串"),
    "boolean": ("a valid boolean", "布尔值（true 或 false）"),
    "array": ("a valid list", "数组"),
    "object": ("a valid dictionary", "对象"),
}
_FORMATS = {
    "date": ("a date such as 2026-01-31", "日期，例如 2026-01-31"),
    "date-time": ("a date and time such as 2026-01-31T12:00:00Z", "日期和时间，例如 2026-01-31T12:00:00Z"),
    "time": ("a time such as 12:30:00", "时间，例如 12:30:00"),
    "duration": ("a duration such as PT1H30M", "时长，例如 PT1H30M"),
    "uuid": ("a UUID", "UUID"),
    "uri": ("a URL such as https://example.org/", "网址，例如 https://example.org/"),
}
_ITEM_TYPES = {"integer": "integers", "number": "numbers", "string": "strings", "boolean": "booleans"}
_LIMITS = {
    "minimum": ("must be greater than or equal to {}", "必须大于或等于 {}"),
    "exclusiveMinimum": ("must be greater than {}", "必须大于 {}"),
    "maximum": ("must be less than or equal to {}", "必须小于或等于 {}"),
    "exclusiveMaximum": ("must be less than {}", "必须小于 {}"),
    "minLength": ("must have at least {} characters", "至少要有 {} 个字符"),
    "maxLength": ("must have at most {} characters", "最多只能有 {} 个字符"),
    "minItems": ("must have at least {} items", "至少要有 {} 个元素"),
    "maxItems": ("must have at most {} items", "最多只能有 {} 个元素"),
    "minProperties": ("must have at least {} fields", "至少要有 {} 个字段"),
    "maxProperties": ("must have at most {} fields", "最多只能有 {} 个字段"),
    "pattern": ("must match the pattern {}", "必须匹配模式 {}"),
    "multipleOf": ("must be a multiple of {}", "必须是 {} 的倍数"),
}
LIMIT_KEYWORDS = frozenset(_LIMITS)


def join_path(*steps: Any) -> str:
    """Return a dotted path in the arguments."""
    return ".".join(map(str, steps))


def must_respect(keyword: str, limit: object) -> LocalizedText:
    """Return the message for a value outside the limit of a keyword, which is one of `LIMIT_KEYWORDS`."""
    english, chinese = _LIMITS[keyword]
    return LocalizedText((english.removesuffix("s") if limit == 1 else english).format(limit), chinese.format(limit))


def must_be_type(name: str) -> LocalizedText:
    """Return the message for a value of another type than that of JSON Schema with this name."""
    english, chinese = _TYPES[name]
    return LocalizedText(f"must be {english}", f"必须是{chinese}")


def must_have_one(names: Sequence[str]) -> LocalizedText:
    """Return the message for an object that has none of the fields of which one is required."""
    phrase = join_options(names)
    return LocalizedText(f"must have {phrase}", f"必须有 {phrase.chinese}")


def unknown_field() -> LocalizedText:
    """Return the message for a field that an object does not have."""
    return LocalizedText("there is no such parameter; take it out", "没有这个参数，请去掉")


def join_options(phrases: Iterable[str]) -> LocalizedText:
    """Return a phrase for one of several options, each named once."""
    return join_localized({str(phrase): phrase for phrase in phrases}.values(), " or ", " 或 ")


def describe_types(names: Iterable[str]) -> LocalizedText:
    """Return a phrase for the types of JSON Schema with these names."""
    return join_options(LocalizedText(*_TYPES.get(name, (name, name))) for name in names)


def resolve_references(node: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a chain of local references leads to; {} for one that does not exist."""
    for _ in range(MAX_DEPTH):
        if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
            break
        try:
            node = resolve_pointer(root, node["$ref"])
        except LookupError:
            return {}
    return node if isinstance(node, Mapping) else {}


def get_alternatives(node: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of a schema that allow more than null."""
    options = [resolve_references(option, root) for option in (*node.get("anyOf", ()), *node.get("oneOf", ()))]
    return [option for option in options if option.get("type") != "null"]


def get_choices(node: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema lists."""
    return [*node.get("enum", ()), *([node["const"]] if "const" in node else ())]


def choose_branch(branches: Sequence[Sequence[tuple[int, str]]]) -> int | None:
    """Return the index of the branch of a union that is meant, None if the value has the type of none of several.

    That is the branch whose constants the value has, else the one with the fewest errors. An error has its depth below
    the value, and says of what is there that it has another "type", is no "choice", or something else: "".
    """
    if len(branches) > 1 and all(depth == 0 and kind for errors in branches for depth, kind in errors):
        return None
    ranks = [
        (any(depth == 0 and kind for depth, kind in errors), errors.count((1, "choice")), len(errors))
        for errors in branches
    ]
    return ranks.index(min(ranks))


def describe_schema(node: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> LocalizedText | None:
    """Return a phrase for the values of a schema, None if it says nothing of them.

    Null is left out: `a list of objects with sku (string), quantity (integer, optional)`.
    """
    node = resolve_references(node, root)
    if choices := get_choices(node):
        return join_options(map(preview_json, choices))
    types = _get_types(node)
    if types == ["array"]:
        return _describe_list(node, root, depth)
    if types == ["object"] and node.get("properties"):
        fields = _describe_fields(node, root)
        return LocalizedText(f"an object with {fields}", f"对象，包含 {fields.chinese}")
    if types == ["string"] and node.get("format") in _FORMATS:
        return LocalizedText(*_FORMATS[node["format"]])
    if types or depth > MAX_DEPTH:
        return describe_types(types) if types else None
    phrases = [describe_schema(alternative, root, depth + 1) for alternative in get_alternatives(node, root)]
    return join_options(phrase for phrase in phrases if phrase) if phrases and all(phrases) else None


def _describe_list(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> LocalizedText:
    item = resolve_references(node.get("items"), root)
    phrase = describe_schema(item, root, depth + 1) if depth <= MAX_DEPTH and not get_choices(item) else None
    types = _get_types(item)
    if phrase is None or len(types) != 1 or (types == ["object"] and not item.get("properties")):
        return describe_types(["array"])
    if types[0] in _ITEM_TYPES and "format" not in item:
        return LocalizedText(f"a list of {_ITEM_TYPES[types[0]]}", f"数组，元素为{phrase.chinese}")
    if types == ["object"]:
        return LocalizedText(f"a list of objects{phrase.removeprefix('an object')}", f"数组，元素为{phrase.chinese}")
    return LocalizedText(f"a list; each item is {phrase}", f"数组，元素为{phrase.chinese}")


def _describe_fields(node: Mapping[str, Any], root: Mapping[str, Any]) -> LocalizedText:
    required = node.get("required", ())
    fields = []
    for name, field in [*node["properties"].items()][:MAX_DESCRIBED_FIELDS]:
        kind = _name_type(field, root)
        optional = LocalizedText("", "") if name in required else LocalizedText(", optional", "，可选")
        fields.append(LocalizedText(f"{name} ({kind}{optional})", f"{name}（{kind.chinese}{optional.chinese}）"))
    if len(node["properties"]) > MAX_DESCRIBED_FIELDS:
        fields.append(LocalizedText("…", "…"))
    return join_localized(fields, ", ", "、")


def _name_type(node: Any, root: Mapping[str, Any]) -> LocalizedText:
    """Return the types or choices of a field, in a few words."""
    node = resolve_references(node, root)
    if choices := get_choices(node):
        return join_options(preview_json(choice, 40) for choice in choices[:5])
    names = [name for option in (node, *get_alternatives(node, root)) for name in _get_types(option)]
    if not names:
        return LocalizedText("any value", "任意值")
    return join_options(
        LocalizedText("list" if name == "array" else name, _TYPES.get(name, ("", name))[1].partition("（")[0])
        for name in names
    )


def _get_types(node: Mapping[str, Any]) -> list[str]:
    """Return the declared types of a schema without null."""
    declared = node.get("type", ())
    return [name for name in ([declared] if isinstance(declared, str) else declared) if name != "null"]

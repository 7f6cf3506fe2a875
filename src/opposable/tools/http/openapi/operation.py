"""Converts the parameters and the body of an operation to the parameters of a tool."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from opposable.domain.specs import ParameterLocation, ParameterPlacement, ParameterStyle
from opposable.domain.text_normalization import shorten_text
from opposable.domain.tools import MAX_PARAMETER_DESCRIPTION_CHARACTERS
from opposable.safety.network.request_headers import is_settable_header, is_token
from opposable.tools.http.openapi.document import OpenApiDocument, get_map, to_short_text
from opposable.tools.http.openapi.schemas import SchemaConverter, get_examples
from opposable.tools.http.request_body import FILE_SCHEMA

_STYLES = {
    "path": ("simple",),
    "header": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "cookie": ("form",),
}
_IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})
_BINARY_TYPES = frozenset({"application/octet-stream", "application/pdf", "application/zip", "application/gzip"})
_FLAT_KEYWORDS = frozenset(
    (
        *("type", "description", "default", "format", "properties", "required", "propertyNames", "maxProperties"),
        *("additionalProperties", "unevaluatedProperties", "nullable"),
    )
)
"""The keywords of a plain object. With any other one, the object is more than its fields."""
_DESCRIPTION_KEYWORDS = ("description", "example", "examples")
_COMPOSITION_KEYWORDS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_BODY_TYPES = {"application/x-www-form-urlencoded": "form", "multipart/form-data": "multipart"}


class OperationInputs:
    """The parameters of a tool that is created from an operation, collected step by step."""

    def __init__(self, document: OpenApiDocument, location: str, *, extensions: bool = True) -> None:
        self._document = document
        self._location = location
        self.schemas = SchemaConverter(document, location, extensions=extensions)
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.places: dict[str, ParameterPlacement] = {}
        self.body: dict[str, Any] = {}

    def skip(self, reason: str) -> None:
        """Report that a part of the operation cannot be used."""
        self._document.skipped_parts.append((self._location, reason))

    def add_parameter(self, name: str, schema: dict[str, Any], place: ParameterPlacement, *, required: bool) -> str:
        """Add a parameter, prefixed with its place if the name is taken. Return its name."""
        free_name = name
        while free_name in self.properties:
            free_name = f"{place.place}_{free_name}"
        self.properties[free_name] = schema
        if required:
            self.required.append(free_name)
        is_renamed = free_name != name
        self.places[free_name] = place.model_copy(update={"name": place.name or name}) if is_renamed else place
        return free_name

    def add_parameters(self, nodes: Iterable[Any]) -> None:
        """Add an operation's parameters. Unsupported ones are skipped. Raises: `LookupError` if one is required."""
        for node in nodes:
            parameter = self._document.resolve_node(node)
            name, place = parameter.get("name"), parameter.get("in")
            if not isinstance(name, str) or not name:
                raise LookupError(f"has a parameter named {to_short_text(name)!r}; a name is a text that is not empty")
            if place not in _STYLES:
                raise LookupError(f"has a parameter in {to_short_text(place)!r}, which is not supported")
            if place == "header" and (
                name.lower() in _IGNORED_HEADERS or (is_token(name) and not is_settable_header(name))
            ):
                continue  # OpenAPI ignores the first ones; the client sets those that frame the request
            required = parameter.get("required") is True or place == "path"
            try:
                placement, schema = _place_parameter(parameter, str(place), self.schemas)
            except LookupError as error:
                if required:
                    raise
                self.skip(f"parameter {name}: {error}")
                continue
            if parameter.get("allowReserved") is True:
                self.skip(f"parameter {name}: reserved characters are percent-encoded all the same")
            self.add_parameter(name, self._add_description(parameter, schema), placement, required=required)

    def add_body(self, node: Any) -> None:
        """Add a request body. The fields of an object become parameters; anything else is one parameter, `body`.

        Raises:
            LookupError: The body is required, and no media type of it is supported.
        """
        request = self._document.resolve_node(node)
        content = request.get("content")
        required = request.get("required") is True
        if not isinstance(content, Mapping) or not content:
            return
        chosen = _choose_media_type(content)
        if chosen is None:
            reason = f"its body is {', '.join(list(content)[:5])}, none of which is supported"
            if required:
                raise LookupError(reason)
            self.skip(f"{reason}; it is sent without one")
            return
        media_type, body_type = chosen
        media = self._document.resolve_node(content[media_type])
        self.body = {"body_type": body_type, "body_required": required and body_type in ("json", "form", "multipart")}
        if body_type in ("json", "text") and media_type not in ("application/json", "text/plain", "*/*"):
            self.body["content_type"] = media_type
        schema = self.schemas.convert(media.get("schema", {}), convert_files=body_type in ("multipart", "binary"))
        is_flat = body_type not in ("text", "binary") and _is_flat_object(schema, body_type, required=required)
        encoding = get_map(media, "encoding") if body_type in ("form", "multipart") else {}
        if encoding and not (is_flat and body_type == "form"):
            self.skip("the encoding of single fields of its body is not followed")
        description = {"description": schema["description"]} if "description" in schema else {}
        if body_type == "text" and schema.get("type") in ("object", "array"):
            schema = {"type": "string", **description}
        if body_type == "binary":
            schema = {**FILE_SCHEMA, **description}
            self.body["content_type"] = "" if "*" in media_type else media_type
        if is_flat:
            examples = get_examples(media) or get_examples(self._document.resolve_node(media.get("schema", {})))
            self._add_body_fields(schema, body_type, encoding, examples)
            return
        if body_type == "multipart":
            raise LookupError("its multipart body is not a plain object of fields")
        texts = {key: source[key] for source in (request, media) for key in _DESCRIPTION_KEYWORDS if key in source}
        schema, place = self._add_description(texts, schema), ParameterPlacement(place="body")
        self.body["body_param"] = self.add_parameter("body", schema, place, required=required)
        self.body["body_required"] = False

    def _add_description(self, node: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema with the description and the examples of its parameter or body before its own."""
        text = self.schemas.convert({key: node[key] for key in _DESCRIPTION_KEYWORDS if key in node})
        own_text = schema.get("description", "")
        if not text or text["description"] in own_text:
            return schema
        texts = [text["description"], *([own_text] if own_text not in text["description"] else [])]
        return {**schema, "description": shorten_text("\n".join(texts), MAX_PARAMETER_DESCRIPTION_CHARACTERS)}

    def _add_body_fields(
        self, schema: dict[str, Any], body_type: str, encoding: Mapping[str, Any], examples: list[Any]
    ) -> None:
        """Add each field of an object as a parameter, with its style in a form and its values in the examples."""
        for name, own_schema in schema["properties"].items():
            values = [example[name] for example in examples if isinstance(example, dict) and name in example]
            has_example = "Example: " in own_schema.get("description", "")
            field_schema = own_schema if has_example else self._add_description({"examples": values}, own_schema)
            placement = ParameterPlacement(place="body")
            rules = encoding.get(name)
            if isinstance(rules, Mapping) and body_type == "form" and not {"style", "explode"}.isdisjoint(rules):
                style = rules.get("style", "form")
                if style in _STYLES["query"]:
                    placement = ParameterPlacement(place="body", style=style, explode=rules.get("explode"))
            self.add_parameter(name, field_schema, placement, required=name in schema.get("required", ()))
            if body_type == "multipart" and _has_file(field_schema):
                self.body["files"] = (*self.body.get("files", ()), name)


def _place_parameter(
    parameter: Mapping[str, Any], place: str, schemas: SchemaConverter
) -> tuple[ParameterPlacement, dict[str, Any]]:
    """Return the placement and the schema of a parameter. Raises: `LookupError` if it is not supported."""
    location = cast("ParameterLocation", place)
    content = parameter.get("content")
    if isinstance(content, Mapping) and content:
        media_type, media = next(iter(content.items()))
        if "json" not in media_type:
            raise LookupError(f"content of type {media_type} is not supported")
        return ParameterPlacement(place=location, style="json"), schemas.convert(media.get("schema", {}))
    style = parameter.get("style") or _STYLES[place][0]
    if style not in _STYLES[place]:
        raise LookupError(f"style {to_short_text(style)} is not supported in a {place}")
    schema = schemas.convert(parameter.get("schema", {}))
    explode = parameter.get("explode")
    is_default = style == "deepObject" or not isinstance(explode, bool) or explode == (style == "form")
    placement = ParameterPlacement(
        place=location,
        style=cast("ParameterStyle", "" if style == _STYLES[place][0] else style),
        explode=None if is_default else explode,
    )
    return placement, schema


def _choose_media_type(content: Mapping[str, Any]) -> tuple[str, str] | None:
    """Choose the media type to send, JSON first. Return it with its body type."""
    kinds = {media: media.partition(";")[0].strip().lower() for media in content}
    for media, kind in kinds.items():
        if kind == "application/json" or kind.endswith("+json") or kind == "*/*":
            return media, "json"
    for media, kind in kinds.items():
        if kind in _BODY_TYPES:
            return media, _BODY_TYPES[kind]
    for media, kind in kinds.items():
        schema = get_map(get_map(content, media), "schema")
        if kind in _BINARY_TYPES or kind.startswith(("image/", "audio/", "video/")) or schema.get("format") == "binary":
            return media, "binary"
        if kind.startswith("text/") or schema.get("type") == "string":
            return media, "text"
    return None


def _is_flat_object(schema: Mapping[str, Any], body_type: str, *, required: bool) -> bool:
    """Return whether a body is a plain object whose fields can be parameters of the tool.

    A multipart body cannot be sent otherwise, so its rules for further fields are left out. A body that may be null
    is an object of fields as well: null cannot be sent.
    """
    is_object = schema.get("type", "object") in ("object", ["object", "null"], ["null", "object"])
    if not is_object or not schema.get("properties") or (schema.get("required") and not required):
        return False
    if body_type == "multipart":
        return _COMPOSITION_KEYWORDS.isdisjoint(schema)
    is_open = schema.get("additionalProperties") or schema.get("unevaluatedProperties")
    return not is_open and _FLAT_KEYWORDS.issuperset(schema)


def _has_file(schema: Mapping[str, Any]) -> bool:
    inner = schema.get("items", schema)
    return isinstance(inner, Mapping) and "base64" in inner.get("properties", {}) and "filename" in inner["properties"]

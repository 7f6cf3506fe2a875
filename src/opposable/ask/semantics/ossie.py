"""Parser of Apache Ossie core files.

Filters, exclusions, default filters and a model's time are in a custom extension.
"""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from opposable.ask.semantics.expressions import parse_expression
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.semantics.short_form import parse_short_form
from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath, validate_yaml
from opposable.domain.errors import BadInput

VENDOR_NAME = "OPPOSABLE"
"""The `vendor_name` of the extension whose JSON `data` holds filters, exclusions, default_filters and time."""

_EXTENSION_KEYS = ("filters", "exclusions", "default_filters", "time")
_MODEL_PATH: YamlPath = ("semantic_model", 0)
_TIME_TYPES = ("Date", "DateTime", "DateTimeTz")


class _OssieBase(BaseModel):
    """Base of the Ossie schema; unknown fields are ignored, because the schema grows."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _DialectExpression(_OssieBase):
    dialect: str
    expression: str


class _OssieExpression(_OssieBase):
    dialects: tuple[_DialectExpression, ...]


class _CustomExtension(_OssieBase):
    vendor_name: str
    data: str


class _DimensionRole(_OssieBase):
    is_time: bool | None = None


class _OssieItem(_OssieBase):
    name: str
    description: str = ""
    ai_context: str | dict[str, Any] = ""

    def describe(self, *other_names: str) -> dict[str, Any]:
        """Return the description and the other names of the item."""
        names = self.ai_context.get("synonyms", ()) if isinstance(self.ai_context, dict) else ()
        synonyms = [name for name in (*names, *other_names) if isinstance(name, str) and name]
        return {"description": self.description, "synonyms": tuple(synonyms)}


class _DatasetField(_OssieItem):
    expression: _OssieExpression
    dimension: _DimensionRole = _DimensionRole()
    datatype: str = ""
    label: str = ""

    @property
    def is_time(self) -> bool:
        """Whether the field dates rows, as declared or by its type."""
        return self.datatype in _TIME_TYPES if self.dimension.is_time is None else self.dimension.is_time


class _Dataset(_OssieItem):
    source: str
    primary_key: tuple[str, ...] = ()
    fields: tuple[_DatasetField, ...] = ()


class _Relationship(_OssieBase):
    many: str = Field(alias="from")
    to: str
    from_columns: tuple[str, ...] = Field(min_length=1)
    to_columns: tuple[str, ...]


class _OssieMetric(_OssieItem):
    expression: _OssieExpression


class _OssieModel(_OssieItem):
    datasets: tuple[_Dataset, ...]
    relationships: tuple[_Relationship, ...] = ()
    metrics: tuple[_OssieMetric, ...] = ()
    custom_extensions: tuple[_CustomExtension, ...] = ()


def parse_ossie(document: YamlDocument) -> SemanticModel:
    """Parse the first semantic model of an Ossie core file by writing it in the short form.

    Expressions must have a form in ANSI SQL.

    Raises:
        BadInput: The document is invalid. The message has the file, the line and the remedy.
    """
    models = document.data["semantic_model"]
    if not isinstance(models, list) or not models:
        raise document.build_error(("semantic_model",), "must be a list with one semantic model.")
    raw = validate_yaml(_OssieModel, models[0], document, _MODEL_PATH)
    lines: dict[YamlPath, int] = {}
    data = {
        "name": raw.name,
        "description": raw.description,
        "tables": {dataset.name: _format_table(dataset) for dataset in raw.datasets},
        "joins": [
            _format_join(relationship, document, (*_MODEL_PATH, "relationships", index))
            for index, relationship in enumerate(raw.relationships)
        ],
        "dimensions": _format_dimensions(raw, document, lines),
        "metrics": _format_metrics(raw, document, lines),
        **_parse_extension(raw, document),
    }
    model = parse_short_form(YamlDocument(data, lines, document.file))
    others = len(models) - 1
    notes = (f"{others} more semantic models in the file are not read",) if others else ()
    return model.model_copy(update={"unsupported": notes})


def _format_table(dataset: _Dataset) -> dict[str, Any]:
    time = next((field.expression.dialects[0].expression for field in dataset.fields if field.is_time), "")
    return {"source": dataset.source, "key": dataset.primary_key, "time": time, **dataset.describe()}


def _format_join(relationship: _Relationship, document: YamlDocument, path: YamlPath) -> str:
    if len(relationship.from_columns) != len(relationship.to_columns):
        raise document.build_error(path, "needs as many from_columns as to_columns.")
    pairs = zip(relationship.from_columns, relationship.to_columns, strict=True)
    return " AND ".join(f'"{relationship.many}"."{a}" = "{relationship.to}"."{b}"' for a, b in pairs)


def _format_dimensions(raw: _OssieModel, document: YamlDocument, lines: dict[YamlPath, int]) -> dict[str, Any]:
    """Write a dimension for each field; a name that several datasets have is prefixed by its dataset."""
    names = [field.name for dataset in raw.datasets for field in dataset.fields]
    dimensions: dict[str, Any] = {}
    for i, dataset in enumerate(raw.datasets):
        for j, field in enumerate(dataset.fields):
            path = (*_MODEL_PATH, "datasets", i, "fields", j)
            ref = field.name if names.count(field.name) == 1 else f"{dataset.name}.{field.name}"
            lines["dimensions", ref] = document.get_line(path)
            expr = _get_ansi_sql(field.expression, document, path)
            dimensions[ref] = {"expr": expr, "table": dataset.name, **field.describe(field.label)}
    return dimensions


def _format_metrics(raw: _OssieModel, document: YamlDocument, lines: dict[YamlPath, int]) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for index, metric in enumerate(raw.metrics):
        path = (*_MODEL_PATH, "metrics", index)
        lines["metrics", metric.name] = document.get_line(path)
        sql = _get_ansi_sql(metric.expression, document, path)
        metrics[metric.name] = {"expr": _expand_computed_fields(sql, raw, document, path), **metric.describe()}
    return metrics


def _get_ansi_sql(expression: _OssieExpression, document: YamlDocument, path: YamlPath) -> str:
    """Return an expression in ANSI SQL."""
    for form in expression.dialects:
        if form.dialect == "ANSI_SQL":
            return form.expression
    dialects = ", ".join(form.dialect for form in expression.dialects) or "none"
    raise document.build_error((*path, "expression"), f"has no ANSI_SQL form (it has {dialects}): add one.")


def _expand_computed_fields(expr: str, raw: _OssieModel, document: YamlDocument, path: YamlPath) -> str:
    """Replace the computed fields in a metric's expression by their expressions."""
    from sqlglot import exp

    computed: dict[tuple[str, str], str] = {}
    for dataset in raw.datasets:
        for field in dataset.fields:
            sql = _get_ansi_sql(field.expression, document, path)
            if sql.strip().casefold() != field.name.casefold():
                computed[(dataset.name.casefold(), field.name.casefold())] = sql
    if not computed:
        return expr
    try:
        root = exp.Paren(this=parse_expression(expr, ""))
        for column in list(root.find_all(exp.Column)):
            sql = computed.get((column.table.casefold(), column.name.casefold()), "")
            if sql:
                field_tree = exp.paren(parse_expression(sql, ""))
                for inner_column in field_tree.find_all(exp.Column):
                    if not inner_column.table:
                        inner_column.set("table", column.args["table"].copy())
                column.replace(field_tree)
    except BadInput as error:
        raise document.build_error((*path, "expression"), str(error)) from error
    return str(root.this.sql())


def _parse_extension(raw: _OssieModel, document: YamlDocument) -> dict[str, Any]:
    """Parse the filters, exclusions, default filters and time of the custom extension."""
    for index, extension in enumerate(raw.custom_extensions):
        if extension.vendor_name.upper() != VENDOR_NAME:
            continue
        path = (*_MODEL_PATH, "custom_extensions", index, "data")
        try:
            data = json.loads(extension.data)
        except ValueError as error:
            raise document.build_error(path, f"is not valid JSON: {error}.") from error
        if not isinstance(data, dict) or set(data) - set(_EXTENSION_KEYS):
            raise document.build_error(path, f"must be a JSON object with {', '.join(_EXTENSION_KEYS)}.")
        return data
    return {}

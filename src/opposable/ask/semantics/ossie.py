"""Apache Ossie core files, written in the short form.

Filters, exclusions, default filters and a model's time are in a custom extension. Unknown fields are ignored, because
the schema grows.
"""

import json
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator

from opposable.ask.semantics.expressions import parse_expression
from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath, validate_yaml
from opposable.ask.sql_trees import exp
from opposable.domain.errors import BadInput

VENDOR_NAME = "OPPOSABLE"
"""The `vendor_name` of the extension whose JSON `data` holds filters, exclusions, default_filters and time."""

_MODEL_PATH: YamlPath = ("semantic_model", 0)
_TIME_TYPES = ("Date", "DateTime", "DateTimeTz")


class _DialectExpression(BaseModel):
    dialect: str
    expression: str


class _OssieExpression(BaseModel):
    dialects: tuple[_DialectExpression, ...]

    @property
    def sql(self) -> str:
        """The expression in ANSI SQL."""
        return next(form.expression for form in self.dialects if form.dialect == "ANSI_SQL")

    @model_validator(mode="after")
    def _require_ansi_sql(self) -> Self:
        dialects = [form.dialect for form in self.dialects]
        if "ANSI_SQL" not in dialects:
            raise ValueError(f"has no ANSI_SQL form (it has {', '.join(dialects) or 'none'}): add one")
        return self


class _CustomExtension(BaseModel):
    vendor_name: str
    data: str


class _DimensionRole(BaseModel):
    is_time: bool | None = None


class _OssieItem(BaseModel):
    name: str
    description: str = ""
    ai_context: str | dict[str, Any] = ""

    def describe(self, *other_names: str) -> dict[str, Any]:
        """Return the description and the other names of the item."""
        names = self.ai_context.get("synonyms") if isinstance(self.ai_context, dict) else ()
        synonyms = [name for name in (*(names or ()), *other_names) if isinstance(name, str) and name]
        return {"description": self.description, "synonyms": synonyms}


class _OssieMetric(_OssieItem):
    expression: _OssieExpression


class _DatasetField(_OssieMetric):
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


class _Relationship(BaseModel):
    many: str = Field(alias="from")
    to: str
    from_columns: tuple[str, ...] = Field(min_length=1)
    to_columns: tuple[str, ...]

    @model_validator(mode="after")
    def _require_pairs(self) -> Self:
        if len(self.from_columns) != len(self.to_columns):
            raise ValueError("needs as many from_columns as to_columns")
        return self


class _OssieModel(_OssieItem):
    datasets: tuple[_Dataset, ...]
    relationships: tuple[_Relationship, ...] = ()
    metrics: tuple[_OssieMetric, ...] = ()
    custom_extensions: tuple[_CustomExtension, ...] = ()


def convert_ossie(document: YamlDocument) -> YamlDocument:
    """Write the first semantic model of an Ossie core file in the short form.

    Expressions must have a form in ANSI SQL.

    Raises:
        BadInput: The document is invalid. The message has the file, the line and the remedy.
    """
    models = document.data["semantic_model"]
    if not isinstance(models, list) or not models:
        raise document.build_error(("semantic_model",), "must be a list with one semantic model.")
    raw = validate_yaml(_OssieModel, models[0], document, _MODEL_PATH)
    lines: dict[YamlPath, int] = {}
    data: dict[str, Any] = {
        "name": raw.name,
        "description": raw.description,
        "tables": {
            dataset.name: {
                "source": dataset.source,
                "key": dataset.primary_key,
                "time": next((field.expression.sql for field in dataset.fields if field.is_time), ""),
                **dataset.describe(),
            }
            for dataset in raw.datasets
        },
        "joins": [
            {"many": join.many, "one": join.to, "on": list(zip(join.from_columns, join.to_columns, strict=True))}
            for join in raw.relationships
        ],
        "dimensions": {},
        "metrics": {},
        **_parse_extension(raw, document),
    }
    names = [field.name for dataset in raw.datasets for field in dataset.fields]
    computed: dict[tuple[str, str], str] = {}
    for i, dataset in enumerate(raw.datasets):
        for j, field in enumerate(dataset.fields):
            ref = field.name if names.count(field.name) == 1 else f"{dataset.name}.{field.name}"
            sql = field.expression.sql
            data["dimensions"][ref] = {"expr": sql, "table": dataset.name, **field.describe(field.label)}
            lines["dimensions", ref] = document.get_line((*_MODEL_PATH, "datasets", i, "fields", j))
            if sql.strip().casefold() != field.name.casefold():
                computed[dataset.name.casefold(), field.name.casefold()] = sql
    for i, metric in enumerate(raw.metrics):
        path = (*_MODEL_PATH, "metrics", i)
        try:
            sql = _expand_computed_fields(metric.expression.sql, computed)
        except BadInput as error:
            raise document.build_error((*path, "expression"), str(error)) from error
        data["metrics"][metric.name] = {"expr": sql, **metric.describe()}
        lines["metrics", metric.name] = document.get_line(path)
    if others := len(models) - 1:
        data["unsupported"] = [f"{others} more semantic models in the file are not read"]
    return YamlDocument(data, lines, document.file)


def _expand_computed_fields(sql: str, computed: dict[tuple[str, str], str]) -> str:
    """Replace the computed fields in a metric's expression by their expressions."""

    def expand(node: Any) -> Any:
        field_sql = isinstance(node, exp.Column) and computed.get((node.table.casefold(), node.name.casefold()))
        if not field_sql:
            return node
        field_tree = exp.paren(parse_expression(field_sql, ""))
        for column in field_tree.find_all(exp.Column):
            if not column.table:
                column.set("table", node.args["table"].copy())
        return field_tree

    return str(parse_expression(sql, "").transform(expand).sql()) if computed else sql


def _parse_extension(raw: _OssieModel, document: YamlDocument) -> dict[str, Any]:
    """Parse the filters, exclusions, default filters and time of the custom extension."""
    names = [extension.vendor_name.upper() for extension in raw.custom_extensions]
    if VENDOR_NAME not in names:
        return {}
    index = names.index(VENDOR_NAME)
    try:
        return dict(json.loads(raw.custom_extensions[index].data))
    except (ValueError, TypeError) as error:
        path = (*_MODEL_PATH, "custom_extensions", index, "data")
        raise document.build_error(path, f"is not a JSON object: {error}.") from error

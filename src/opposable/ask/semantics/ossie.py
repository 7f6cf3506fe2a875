"""Parser of Apache Ossie core files.

Filters, exclusions, default filters and a model's time are in a custom extension.
"""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from opposable.ask.semantics.expressions import parse_expression
from opposable.ask.semantics.model import Dimension, Exclusion, Filter, Join, Metric, ModelTable, SemanticModel
from opposable.ask.semantics.short_form import parse_short_form
from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath
from opposable.ask.semantics.yaml_validation import validate_yaml
from opposable.domain.errors import BadInput

VENDOR_NAME = "OPPOSABLE"
"""The `vendor_name` of the extension whose JSON `data` holds filters, exclusions, default_filters and time."""

_EXTENSION_KEYS = ("filters", "exclusions", "default_filters", "time")

_MODEL_PATH: YamlPath = ("semantic_model", 0)


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
    custom_extensions: tuple[_CustomExtension, ...] = ()

    @property
    def synonyms(self) -> tuple[str, ...]:
        """Other names of the item."""
        synonyms = self.ai_context.get("synonyms", ()) if isinstance(self.ai_context, dict) else ()
        return tuple(text for text in synonyms if isinstance(text, str))


class _DatasetField(_OssieItem):
    expression: _OssieExpression
    dimension: _DimensionRole | None = None
    datatype: str = ""
    label: str = ""

    @property
    def is_time(self) -> bool:
        """Whether the field dates rows, as declared or by its type."""
        declared = self.dimension.is_time if self.dimension else None
        return self.datatype in ("Date", "DateTime", "DateTimeTz") if declared is None else declared


class _Dataset(_OssieItem):
    source: str
    primary_key: tuple[str, ...] = ()
    fields: tuple[_DatasetField, ...] = ()


class _Relationship(_OssieBase):
    name: str
    from_columns: tuple[str, ...]
    to_columns: tuple[str, ...]
    to: str


class _OssieMetric(_OssieItem):
    expression: _OssieExpression


class _OssieModel(_OssieItem):
    datasets: tuple[_Dataset, ...]
    relationships: tuple[dict[str, Any], ...] = ()
    metrics: tuple[_OssieMetric, ...] = ()


def parse_ossie(document: YamlDocument) -> SemanticModel:
    """Parse the first semantic model of an Ossie core file.

    Expressions must have a form in ANSI SQL.

    Raises:
        BadInput: The document is invalid. The message has the file, the line and the remedy.
    """
    models = document.data["semantic_model"]
    if not isinstance(models, list) or not models:
        raise document.build_error(("semantic_model",), "must be a list with one semantic model.")
    raw = validate_yaml(_OssieModel, models[0], document, _MODEL_PATH)
    lines: dict[str, int] = {}
    extension = _parse_extension(raw, document, _MODEL_PATH)
    dimensions = _build_dimensions(raw, document, lines)
    metrics = _build_metrics(raw, document, lines)
    duplicate_id = next((ref for ref in metrics if ref in dimensions), None)
    if duplicate_id:
        problem = f"the id {duplicate_id} is also the name of a field: rename one of them."
        raise document.build_error((*_MODEL_PATH, "metrics"), problem)
    joins = [
        _parse_relationship(item, document, (*_MODEL_PATH, "relationships", index))
        for index, item in enumerate(raw.relationships)
    ]
    others = len(models) - 1
    return SemanticModel(
        name=raw.name,
        description=raw.description,
        dialect="",
        tables={dataset.name: _to_model_table(dataset) for dataset in raw.datasets},
        dimensions=dimensions,
        metrics=metrics,
        joins=tuple(joins),
        lines=lines,
        unsupported=(f"{others} more semantic models in the file are not read",) if others else (),
        **extension,
    )


def _build_metrics(raw: _OssieModel, document: YamlDocument, lines: dict[str, int]) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {}
    for index, metric in enumerate(raw.metrics):
        path = (*_MODEL_PATH, "metrics", index)
        lines[f"metrics.{metric.name}"] = document.get_line(path)
        sql = _get_ansi_sql(metric.expression, document, path)
        expr = _expand_computed_fields(sql, raw, document, path)
        metrics[metric.name] = Metric(
            id=metric.name, expr=expr, synonyms=metric.synonyms, description=metric.description
        )
    return metrics


def _to_model_table(dataset: _Dataset) -> ModelTable:
    time = next((field.expression.dialects[0].expression for field in dataset.fields if field.is_time), "")
    return ModelTable(
        id=dataset.name,
        source=dataset.source,
        key=dataset.primary_key,
        time=time,
        synonyms=dataset.synonyms,
        description=dataset.description,
    )


def _build_dimensions(raw: _OssieModel, document: YamlDocument, lines: dict[str, int]) -> dict[str, Dimension]:
    """Build a dimension for each field.

    A name that several datasets have is prefixed by its dataset.
    """
    names = [field.name for dataset in raw.datasets for field in dataset.fields]
    dimensions: dict[str, Dimension] = {}
    for i, dataset in enumerate(raw.datasets):
        for j, field in enumerate(dataset.fields):
            path = (*_MODEL_PATH, "datasets", i, "fields", j)
            ref = field.name if names.count(field.name) == 1 else f"{dataset.name}.{field.name}"
            lines[f"dimensions.{ref}"] = document.get_line(path)
            synonyms = (*field.synonyms, *((field.label,) if field.label else ()))
            dimensions[ref] = Dimension(
                id=ref,
                expr=_get_ansi_sql(field.expression, document, path),
                table=dataset.name,
                synonyms=synonyms,
                description=field.description,
            )
    return dimensions


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


def _parse_relationship(item: dict[str, Any], document: YamlDocument, path: YamlPath) -> Join:
    relationship = validate_yaml(_Relationship, item, document, path)
    many = item.get("from")
    if not isinstance(many, str):
        raise document.build_error(path, "has no from: add the dataset on the many side.")
    if len(relationship.from_columns) != len(relationship.to_columns) or not relationship.from_columns:
        raise document.build_error(path, "needs as many from_columns as to_columns, at least one.")
    pairs = tuple(zip(relationship.from_columns, relationship.to_columns, strict=True))
    return Join(many=many, one=relationship.to, on=pairs)


def _parse_extension(raw: _OssieModel, document: YamlDocument, path: YamlPath) -> dict[str, Any]:
    """Parse the filters, exclusions, default filters and time of the custom extension."""
    for index, extension in enumerate(raw.custom_extensions):
        if extension.vendor_name.upper() != VENDOR_NAME:
            continue
        data_path = (*path, "custom_extensions", index, "data")
        try:
            data = json.loads(extension.data)
        except ValueError as error:
            raise document.build_error(data_path, f"is not valid JSON: {error}.") from error
        if not isinstance(data, dict) or set(data) - set(_EXTENSION_KEYS):
            raise document.build_error(data_path, f"must be a JSON object with {', '.join(_EXTENSION_KEYS)}.")
        short_form = {"metrics": {"_": "COUNT(*)"}, **data}  # the short form requires a metric
        model = parse_short_form(YamlDocument(short_form, {(): document.get_line(data_path)}, document.file))
        filters: dict[str, Filter] = model.filters
        exclusions: dict[str, Exclusion] = model.exclusions
        return {
            "filters": filters,
            "exclusions": exclusions,
            "default_filters": model.default_filters,
            "time": model.time,
        }
    return {}

"""Apache Ossie core files: datasets, relationships and metrics; what Ossie lacks stands in a custom extension."""

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


class _OssieBase(BaseModel):
    """Ossie's own fields; more than these are let pass, since its schema grows."""

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
        """What else people call it."""
        found = self.ai_context.get("synonyms", ()) if isinstance(self.ai_context, dict) else ()
        return tuple(text for text in found if isinstance(text, str))


class _DatasetField(_OssieItem):
    expression: _OssieExpression
    dimension: _DimensionRole | None = None
    datatype: str = ""
    label: str = ""

    @property
    def is_time(self) -> bool:
        """Whether it dates rows: as it says, else by its type."""
        said = self.dimension.is_time if self.dimension else None
        return self.datatype in ("Date", "DateTime", "DateTimeTz") if said is None else said


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
    """The first semantic model of an Ossie core file, its expressions in ANSI SQL.

    Raises:
        BadInput: with file, line and what would be right.
    """
    models = document.data["semantic_model"]
    if not isinstance(models, list) or not models:
        raise document.build_error(("semantic_model",), "must be a list with one semantic model.")
    path: YamlPath = ("semantic_model", 0)
    raw = validate_yaml(_OssieModel, models[0], document, path)
    lines: dict[str, int] = {}
    ours = _parse_extension(raw, document, path)
    tables = {d.name: _to_model_table(d) for d in raw.datasets}
    unread = [f"{len(models) - 1} more semantic models in the file are not read"] if len(models) > 1 else []
    dimensions = _build_dimensions(raw, document, lines)
    metrics: dict[str, Metric] = {}
    for index, metric in enumerate(raw.metrics):
        where = (*path, "metrics", index)
        lines[f"metrics.{metric.name}"] = document.get_line(where)
        expr = _expand_computed_fields(_get_ansi_sql(metric.expression, document, where), raw, document, where)
        metrics[metric.name] = Metric(
            id=metric.name, expr=expr, synonyms=metric.synonyms, description=metric.description
        )
    clash = next((ref for ref in metrics if ref in dimensions), None)
    if clash:
        raise document.build_error((*path, "metrics"), f"the id {clash} is a field's as well: rename one of them.")
    return SemanticModel(
        name=raw.name,
        description=raw.description,
        dialect="",
        tables=tables,
        dimensions=dimensions,
        metrics=metrics,
        joins=tuple(
            _parse_relationship(item, document, (*path, "relationships", i)) for i, item in enumerate(raw.relationships)
        ),
        lines=lines,
        unsupported=tuple(unread),
        **ours,
    )


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
    """Every field as a dimension; a name that several datasets have gets its dataset before it."""
    names = [field.name for dataset in raw.datasets for field in dataset.fields]
    found: dict[str, Dimension] = {}
    for i, dataset in enumerate(raw.datasets):
        for j, field in enumerate(dataset.fields):
            where = ("semantic_model", 0, "datasets", i, "fields", j)
            ref = field.name if names.count(field.name) == 1 else f"{dataset.name}.{field.name}"
            lines[f"dimensions.{ref}"] = document.get_line(where)
            synonyms = (*field.synonyms, *((field.label,) if field.label else ()))
            found[ref] = Dimension(
                id=ref,
                expr=_get_ansi_sql(field.expression, document, where),
                table=dataset.name,
                synonyms=synonyms,
                description=field.description,
            )
    return found


def _get_ansi_sql(expression: _OssieExpression, document: YamlDocument, where: YamlPath) -> str:
    """The ANSI form of an expression."""
    for text in expression.dialects:
        if text.dialect == "ANSI_SQL":
            return text.expression
    given = ", ".join(text.dialect for text in expression.dialects) or "none"
    raise document.build_error((*where, "expression"), f"has no ANSI_SQL form (it has {given}): add one.")


def _expand_computed_fields(expr: str, raw: _OssieModel, document: YamlDocument, where: YamlPath) -> str:
    """A metric's expression with each field that is computed put in as what it is computed from."""
    from sqlglot import exp

    computed = {
        (dataset.name.casefold(), field.name.casefold()): _get_ansi_sql(field.expression, document, where)
        for dataset in raw.datasets
        for field in dataset.fields
        if _get_ansi_sql(field.expression, document, where).strip().casefold() != field.name.casefold()
    }
    if not computed:
        return expr
    try:
        root = exp.Paren(this=parse_expression(expr, ""))
        for column in list(root.find_all(exp.Column)):
            text = computed.get((column.table.casefold(), column.name.casefold()))
            if text is not None:
                inner = exp.paren(parse_expression(text, ""))
                for bare in inner.find_all(exp.Column):
                    if not bare.table:
                        bare.set("table", column.args["table"].copy())
                column.replace(inner)
    except BadInput as error:
        raise document.build_error((*where, "expression"), str(error)) from error
    return str(root.this.sql())


def _parse_relationship(item: dict[str, Any], document: YamlDocument, where: YamlPath) -> Join:
    relation = validate_yaml(_Relationship, item, document, where)
    many = item.get("from")
    if not isinstance(many, str):
        raise document.build_error(where, "lacks from: the dataset on the many side.")
    if len(relation.from_columns) != len(relation.to_columns) or not relation.from_columns:
        raise document.build_error(where, "needs as many from_columns as to_columns, at least one.")
    pairs = tuple(zip(relation.from_columns, relation.to_columns, strict=True))
    return Join(many=many, one=relation.to, on=pairs)


def _parse_extension(raw: _OssieModel, document: YamlDocument, path: YamlPath) -> dict[str, Any]:
    """Filters, exclusions, default filters and time of our own extension, as the short form reads them."""
    for index, extension in enumerate(raw.custom_extensions):
        if extension.vendor_name.upper() != VENDOR_NAME:
            continue
        where = (*path, "custom_extensions", index, "data")
        try:
            data = json.loads(extension.data)
        except ValueError as error:
            raise document.build_error(where, f"is no JSON: {error}.") from error
        if not isinstance(data, dict) or set(data) - set(_EXTENSION_KEYS):
            raise document.build_error(where, f"holds a JSON object with {', '.join(_EXTENSION_KEYS)}.")
        stand_in = {"metrics": {"_": "COUNT(*)"}, **data}
        read = parse_short_form(YamlDocument(stand_in, {(): document.get_line(where)}, document.file))
        filters: dict[str, Filter] = read.filters
        exclusions: dict[str, Exclusion] = read.exclusions
        return {
            "filters": filters,
            "exclusions": exclusions,
            "default_filters": read.default_filters,
            "time": read.time,
        }
    return {}

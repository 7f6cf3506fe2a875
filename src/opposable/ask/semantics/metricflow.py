"""MetricFlow files, written in the short form."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath, validate_yaml
from opposable.sql.schema import quote_name

_AGGREGATE_TEMPLATES = {
    "sum": "SUM({})",
    "average": "AVG({})",
    "avg": "AVG({})",
    "min": "MIN({})",
    "max": "MAX({})",
    "count": "COUNT({})",
    "count_distinct": "COUNT(DISTINCT {})",
    "sum_boolean": "SUM(CASE WHEN {} THEN 1 ELSE 0 END)",
}
_DBT_REFERENCE = re.compile(r"\s*ref\(\s*['\"]([^'\"]+)['\"]\s*\)\s*")
_UNIQUE_ENTITY_TYPES = ("primary", "unique", "natural")


class _Item(BaseModel):
    """An item with a name; unknown fields are ignored, because the format grows."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)
    name: str
    type: str = ""
    expr: str = ""
    label: str = ""
    description: str = ""

    def describe(self) -> dict[str, Any]:
        """Return the description of the item, and its label as another name."""
        return {"description": self.description, "synonyms": [self.label] if self.label not in ("", self.name) else []}


class _Measure(_Item):
    agg: str = ""
    agg_time_dimension: str = ""
    non_additive_dimension: Any = None
    create_metric: bool = False


class _SemanticModel(_Item):
    model: str = ""
    defaults: dict[str, Any] = {}
    entities: tuple[_Item, ...] = ()
    dimensions: tuple[_Item, ...] = ()
    measures: tuple[_Measure, ...] = ()


class _Input(BaseModel):
    """A measure or metric that a metric is computed from; further fields are its options."""

    model_config = ConfigDict(frozen=True, extra="allow")
    name: str
    alias: str = ""


_InputReference = Annotated[_Input, BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value)]


class _TypeParameters(BaseModel):
    measure: _InputReference | None = None
    numerator: _InputReference | None = None
    denominator: _InputReference | None = None
    metrics: tuple[_InputReference, ...] = ()
    expr: str = ""


class _Metric(_Item):
    filter: Any = None
    type_params: _TypeParameters = _TypeParameters()


class _MetricFlowFile(BaseModel):
    semantic_models: tuple[_SemanticModel, ...]
    metrics: tuple[_Metric, ...] = ()


def convert_metricflow(document: YamlDocument) -> YamlDocument:
    """Write the semantic models and metrics of a MetricFlow file in the short form.

    `unsupported` names the parts that are not supported.

    Raises:
        BadInput: The document is invalid. The message has the file, the line and the remedy.
    """
    file = validate_yaml(_MetricFlowFile, document.data, document, ())
    lines: dict[YamlPath, int] = {}
    tables: dict[str, Any] = {}
    dimensions: dict[str, Any] = {}
    measures: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    unsupported: list[str] = []
    for i, model in enumerate(file.semantic_models):
        reference = _DBT_REFERENCE.fullmatch(model.model)
        times = {dimension.name: dimension.expr or dimension.name for dimension in model.dimensions}
        tables[model.name] = {
            "source": reference[1] if reference else model.model or model.name,
            "time": times.get(model.defaults.get("agg_time_dimension", ""), ""),
            "description": model.description,
        }
        for j, dimension in enumerate(model.dimensions):
            ref = dimension.name if dimension.name not in dimensions else f"{model.name}__{dimension.name}"
            lines["dimensions", ref] = document.get_line(("semantic_models", i, "dimensions", j))
            dimensions[ref] = {"expr": times[dimension.name], "table": model.name, **dimension.describe()}
        for j, measure in enumerate(model.measures):
            line = document.get_line(("semantic_models", i, "measures", j))
            try:
                body = {"expr": _format_measure(measure), "table": model.name, "description": measure.description}
            except ValueError as reason:
                unsupported.append(f"line {line}: the measure {measure.name} is not supported ({reason})")
                continue
            measures[measure.name] = body | {"time": times.get(measure.agg_time_dimension, "")}
            if measure.create_metric:
                metrics[measure.name] = measures[measure.name]
                lines["metrics", measure.name] = line
    for i, metric in enumerate(file.metrics):
        line = lines["metrics", metric.name] = document.get_line(("metrics", i))
        try:
            body = _convert_metric(metric, measures)
        except ValueError as reason:
            unsupported.append(f"line {line}: the metric {metric.name} is not supported ({reason})")
            continue
        metrics[metric.name] = body | {key: value for key, value in metric.describe().items() if value}
    known_keys = (*_MetricFlowFile.model_fields, "version")
    unsupported += [f"{key} is not supported" for key in document.data if key not in known_keys]
    data = {"tables": tables, "dimensions": dimensions, "metrics": metrics, "joins": _build_joins(file)}
    return YamlDocument(data | {"unsupported": unsupported}, lines, document.file)


def _format_measure(measure: _Measure) -> str:
    """Return a measure as SQL; raise ValueError with the reason if it is not supported."""
    template = _AGGREGATE_TEMPLATES.get(measure.agg.lower())
    if template is None or measure.non_additive_dimension:
        raise ValueError("non_additive_dimension" if template else f"agg: {measure.agg or 'missing'}")
    is_row_count = measure.agg.lower() == "count" and measure.expr.strip() == "1"
    return template.format("*" if is_row_count else measure.expr or measure.name)


def _convert_metric(metric: _Metric, measures: dict[str, Any]) -> dict[str, Any]:
    """Return a metric in the short form; raise ValueError with the reason if it is not supported."""
    parameters = metric.type_params
    inputs = (parameters.measure, parameters.numerator, parameters.denominator, *parameters.metrics)
    if options := sorted({option for item in inputs if item for option in item.model_extra or {}}):
        raise ValueError(f"{', '.join(options)} of an input")
    if metric.filter:
        raise ValueError("filter: write a filter in the short form instead")
    match metric.type, parameters:
        case "simple", _TypeParameters(measure=_Input(name=name)) if name in measures:
            return dict(measures[name])
        case "ratio", _TypeParameters(numerator=_Input(name=numerator), denominator=_Input(name=denominator)):
            return {"expr": f"{quote_name(numerator)} / {quote_name(denominator)}", "dialect": "duckdb"}
        case "derived", _TypeParameters(expr=expr) if expr:
            names = {item.alias or item.name: item.name for item in parameters.metrics}
            return {"expr": re.sub(r"\w+", lambda match: names.get(match[0], match[0]), expr)}
        case "simple" | "ratio" | "derived", _:
            raise ValueError("its measure, its metrics or its expr are missing")
        case _:
            raise ValueError(f"type: {metric.type or 'missing'}")


def _build_joins(file: _MetricFlowFile) -> list[dict[str, Any]]:
    """Join each foreign entity to the tables where it is unique."""
    entities = [(model.name, entity) for model in file.semantic_models for entity in model.entities]
    return [
        {"many": many, "one": one, "on": [(foreign.expr or foreign.name, key.expr or key.name)]}
        for many, foreign in entities
        for one, key in entities
        if foreign.type == "foreign" and key.type in _UNIQUE_ENTITY_TYPES and foreign.name == key.name and many != one
    ]

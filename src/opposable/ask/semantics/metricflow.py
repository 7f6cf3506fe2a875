"""Parser of MetricFlow files."""

import re
from typing import Any

from opposable.ask.semantics.model import Dimension, Join, Metric, ModelTable, SemanticModel
from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath

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


def parse_metricflow(document: YamlDocument) -> SemanticModel:
    """Parse the semantic models and metrics of a MetricFlow file.

    `SemanticModel.unsupported` names the parts that are not supported.

    Raises:
        BadInput: The document is invalid. The message has the file, the line and the remedy.
    """
    return _MetricFlowParser(document).parse()


class _MetricFlowParser:
    def __init__(self, document: YamlDocument) -> None:
        self.document = document
        self.unsupported: list[str] = []
        self.lines: dict[str, int] = {}
        self.tables: dict[str, ModelTable] = {}
        self.dimensions: dict[str, Dimension] = {}
        self.measures: dict[str, Metric] = {}
        self.metrics: dict[str, Metric] = {}
        self.entities: list[tuple[str, str, str, str]] = []

    def parse(self) -> SemanticModel:
        for path, item in self._list_items(("semantic_models",), self.document.data["semantic_models"]):
            self._parse_semantic_model(path, item)
        for path, item in self._list_items(("metrics",), self.document.data.get("metrics") or []):
            self._parse_metric(path, item)
        for key in self.document.data:
            if key not in ("semantic_models", "metrics", "version"):
                self.unsupported.append(f"{key} is not supported")
        return SemanticModel(
            tables=self.tables,
            dimensions=self.dimensions,
            metrics=self.metrics,
            joins=self._build_joins(),
            unsupported=tuple(self.unsupported),
            lines=self.lines,
        )

    def _list_items(self, path: YamlPath, items: Any) -> list[tuple[YamlPath, dict[str, Any]]]:
        if not isinstance(items, list):
            raise self.document.build_error(path, "must be a list.")
        for index, item in enumerate(items):
            if not isinstance(item, dict) or not isinstance(item.get("name", item.get("expr")), str):
                raise self.document.build_error((*path, index), "must be a mapping with a name.")
        return [((*path, index), item) for index, item in enumerate(items)]

    def _parse_semantic_model(self, path: YamlPath, item: dict[str, Any]) -> None:
        ref = item["name"]
        source = str(item.get("model") or ref)
        dbt_reference = _DBT_REFERENCE.fullmatch(source)
        time = str((item.get("defaults") or {}).get("agg_time_dimension") or "")
        dimension_exprs: dict[str, str] = {}
        for dimension_path, dimension in self._list_items((*path, "dimensions"), item.get("dimensions") or []):
            dimension_exprs[dimension["name"]] = str(dimension.get("expr") or dimension["name"])
            self._parse_dimension(dimension_path, ref, dimension)
        for _, entity in self._list_items((*path, "entities"), item.get("entities") or []):
            column = str(entity.get("expr") or entity["name"])
            self.entities.append((ref, entity["name"], str(entity.get("type") or "").lower(), column))
        self.tables[ref] = ModelTable(
            id=ref,
            source=dbt_reference[1] if dbt_reference else source,
            time=dimension_exprs.get(time, ""),
            description=str(item.get("description") or ""),
        )
        for measure_path, measure in self._list_items((*path, "measures"), item.get("measures") or []):
            self._parse_measure(measure_path, ref, measure, dimension_exprs)

    def _parse_dimension(self, path: YamlPath, table: str, item: dict[str, Any]) -> None:
        name = item["name"]
        ref = name if name not in self.dimensions else f"{table}__{name}"
        self.lines[f"dimensions.{ref}"] = self.document.get_line(path)
        self.dimensions[ref] = Dimension(
            id=ref,
            expr=str(item.get("expr") or name),
            table=table,
            synonyms=(str(item["label"]),) if item.get("label") else (),
            description=str(item.get("description") or ""),
        )

    def _parse_measure(self, path: YamlPath, table: str, item: dict[str, Any], dimension_exprs: dict[str, str]) -> None:
        name, kind = item["name"], str(item.get("agg") or "").lower()
        template = _AGGREGATE_TEMPLATES.get(kind)
        if template is None or item.get("non_additive_dimension"):
            reason = f"agg: {kind or 'missing'}" if template is None else "non_additive_dimension"
            line = self.document.get_line(path)
            self.unsupported.append(f"line {line}: the measure {name} is not supported ({reason})")
            return
        argument = str(item.get("expr") or name)
        if kind == "count" and argument.strip() == "1":
            argument = "*"
        time = str(item.get("agg_time_dimension") or "")
        self.measures[name] = Metric(
            id=name,
            expr=template.format(argument),
            table=table,
            time=dimension_exprs.get(time, ""),
            description=str(item.get("description") or ""),
        )
        if item.get("create_metric"):
            self.metrics[name] = self.measures[name]
            self.lines[f"metrics.{name}"] = self.document.get_line(path)

    def _parse_metric(self, path: YamlPath, item: dict[str, Any]) -> None:
        name = item["name"]
        self.lines[f"metrics.{name}"] = self.document.get_line(path)
        metric, reason = self._build_metric(item)
        if metric is None:
            line = self.document.get_line(path)
            self.unsupported.append(f"line {line}: the metric {name} is not supported ({reason})")
            return
        update: dict[str, Any] = {"description": str(item.get("description") or metric.description)}
        if item.get("label") and item["label"] != name:
            update["synonyms"] = (str(item["label"]),)
        self.metrics[name] = metric.model_copy(update=update)

    def _build_metric(self, item: dict[str, Any]) -> tuple[Metric | None, str]:
        """Build a metric, or return None and the reason why it is not supported."""
        name, kind = item["name"], str(item.get("type") or "").lower()
        type_params = item.get("type_params") or {}
        if item.get("filter"):
            return None, "filter: write a filter in the short form instead"
        match kind:
            case "simple":
                return self._build_simple_metric(name, type_params.get("measure"))
            case "ratio":
                return _build_ratio_metric(name, type_params.get("numerator"), type_params.get("denominator"))
            case "derived":
                return _build_derived_metric(name, type_params)
            case _:
                return None, f"type: {kind or 'missing'}"

    def _build_simple_metric(self, name: str, measure_reference: Any) -> tuple[Metric | None, str]:
        if _has_options(measure_reference):
            return None, "a measure with filter, alias or fill"
        measure_name = _get_name(measure_reference)
        measure = self.measures.get(measure_name)
        if measure is None:
            return None, f"measure: {measure_name or 'missing'} is not known"
        return measure.model_copy(update={"id": name}), ""

    def _build_joins(self) -> tuple[Join, ...]:
        """Join each foreign entity to the tables where it is unique."""
        joins: list[Join] = []
        for table, name, kind, column in self.entities:
            if kind != "foreign":
                continue
            for other_table, other_name, other_kind, key in self.entities:
                if other_name == name and other_kind in _UNIQUE_ENTITY_TYPES and other_table != table:
                    joins.append(Join(many=table, one=other_table, on=((column, key),)))
        return tuple(joins)


def _build_ratio_metric(name: str, numerator: Any, denominator: Any) -> tuple[Metric | None, str]:
    numerator_name, denominator_name = _get_name(numerator), _get_name(denominator)
    if not numerator_name or not denominator_name or _has_options(numerator) or _has_options(denominator):
        return None, "a numerator or denominator with filter"
    return Metric(id=name, expr=f"{_quote_name(numerator_name)} / {_quote_name(denominator_name)}"), ""


def _build_derived_metric(name: str, type_params: dict[str, Any]) -> tuple[Metric | None, str]:
    expr = str(type_params.get("expr") or "")
    for metric in type_params.get("metrics") or []:
        if not isinstance(metric, dict):
            continue
        if options := set(metric) - {"name", "alias"}:
            return None, f"{', '.join(sorted(options))} of an input metric"
        if metric.get("alias"):
            expr = re.sub(rf"\b{re.escape(str(metric['alias']))}\b", str(metric.get("name")), expr)
    return (Metric(id=name, expr=expr), "") if expr else (None, "expr is missing")


def _get_name(reference: Any) -> str:
    """Return the name in a reference: text, or a mapping with a name."""
    return str(reference.get("name") or "") if isinstance(reference, dict) else str(reference or "")


def _has_options(reference: Any) -> bool:
    return isinstance(reference, dict) and bool(set(reference) - {"name"})


def _quote_name(name: str) -> str:
    return f'"{name}"'

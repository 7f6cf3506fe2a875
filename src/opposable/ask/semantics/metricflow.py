"""MetricFlow files: semantic models with entities, dimensions and measures, and the metrics over them."""

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
_UNIQUE_ENTITY_TYPES = ("primary", "unique", "natural")


def parse_metricflow(document: YamlDocument) -> SemanticModel:
    """The models and metrics of a MetricFlow file; what is not supported is named in `unread`.

    Raises:
        BadInput: with file, line and what would be right.
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
                self.unsupported.append(f"{key} is not read")
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
        found = re.fullmatch(r"\s*ref\(\s*['\"]([^'\"]+)['\"]\s*\)\s*", source)
        time = str((item.get("defaults") or {}).get("agg_time_dimension") or "")
        named: dict[str, str] = {}
        for where, dimension in self._list_items((*path, "dimensions"), item.get("dimensions") or []):
            named[dimension["name"]] = str(dimension.get("expr") or dimension["name"])
            self._parse_dimension(where, ref, dimension)
        for _, entity in self._list_items((*path, "entities"), item.get("entities") or []):
            column = str(entity.get("expr") or entity["name"])
            self.entities.append((ref, entity["name"], str(entity.get("type") or "").lower(), column))
        self.tables[ref] = ModelTable(
            id=ref,
            source=found[1] if found else source,
            time=named.get(time, ""),
            description=str(item.get("description") or ""),
        )
        for where, measure in self._list_items((*path, "measures"), item.get("measures") or []):
            self._parse_measure(where, ref, measure, named)

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
            why = f"agg: {kind or 'missing'}" if template is None else "non_additive_dimension"
            self.unsupported.append(f"line {self.document.get_line(path)}: the measure {name} is not supported ({why})")
            return
        inner = str(item.get("expr") or name)
        if kind == "count" and inner.strip() == "1":
            inner = "*"
        time = str(item.get("agg_time_dimension") or "")
        self.measures[name] = Metric(
            id=name,
            expr=template.format(inner),
            table=table,
            time=dimension_exprs.get(time, ""),
            description=str(item.get("description") or ""),
        )
        if item.get("create_metric"):
            self.metrics[name] = self.measures[name]
            self.lines[f"metrics.{name}"] = self.document.get_line(path)

    def _parse_metric(self, path: YamlPath, item: dict[str, Any]) -> None:
        name, kind = item["name"], str(item.get("type") or "").lower()
        given = item.get("type_params") or {}
        self.lines[f"metrics.{name}"] = self.document.get_line(path)
        made: Metric | None = None
        why = f"type: {kind or 'missing'}"
        if item.get("filter"):
            why = "filter: write a filter in the short form instead"
        elif kind == "simple":
            measure = self.measures.get(_get_name(given.get("measure")))
            made = measure.model_copy(update={"id": name}) if measure else None
            why = f"measure: {_get_name(given.get('measure')) or 'missing'} is not known"
            if isinstance(given.get("measure"), dict) and set(given["measure"]) - {"name"}:
                made, why = None, "a measure with filter, alias or fill"
        elif kind == "ratio":
            over, under = _get_name(given.get("numerator")), _get_name(given.get("denominator"))
            plain = not any(
                isinstance(given.get(k), dict) and set(given[k]) - {"name"} for k in ("numerator", "denominator")
            )
            made = (
                Metric(id=name, expr=f"{_quote_name(over)} / {_quote_name(under)}")
                if over and under and plain
                else None
            )
            why = "a numerator or denominator with filter"
        elif kind == "derived":
            made, why = self._build_derived_metric(name, given)
        if made is None:
            self.unsupported.append(f"line {self.document.get_line(path)}: the metric {name} is not supported ({why})")
            return
        told = {"description": str(item.get("description") or made.description)}
        label = {"synonyms": (str(item["label"]),)} if item.get("label") and item["label"] != name else {}
        self.metrics[name] = made.model_copy(update={**told, **label})

    def _build_derived_metric(self, name: str, type_params: dict[str, Any]) -> tuple[Metric | None, str]:
        expr = str(type_params.get("expr") or "")
        for part in type_params.get("metrics") or []:
            if isinstance(part, dict) and set(part) - {"name", "alias"}:
                return None, f"{', '.join(sorted(set(part) - {'name', 'alias'}))} of an input metric"
            if isinstance(part, dict) and part.get("alias"):
                expr = re.sub(rf"\b{re.escape(str(part['alias']))}\b", str(part.get("name")), expr)
        return (Metric(id=name, expr=expr), "") if expr else (None, "expr is missing")

    def _build_joins(self) -> tuple[Join, ...]:
        """A foreign entity joins the model where the same entity is primary or unique."""
        found: list[Join] = []
        for table, name, kind, column in self.entities:
            if kind != "foreign":
                continue
            for other, entity, role, key in self.entities:
                if entity == name and role in _UNIQUE_ENTITY_TYPES and other != table:
                    found.append(Join(many=table, one=other, on=((column, key),)))
        return tuple(found)


def _get_name(value: Any) -> str:
    """A measure or metric named as text or as a mapping with a name."""
    return str(value.get("name") or "") if isinstance(value, dict) else str(value or "")


def _quote_name(name: str) -> str:
    return f'"{name}"'

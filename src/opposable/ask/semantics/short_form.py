"""Parser of the short form of semantic models."""

import re
from typing import Any

from pydantic import Field

from opposable.ask.semantics.model import (
    MAX_TERMS,
    SECTIONS,
    Dimension,
    Exclusion,
    Filter,
    Join,
    Metric,
    ModelTable,
    SemanticModel,
    Term,
    TextList,
)
from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath, validate_yaml
from opposable.domain.specs import FrozenModel
from opposable.sql.name_similarity import suggest_names
from opposable.sql.schema import fold_name, unquote_name

_TERM_TYPES: dict[str, type[Term]] = {
    "metrics": Metric,
    "dimensions": Dimension,
    "filters": Filter,
    "exclusions": Exclusion,
}
_OTHER_KEYS = ("default_filters", "name", "description", "table", "tables", "joins", "time", "dialect", "version")
_TOP_LEVEL_KEYS = (*SECTIONS, *_OTHER_KEYS)
_NAME_PATTERN = r'("(?:[^"]|"")+"|`[^`]+`|\w+)'
_EQUALITY_PATTERN = re.compile(
    rf"\s*{_NAME_PATTERN}\s*\.\s*{_NAME_PATTERN}\s*=\s*{_NAME_PATTERN}\s*\.\s*{_NAME_PATTERN}\s*"
)


class _TableDeclaration(FrozenModel):
    source: str = ""
    time: str = ""
    key: TextList = ()
    synonyms: TextList = ()
    description: str = ""


class _JoinDeclaration(FrozenModel):
    from_: str = Field(alias="from")
    to: str


class _Header(FrozenModel):
    name: str = ""
    description: str = ""
    table: str = ""
    time: str = ""
    dialect: str = ""
    default_filters: TextList = ()


def parse_short_form(document: YamlDocument) -> SemanticModel:
    """Parse a semantic model in the short form.

    Raises:
        BadInput: The document is invalid. The message has the file, the line and the remedy.
    """
    data: dict[str, Any] = document.data
    for key in data:
        if key not in _TOP_LEVEL_KEYS:
            similar = suggest_names(key, _TOP_LEVEL_KEYS, 1)
            hint = f"did you mean {similar[0]}?" if similar else f"the sections are {', '.join(_TOP_LEVEL_KEYS)}."
            raise document.build_error((key,), f"there is no such section; {hint}")
    header = validate_yaml(_Header, {key: data[key] for key in _Header.model_fields if key in data}, document, ())
    lines: dict[str, int] = {}
    sections = {section: _parse_section(document, section, header.table, lines) for section in SECTIONS}
    if not sections["metrics"] and not sections["dimensions"]:
        raise document.build_error((), "it defines no metrics and no dimensions: add at least one metric with an expr.")
    _reject_duplicate_ids(document, sections, lines)
    joins = _parse_joins(document, lines)
    tables = _parse_tables(document, sections, joins, header.table, lines)
    header_fields = header.model_dump(exclude={"table"})
    return SemanticModel(**header_fields | sections, joins=joins, tables=tables, lines=lines)


def _parse_section(document: YamlDocument, section: str, table: str, lines: dict[str, int]) -> dict[str, Any]:
    """Parse the terms of one section, and record their lines in `lines`."""
    terms: dict[str, Term] = {}
    for path, ref, item in _list_section_items(document, section):
        body = {"expr": item} if isinstance(item, str) else item
        if not isinstance(body, dict):
            raise document.build_error(path, "must be an expression, or a mapping with expr.")
        if "id" in body and body["id"] != ref:
            raise document.build_error((*path, "id"), f"is not {ref}: remove it, the key is the id.")
        if ref in terms:
            raise document.build_error(path, f"{ref} is defined twice: remove one of them.")
        term = validate_yaml(_TERM_TYPES[section], {**body, "id": ref}, document, path)
        terms[ref] = term if term.table or not table else term.model_copy(update={"table": table})
        lines[f"{section}.{ref}"] = document.get_line(path)
        lines |= {f"{section}.{ref}.{key}": document.get_line((*path, key)) for key in body}
    if len(terms) > MAX_TERMS:
        raise document.build_error((section,), f"{len(terms)} entries: at most {MAX_TERMS} are allowed.")
    return terms


def _list_section_items(document: YamlDocument, section: str) -> list[tuple[YamlPath, str, Any]]:
    """List the items of a section as (path, id, item).

    A section is a mapping, or a list of mappings with an id.
    """
    data = document.data.get(section)
    match data:
        case None:
            return []
        case dict():
            return [((section, ref), ref, body) for ref, body in data.items()]
        case list():
            items: list[tuple[YamlPath, str, Any]] = []
            for index, body in enumerate(data):
                ref = (body.get("id") or body.get("name")) if isinstance(body, dict) else None
                if not isinstance(ref, str):
                    raise document.build_error((section, index), "must be a mapping with an id and an expr.")
                items.append(((section, index), ref, {k: v for k, v in body.items() if k not in ("id", "name")}))
            return items
        case _:
            raise document.build_error((section,), "must be a mapping: id, then its expr.")


def _reject_duplicate_ids(document: YamlDocument, sections: dict[str, dict[str, Any]], lines: dict[str, int]) -> None:
    """Reject an id that two sections define.

    An intent names filters, dimensions and metrics in one field.
    """
    section_by_id: dict[str, str] = {}
    for section, terms in sections.items():
        for ref in terms:
            other = section_by_id.setdefault(ref, section)
            if other != section:
                problem = (
                    f"the id {ref} is already used in {other} (line {lines[f'{other}.{ref}']}): rename one of them."
                )
                raise document.build_error((section, ref), problem)


def _parse_joins(document: YamlDocument, lines: dict[str, int]) -> tuple[Join, ...]:
    items = document.data.get("joins") or []
    if not isinstance(items, list):
        raise document.build_error(
            ("joins",), "must be a list of conditions such as orders.customer_id = customers.id."
        )
    joins: list[Join] = []
    for index, item in enumerate(items):
        text = item
        if isinstance(item, dict):
            declaration = validate_yaml(_JoinDeclaration, item, document, ("joins", index))
            text = f"{declaration.from_} = {declaration.to}"
        join = parse_join(text) if isinstance(text, str) else None
        if join is None:
            example = "many.column = one.column, such as orders.customer_id = customers.id (AND for more columns)"
            raise document.build_error(("joins", index), f"{text!r} is not a join: write {example}.")
        lines[f"joins.{join.text}"] = document.get_line(("joins", index))
        joins.append(join)
    return tuple(joins)


def parse_join(text: str) -> Join | None:
    """Parse `many.a = one.b [AND …]`; return None if `text` is not a join."""
    many = one = ""
    column_pairs: list[tuple[str, str]] = []
    for equality in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        match = _EQUALITY_PATTERN.fullmatch(equality)
        if match is None:
            return None
        left, left_column, right, right_column = (unquote_name(name) for name in match.groups())
        if column_pairs and (left, right) != (many, one):
            return None
        many, one = left, right
        column_pairs.append((left_column, right_column))
    return Join(many=many, one=one, on=tuple(column_pairs))


def _parse_tables(
    document: YamlDocument,
    sections: dict[str, dict[str, Any]],
    joins: tuple[Join, ...],
    default_table: str,
    lines: dict[str, int],
) -> dict[str, ModelTable]:
    """Parse the declared tables, and add the tables that are only used."""
    declarations = document.data.get("tables") or {}
    if isinstance(declarations, list):
        declarations = {name: {} for name in declarations if isinstance(name, str)}
    if not isinstance(declarations, dict):
        raise document.build_error(("tables",), "must be a mapping: name, then source, time, key.")
    tables: dict[str, ModelTable] = {}
    for name, body in declarations.items():
        declaration = validate_yaml(_TableDeclaration, body or {}, document, ("tables", name))
        fields = declaration.model_dump(exclude={"source"})
        tables[name] = ModelTable(id=name, **fields, source=declaration.source or name)
        lines[f"tables.{name}"] = document.get_line(("tables", name))
    used_names = [term.table for terms in sections.values() for term in terms.values()]
    used_names += [name for join in joins for name in (join.many, join.one)]
    known_names = {fold_name(name) for name in tables}
    for name in [*used_names, default_table]:
        if name and fold_name(name) not in known_names:
            tables[name] = ModelTable(id=name, source=name)
            known_names.add(fold_name(name))
    return tables

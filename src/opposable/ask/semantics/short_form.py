"""The short form: metrics, dimensions, filters and exclusions with `expr`, and what is needed to join their tables."""

import re
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

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
)
from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath
from opposable.ask.semantics.yaml_validation import validate_yaml
from opposable.domain.specs import FrozenModel
from opposable.sql.name_similarity import suggest_names
from opposable.sql.schema import fold_name, unquote_name

T = TypeVar("T", bound=Term)

_TERM_TYPES: dict[str, type[Term]] = {
    "metrics": Metric,
    "dimensions": Dimension,
    "filters": Filter,
    "exclusions": Exclusion,
}
_TOP_LEVEL_KEYS = (
    *SECTIONS,
    "default_filters",
    "name",
    "description",
    "table",
    "tables",
    "joins",
    "time",
    "dialect",
    "version",
)
_NAME_PATTERN = r'("(?:[^"]|"")+"|`[^`]+`|\w+)'
_EQUALITY_PATTERN = re.compile(
    rf"\s*{_NAME_PATTERN}\s*\.\s*{_NAME_PATTERN}\s*=\s*{_NAME_PATTERN}\s*\.\s*{_NAME_PATTERN}\s*"
)


def _text_to_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


TextList = Annotated[tuple[str, ...], BeforeValidator(_text_to_tuple)]


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
    """A model from the seed's YAML.

    Raises:
        BadInput: with file, line and what would be right.
    """
    data: dict[str, Any] = document.data
    for key in data:
        if key not in _TOP_LEVEL_KEYS:
            near = suggest_names(key, _TOP_LEVEL_KEYS, 1)
            raise document.build_error(
                (key,), f"there is no such section; {f'did you mean {near[0]}?' if near else _list_sections()}"
            )
    head = validate_yaml(_Header, {key: data[key] for key in _Header.model_fields if key in data}, document, ())
    lines: dict[str, int] = {}
    sections = {section: _parse_section(document, section, head.table, lines) for section in SECTIONS}
    if not sections["metrics"] and not sections["dimensions"]:
        raise document.build_error((), "it defines no metrics and no dimensions: add at least one metric with an expr.")
    _reject_duplicate_ids(document, sections, lines)
    joins = _parse_joins(document, lines)
    tables = _parse_tables(document, sections, joins, head.table, lines)
    return SemanticModel(
        name=head.name,
        description=head.description,
        time=head.time,
        dialect=head.dialect,
        default_filters=head.default_filters,
        joins=joins,
        tables=tables,
        lines=lines,
        metrics=sections["metrics"],
        dimensions=sections["dimensions"],
        filters=sections["filters"],
        exclusions=sections["exclusions"],
    )


def _list_sections() -> str:
    return f"the sections are {', '.join(_TOP_LEVEL_KEYS)}."


def _parse_section(document: YamlDocument, section: str, table: str, lines: dict[str, int]) -> dict[str, Any]:
    """The terms of one section by id, written as a mapping (id: …) or as a list of mappings with an id."""
    found: dict[str, Term] = {}
    for path, ref, given in _list_section_items(document, section):
        body = {"expr": given} if isinstance(given, str) else given
        if not isinstance(body, dict):
            raise document.build_error(path, "must be an expression, or a mapping with expr.")
        if "id" in body and body["id"] != ref:
            raise document.build_error((*path, "id"), f"is not {ref}: leave it out, the key is the id.")
        if ref in found:
            raise document.build_error(path, f"{ref} stands twice: keep one of them.")
        term = validate_yaml(_TERM_TYPES[section], _wrap_single_texts({**body, "id": ref}), document, path)
        found[ref] = term if term.table or not table else term.model_copy(update={"table": table})
        lines[f"{section}.{ref}"] = document.get_line(path)
        lines |= {f"{section}.{ref}.{key}": document.get_line((*path, key)) for key in body}
    if len(found) > MAX_TERMS:
        raise document.build_error((section,), f"{len(found)} entries: at most {MAX_TERMS} are read.")
    return found


def _list_section_items(document: YamlDocument, section: str) -> list[tuple[YamlPath, str, Any]]:
    given = document.data.get(section)
    match given:
        case None:
            return []
        case dict():
            return [((section, ref), ref, body) for ref, body in given.items()]
        case list():
            items: list[tuple[YamlPath, str, Any]] = []
            for index, body in enumerate(given):
                ref = (body.get("id") or body.get("name")) if isinstance(body, dict) else None
                if not isinstance(ref, str):
                    raise document.build_error((section, index), "must be a mapping with an id and an expr.")
                items.append(((section, index), ref, {k: v for k, v in body.items() if k not in ("id", "name")}))
            return items
        case _:
            raise document.build_error((section,), "must be a mapping: id, then its expr.")


def _wrap_single_texts(body: dict[str, Any]) -> dict[str, Any]:
    """The same with one text made a list where a list belongs."""
    for key in ("synonyms", "default_filters"):
        if isinstance(body.get(key), str):
            body[key] = (body[key],)
    if isinstance(body.get("values"), dict):
        body["values"] = {k: (v,) if isinstance(v, str) else v or () for k, v in body["values"].items()}
    return body


def _reject_duplicate_ids(document: YamlDocument, sections: dict[str, dict[str, Any]], lines: dict[str, int]) -> None:
    """An intent names filters, dimensions and metrics in one field, so their ids are one space."""
    seen: dict[str, str] = {}
    for section, terms in sections.items():
        for ref in terms:
            if ref in seen:
                first = f"{seen[ref]} (line {lines[f'{seen[ref]}.{ref}']})"
                raise document.build_error((section, ref), f"the id {ref} is used in {first} already: give it another.")
            seen[ref] = section


def _parse_joins(document: YamlDocument, lines: dict[str, int]) -> tuple[Join, ...]:
    given = document.data.get("joins") or []
    if not isinstance(given, list):
        raise document.build_error(
            ("joins",), "must be a list of conditions such as orders.customer_id = customers.id."
        )
    found: list[Join] = []
    for index, item in enumerate(given):
        text = item
        if isinstance(item, dict):
            both = validate_yaml(_JoinDeclaration, item, document, ("joins", index))
            text = f"{both.from_} = {both.to}"
        join = parse_join(text) if isinstance(text, str) else None
        if join is None:
            right = "many.column = one.column, such as orders.customer_id = customers.id (AND for more columns)"
            raise document.build_error(("joins", index), f"{text!r} is no join: write {right}.")
        lines[f"joins.{join.text}"] = document.get_line(("joins", index))
        found.append(join)
    return tuple(found)


def parse_join(text: str) -> Join | None:
    """The join that `many.a = one.b [AND …]` says, or None when it says none."""
    many = one = ""
    on: list[tuple[str, str]] = []
    for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        match = _EQUALITY_PATTERN.fullmatch(part)
        if match is None:
            return None
        left, a, right, b = (unquote_name(name) for name in match.groups())
        if on and (left, right) != (many, one):
            return None
        many, one = left, right
        on.append((a, b))
    return Join(many=many, one=one, on=tuple(on))


def _parse_tables(
    document: YamlDocument,
    sections: dict[str, dict[str, Any]],
    joins: tuple[Join, ...],
    default_table: str,
    lines: dict[str, int],
) -> dict[str, ModelTable]:
    """The tables that are declared, and those that are merely used, under their own names."""
    given = document.data.get("tables") or {}
    if isinstance(given, list):
        given = {name: {} for name in given if isinstance(name, str)}
    if not isinstance(given, dict):
        raise document.build_error(("tables",), "must be a mapping: name, then source, time, key.")
    found: dict[str, ModelTable] = {}
    for name, body in given.items():
        text = validate_yaml(_TableDeclaration, body or {}, document, ("tables", name))
        found[name] = ModelTable(id=name, **text.model_dump(exclude={"source"}), source=text.source or name)
        lines[f"tables.{name}"] = document.get_line(("tables", name))
    used = [term.table for terms in sections.values() for term in terms.values()]
    used += [name for join in joins for name in (join.many, join.one)]
    known = {fold_name(name) for name in found}
    for name in [*used, default_table]:
        if name and fold_name(name) not in known:
            found[name] = ModelTable(id=name, source=name)
            known.add(fold_name(name))
    return found

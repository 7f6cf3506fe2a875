"""The short form: metrics, dimensions, filters and exclusions with `expr`, and what is needed to join their tables."""

import re
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from opposable.ask.semantics.model import (
    MAX_ITEMS,
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
from opposable.ask.semantics.yaml_reader import Document, YamlPath
from opposable.ask.semantics.yaml_validation import checked
from opposable.domain.specs import Frozen
from opposable.sql.name_similarity import suggestions
from opposable.sql.schema import folded_name, unquoted

T = TypeVar("T", bound=Term)

_KINDS: dict[str, type[Term]] = {"metrics": Metric, "dimensions": Dimension, "filters": Filter, "exclusions": Exclusion}
_TOP = (*SECTIONS, "default_filters", "name", "description", "table", "tables", "joins", "time", "dialect", "version")
_NAME = r'("(?:[^"]|"")+"|`[^`]+`|\w+)'
_EQUAL = re.compile(rf"\s*{_NAME}\s*\.\s*{_NAME}\s*=\s*{_NAME}\s*\.\s*{_NAME}\s*")


def _one_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]


class _TableText(Frozen):
    source: str = ""
    time: str = ""
    key: Texts = ()
    synonyms: Texts = ()
    description: str = ""


class _JoinText(Frozen):
    from_: str = Field(alias="from")
    to: str


class _Head(Frozen):
    name: str = ""
    description: str = ""
    table: str = ""
    time: str = ""
    dialect: str = ""
    default_filters: Texts = ()


def read_short_form(document: Document) -> SemanticModel:
    """A model from the seed's YAML.

    Raises:
        BadInput: with file, line and what would be right.
    """
    data: dict[str, Any] = document.data
    for key in data:
        if key not in _TOP:
            near = suggestions(key, _TOP, 1)
            raise document.error(
                (key,), f"there is no such section; {f'did you mean {near[0]}?' if near else _known()}"
            )
    head = checked(_Head, {key: data[key] for key in _Head.model_fields if key in data}, document, ())
    lines: dict[str, int] = {}
    sections = {section: _section(document, section, head.table, lines) for section in SECTIONS}
    if not sections["metrics"] and not sections["dimensions"]:
        raise document.error((), "it defines no metrics and no dimensions: add at least one metric with an expr.")
    _refuse_shared_ids(document, sections, lines)
    joins = _joins(document, lines)
    tables = _tables(document, sections, joins, head.table, lines)
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


def _known() -> str:
    return f"the sections are {', '.join(_TOP)}."


def _section(document: Document, section: str, table: str, lines: dict[str, int]) -> dict[str, Any]:
    """The terms of one section by id, written as a mapping (id: …) or as a list of mappings with an id."""
    found: dict[str, Term] = {}
    for path, ref, given in _items(document, section):
        body = {"expr": given} if isinstance(given, str) else given
        if not isinstance(body, dict):
            raise document.error(path, "must be an expression, or a mapping with expr.")
        if "id" in body and body["id"] != ref:
            raise document.error((*path, "id"), f"is not {ref}: leave it out, the key is the id.")
        if ref in found:
            raise document.error(path, f"{ref} stands twice: keep one of them.")
        term = checked(_KINDS[section], _lists({**body, "id": ref}), document, path)
        found[ref] = term if term.table or not table else term.model_copy(update={"table": table})
        lines[f"{section}.{ref}"] = document.line(path)
        lines |= {f"{section}.{ref}.{key}": document.line((*path, key)) for key in body}
    if len(found) > MAX_ITEMS:
        raise document.error((section,), f"{len(found)} entries: at most {MAX_ITEMS} are read.")
    return found


def _items(document: Document, section: str) -> list[tuple[YamlPath, str, Any]]:
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
                    raise document.error((section, index), "must be a mapping with an id and an expr.")
                items.append(((section, index), ref, {k: v for k, v in body.items() if k not in ("id", "name")}))
            return items
        case _:
            raise document.error((section,), "must be a mapping: id, then its expr.")


def _lists(body: dict[str, Any]) -> dict[str, Any]:
    """The same with one text made a list where a list belongs."""
    for key in ("synonyms", "default_filters"):
        if isinstance(body.get(key), str):
            body[key] = (body[key],)
    if isinstance(body.get("values"), dict):
        body["values"] = {k: (v,) if isinstance(v, str) else v or () for k, v in body["values"].items()}
    return body


def _refuse_shared_ids(document: Document, sections: dict[str, dict[str, Any]], lines: dict[str, int]) -> None:
    """An intent names filters, dimensions and metrics in one field, so their ids are one space."""
    seen: dict[str, str] = {}
    for section, terms in sections.items():
        for ref in terms:
            if ref in seen:
                first = f"{seen[ref]} (line {lines[f'{seen[ref]}.{ref}']})"
                raise document.error((section, ref), f"the id {ref} is used in {first} already: give it another.")
            seen[ref] = section


def _joins(document: Document, lines: dict[str, int]) -> tuple[Join, ...]:
    given = document.data.get("joins") or []
    if not isinstance(given, list):
        raise document.error(("joins",), "must be a list of conditions such as orders.customer_id = customers.id.")
    found: list[Join] = []
    for index, item in enumerate(given):
        text = item
        if isinstance(item, dict):
            both = checked(_JoinText, item, document, ("joins", index))
            text = f"{both.from_} = {both.to}"
        join = parse_join(text) if isinstance(text, str) else None
        if join is None:
            right = "many.column = one.column, such as orders.customer_id = customers.id (AND for more columns)"
            raise document.error(("joins", index), f"{text!r} is no join: write {right}.")
        lines[f"joins.{join.text}"] = document.line(("joins", index))
        found.append(join)
    return tuple(found)


def parse_join(text: str) -> Join | None:
    """The join that `many.a = one.b [AND …]` says, or None when it says none."""
    many = one = ""
    on: list[tuple[str, str]] = []
    for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        match = _EQUAL.fullmatch(part)
        if match is None:
            return None
        left, a, right, b = (unquoted(name) for name in match.groups())
        if on and (left, right) != (many, one):
            return None
        many, one = left, right
        on.append((a, b))
    return Join(many=many, one=one, on=tuple(on))


def _tables(
    document: Document,
    sections: dict[str, dict[str, Any]],
    joins: tuple[Join, ...],
    default: str,
    lines: dict[str, int],
) -> dict[str, ModelTable]:
    """The tables that are declared, and those that are merely used, under their own names."""
    given = document.data.get("tables") or {}
    if isinstance(given, list):
        given = {name: {} for name in given if isinstance(name, str)}
    if not isinstance(given, dict):
        raise document.error(("tables",), "must be a mapping: name, then source, time, key.")
    found: dict[str, ModelTable] = {}
    for name, body in given.items():
        text = checked(_TableText, body or {}, document, ("tables", name))
        found[name] = ModelTable(id=name, **text.model_dump(exclude={"source"}), source=text.source or name)
        lines[f"tables.{name}"] = document.line(("tables", name))
    used = [term.table for terms in sections.values() for term in terms.values()]
    used += [name for join in joins for name in (join.many, join.one)]
    known = {folded_name(name) for name in found}
    for name in [*used, default]:
        if name and folded_name(name) not in known:
            found[name] = ModelTable(id=name, source=name)
            known.add(folded_name(name))
    return found

"""Names of a query that the database does not have, and how to correct them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from opposable.domain.localized_text import LocalizedText
from opposable.sql import messages
from opposable.sql.function_allowlist import Dialect
from opposable.sql.name_scopes import Ctes, FromSource, Scope
from opposable.sql.name_similarity import suggest_names
from opposable.sql.schema import DatabaseSchema, fold_name, quote_name, quote_table_path, to_one_line

_MAX_LISTED_NAMES = 20
_MAX_LISTED_OWNERS = 5
_MAX_LISTED_TABLES = 3
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


@dataclass(frozen=True, slots=True)
class Replacement:
    """New text for the characters `start` to `end` (exclusive) of a query."""

    start: int
    end: int
    text: str
    description: str


@dataclass(frozen=True, slots=True)
class NameProblem:
    """A name that the database does not have.

    `message` says what is wrong and what exists. `repair` is set where the name is one of the database in another letter
    case, without its quotes or in full-width characters. `tables` are the full names of the tables without that column.
    """

    name: str
    message: str
    repair: Replacement | None = None
    tables: frozenset[str] = frozenset()


def unknown_table(item: Any, ctes: Ctes, schema: DatabaseSchema, dialect: Dialect) -> NameProblem:
    """Return the problem of a table that is neither in the schema nor a WITH name."""
    names = [*(table.full_name for table in schema.tables), *(source.label for source in ctes.values())]
    # Models take a column of codes or names for a table of its own.
    owners = [table.full_name for table in schema.tables if table.find_column(item.name) is not None]
    parts = [messages.unknown_table(".".join(part.name for part in item.parts))]
    parts += [messages.table_is_a_column(item.name, owners[:_MAX_LISTED_OWNERS])] if owners else []
    parts += _list_choices("Tables", suggest_names(item.name, names), names)
    match = _find_same_name(item.name, names)
    repair = (
        _replace(item.this, _quote_full_name(match, schema, dialect), "table")
        if match not in (None, item.name) and not item.db
        else None
    )
    return NameProblem(item.name, messages.join_messages(parts), repair)


_ENGINE_NAMES: dict[Dialect, str] = {"postgres": "PostgreSQL", "mysql": "MySQL", "clickhouse": "ClickHouse"}


def miswritten_table(item: Any, schema: DatabaseSchema, dialect: Dialect) -> NameProblem:
    """Return the problem of a table that the engine reads as another name, or looks for in another schema."""
    same_name = [t for t in (*schema.tables, *schema.partitions) if fold_name(t.name) == fold_name(item.name)]
    path = item.db or schema.default_schema
    of_path = [table for table in same_name if fold_name(table.schema or schema.default_schema) == fold_name(path)]
    paths = [quote_table_path(table, dialect) for table in of_path or same_name]
    message = messages.miswritten_name("table", item.name, _ENGINE_NAMES[dialect], paths)
    start, end = item.parts[-2:][0].meta.get("start"), item.this.meta.get("end")
    repair = None
    if len(paths) == 1 and start is not None and end is not None:
        repair = Replacement(start, end + 1, paths[0], messages.name_replaced("table", item.name, paths[0]))
    return NameProblem(item.name, message, repair)


def miswritten_column(name: Any, column: str, sources: Iterable[FromSource], dialect: Dialect) -> NameProblem:
    """Return the problem of a column that the engine reads as another name."""
    text = quote_name(column, dialect)
    message = messages.miswritten_name("column", name.name, _ENGINE_NAMES[dialect], [text])
    having = [source for source in sources if column in (source.columns or ())]
    return NameProblem(name.name, message, _replace(name, text, "column"), _get_tables(having))


def unknown_alias(owner: Any, column: Any, scope: Scope) -> NameProblem:
    """Return the problem of a qualifier that is not a table or alias in scope."""
    sources = list({name: source for each in scope.iter_scopes() for name, source in each.sources.items()}.values())
    having = [source.label for source in sources if source.columns is not None and source.has_column(column.name)]
    parts = [messages.unknown_alias(owner.name, column.name, [source.label for source in sources])]
    parts += [messages.column_of_sources(column.name, having)] if having else []
    return NameProblem(owner.name, messages.join_messages(parts))


def misplaced_column(
    column: Any, source: FromSource, scope: Scope, schema: DatabaseSchema, dialect: Dialect
) -> NameProblem:
    """Return the problem of a column that its qualifier does not have."""
    siblings = next(each for each in scope.iter_scopes() if source in each.sources.values()).sources.values()
    others = [
        other
        for other in siblings
        if other is not source and other.columns is not None and other.has_column(column.name)
    ]
    names = source.columns or ()
    match = _find_same_name(column.name, names)
    parts = [messages.source_lacks_column(_describe_source(source), column.name)]
    if others:
        parts.append(messages.sources_have_it([_describe_source(other) for other in others]))
        similar = [name for name in names if fold_name(column.name) in fold_name(name)]
        parts += [messages.did_you_mean(similar)] if similar else []
    else:
        parts += _list_choices("Its columns", suggest_names(column.name, names), names)
        parts += [] if match else _list_other_tables(column.name, schema)
    repair = _replace(column, quote_name(match, dialect), "column") if match else None
    return NameProblem(column.name, messages.join_messages(parts), repair, _get_tables([source]))


def unknown_column(name: Any, scope: Scope, schema: DatabaseSchema, dialect: Dialect) -> NameProblem:
    """Return the problem of an unqualified column that no source in scope has."""
    sources = [source for each in scope.iter_scopes() for source in each.sources.values()]
    names = [column for source in sources for column in source.columns or ()]
    labels = list(dict.fromkeys(_describe_source(source) for source in sources))
    parts = [messages.unknown_column(name.name, labels)]
    parts += _list_choices("Columns", suggest_names(name.name, names), names)
    match = _find_same_name(name.name, names)
    repair = None
    if match and sum(source.has_column(match) for source in sources if source.columns is not None) == 1:
        repair = _replace(name, quote_name(match, dialect), "column")
    elif not match:
        parts += _list_other_tables(name.name, schema)
        if dialect in ("duckdb", "postgres") and name.args.get("quoted"):
            parts.append(messages.text_in_double_quotes())
    return NameProblem(name.name, messages.join_messages(parts), repair, _get_tables(sources))


def _find_same_name(name: str, names: Iterable[str]) -> str | None:
    """Return the only one of `names` that differs in letter case and full-width characters only, as prompts show it."""
    matches = {other for other in names if _normalize(other) == _normalize(name)}
    return matches.pop() if len(matches) == 1 else None


def _normalize(name: str) -> str:
    return to_one_line(name.translate(_HALF_WIDTH)).lower()


def _replace(name: Any, text: str, kind: Literal["table", "column"]) -> Replacement | None:
    start, end = name.meta.get("start"), name.meta.get("end")
    if start is None or end is None:
        return None
    return Replacement(start, end + 1, text, messages.name_replaced(kind, name.name, text))


def _get_tables(sources: Iterable[FromSource]) -> frozenset[str]:
    return frozenset(source.table.full_name for source in sources if source.table is not None)


def _describe_source(source: FromSource) -> str:
    if source.table is None or fold_name(source.label) == fold_name(source.table.name):
        return source.label or "the subquery"
    return f"{source.table.full_name} (alias {source.label})"


def _list_choices(label: str, similar_names: Sequence[str], names: Iterable[str]) -> list[LocalizedText]:
    """Return the similar names as a message, or all names where none is similar."""
    if similar_names:
        return [messages.did_you_mean(similar_names)]
    unique = list(dict.fromkeys(names))
    listed = unique[:_MAX_LISTED_NAMES] + (["…"] if len(unique) > _MAX_LISTED_NAMES else [])
    return [messages.existing_names(label, listed)] if listed else []


def _list_other_tables(column: str, schema: DatabaseSchema) -> list[LocalizedText]:
    tables = [table.full_name for table in schema.tables if table.find_column(column)]
    return [messages.column_in_other_tables(column, tables[:_MAX_LISTED_TABLES])] if tables else []


def _quote_full_name(full_name: str, schema: DatabaseSchema, dialect: Dialect) -> str:
    table = schema.find_table(full_name)
    return quote_name(full_name, dialect) if table is None else quote_table_path(table, dialect)

"""Layer 1: lets one reading statement pass and refuses everything else, before any engine sees it."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused
from opposable.sql.function_allowlist import BEFORE_PARENTHESIS, FUNCTIONS, TABLE_FUNCTIONS, Dialect
from opposable.sql.lexer import segments
from opposable.sql.name_similarity import SURE, likeness, suggestions
from opposable.sql.postgres_tree_guard import refuse_strings, refuse_tree
from opposable.sql.schema import Schema, folded_name, one_line

MAX_CHARACTERS = 50_000
MAX_TOKENS = 10_000
MAX_DEPTH = 60
MAX_SELECTS = 200
MAX_UNARY = 50
_MISSPELT = 0.8

_FIRST_WORDS = frozenset({"select", "with", "from", "values", "table"})
_ROOTS = frozenset({"Select", "Union", "Except", "Intersect", "Subquery", "Values"})
_NODE_NAMES = """Alias Aliases All Any AtIndex AtTimeZone Between BitString Boolean Bracket ByteString CTE Case Column ColumnDef
    Comprehension Cube DataType DataTypeParam Distinct Dot Except Fetch Filter ForIn From Group GroupingSets Having
    HavingMax HexString Identifier IgnoreNulls In IndexTableHint Intersect Interval IntervalSpan JSON JSONKeyValue Join
    Kwarg Lambda Lateral Limit LimitOptions Literal National Null Offset Order Ordered Parameter Pivot PivotAlias
    PivotAny Placeholder PositionalColumn PropertyEQ Pseudocolumn Qualify RawString RespectNulls Rollup Select Slice
    Star Subquery Table TableAlias TableSample Tuple UnicodeString Union Unnest UnpivotColumns Values Var Where Window
    WindowSpec With WithinGroup"""
_NODES = frozenset(_NODE_NAMES.split())
_STRINGS = frozenset({"STRING", "NATIONAL_STRING", "RAW_STRING"})
_SYSTEM_PREFIXES = ("sqlite_", "pragma_", "duckdb_", "pg_", "fts3tokenize", "dbstat", "bytecode", "tables_used")
_SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog", "system", "temp"})
_ONLY_READING = "only one reading statement (SELECT, WITH … SELECT, VALUES) may run here"


@dataclass(frozen=True, slots=True)
class Query:
    """A statement that passed the guard: its text and sqlglot's tree of it."""

    sql: str
    dialect: Dialect
    tree: Any


def guard(sql: str, dialect: Dialect, schema: Schema) -> Query:
    """The one reading statement in `sql`.

    Raises:
        ToolRefused: it does something else than read tables of `schema` with functions from the list.
        InvalidArguments: it is no SQL of this dialect.
    """
    text = _plain_text(sql)
    if dialect == "postgres":
        refuse_strings(text)
    tokens = _tokens(text, dialect)
    tree = _parse(text, dialect)
    if type(tree).__name__ not in _ROOTS:
        raise ToolRefused(f"{_statement_name(text)} is not allowed: {_ONLY_READING}.")
    _refuse_nodes(tree)
    _refuse_functions(tokens, tree, dialect)
    _refuse_tables(tree, schema)
    if dialect == "postgres":
        refuse_tree(tree)
    return Query(text, dialect, tree)


def _plain_text(sql: str) -> str:
    if not sql.strip():
        raise invalid_sql("The SQL is empty: write one SELECT statement.", sql)
    if len(sql) > MAX_CHARACTERS:
        raise ToolRefused(f"The SQL has {len(sql)} characters: at most {MAX_CHARACTERS} are allowed.")
    if "\0" in sql or any("\ud800" <= char <= "\udfff" for char in sql):
        raise ToolRefused("The SQL contains a NUL or broken Unicode character: leave it out.")
    kept: list[str] = []
    for part in segments(sql):
        if not part.closed:
            raise invalid_sql(f"A {part.kind} that begins at character {part.start + 1} is never closed.", sql)
        if part.kind == "comment" and part.text.startswith("/*!"):
            raise ToolRefused("Comments of the form /*! … */ are not allowed: leave them out.")
        if part.kind == "comment" and "/*" in part.text[2:]:
            raise ToolRefused("Comments within comments are not allowed: leave them out.")
        kept.append(" " if part.kind == "comment" else part.text)
    return "".join(kept).strip().rstrip(";").strip()


def _tokens(sql: str, dialect: Dialect) -> list[Any]:
    import sqlglot
    from sqlglot.errors import SqlglotError

    first = sql.lstrip("( \t\r\n").split(None, 1)[:1]
    word = first[0].split("(")[0].strip("*;").casefold() if first else ""
    if likeness(word, "select") > _MISSPELT and word != "select":
        raise invalid_sql(f"The SQL must begin with SELECT or WITH, not {one_line(word)}.", sql)
    if word not in _FIRST_WORDS:
        raise ToolRefused(f"{_statement_name(sql)} is not allowed: {_ONLY_READING}.")
    try:
        tokens = list(sqlglot.tokenize(sql, dialect=dialect))
    except SqlglotError as error:
        raise invalid_sql(_syntax_sentence(error), sql) from error
    if len(tokens) > MAX_TOKENS:
        raise ToolRefused(f"The SQL has {len(tokens)} words and signs: at most {MAX_TOKENS} are allowed.")
    _refuse_depth(tokens)
    return tokens


def _refuse_depth(tokens: list[Any]) -> None:
    """Keeps the parser's recursion, ours, and the engine's within bounds."""
    depth = deepest = unary = selects = 0
    for token in tokens:
        kind = token.token_type.name
        if kind in {"L_PAREN", "L_BRACKET", "L_BRACE", "CASE"}:
            depth += 1
            deepest = max(deepest, depth)
        elif kind in {"R_PAREN", "R_BRACKET", "R_BRACE", "END"}:
            depth -= 1
        selects += kind == "SELECT"
        unary = unary + 1 if kind in {"NOT", "DASH", "TILDE", "PLUS"} else 0
        if unary > MAX_UNARY:
            raise ToolRefused(f"More than {MAX_UNARY} signs in a row are not allowed: simplify the expression.")
    if deepest > MAX_DEPTH:
        raise ToolRefused(f"The SQL is nested {deepest} deep: at most {MAX_DEPTH} levels are allowed.")
    if selects > MAX_SELECTS:
        raise ToolRefused(f"The SQL has {selects} SELECTs: at most {MAX_SELECTS} are allowed.")


def _parse(sql: str, dialect: Dialect) -> Any:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        statements = [tree for tree in sqlglot.parse(sql, dialect=dialect) if tree is not None]
    except SqlglotError as error:
        raise invalid_sql(_syntax_sentence(error), sql) from error
    except RecursionError as error:
        raise ToolRefused("The SQL is nested too deeply: simplify it.") from error
    if len(statements) != 1:
        raise ToolRefused(f"The SQL holds {len(statements)} statements: {_ONLY_READING}.")
    return statements[0]


def _refuse_nodes(tree: Any) -> None:
    from sqlglot import exp

    for node in tree.walk():
        name = type(node).__name__
        if name == "Select" and not node.expressions and not node.args.get("from_"):
            raise invalid_sql("A SELECT here selects nothing: name its columns.", node.sql())
        if name in _NODES or isinstance(node, exp.Func | exp.Binary | exp.Unary | exp.Predicate | exp.JSONPathPart):
            continue
        if isinstance(node, exp.JSONPath | exp.Interval | exp.TimeUnit):
            continue
        raise ToolRefused(f"{_words(name)} is not allowed in a query: {_ONLY_READING}.")


def _refuse_functions(tokens: list[Any], tree: Any, dialect: Dialect) -> None:
    from sqlglot import exp

    aliases = Counter(name.name.casefold() for name in tree.find_all(exp.TableAlias) if name.columns)
    allowed = FUNCTIONS[dialect] | TABLE_FUNCTIONS[dialect]
    for name, times in Counter(_called(tokens)).items():
        keyword = name.split()[-1] in BEFORE_PARENTHESIS  # some tokens are two words: ORDER BY
        if not keyword and name not in allowed and times > aliases[name]:  # an alias's own list of columns is no call
            raise _function_refused(name, dialect)
    for node in tree.find_all(exp.Anonymous, exp.AnonymousAggFunc):
        if node.name.casefold() not in allowed:
            raise _function_refused(node.name, dialect)
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func) and _function_name(table.this) not in TABLE_FUNCTIONS[dialect]:
            raise _function_refused(_function_name(table.this), dialect)


def _called(tokens: list[Any]) -> Iterator[str]:
    """The words that stand directly before a parenthesis."""
    for token, following in pairwise(tokens):
        word = token.text.casefold()
        if following.token_type.name != "L_PAREN" or token.token_type.name in _STRINGS:
            continue
        if word and (word[0].isalpha() or word[0] == "_"):
            yield word


def _function_name(node: Any) -> str:
    from sqlglot import exp

    if isinstance(node, exp.GenerateSeries):
        return "generate_series"
    return str(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).casefold()


def _function_refused(name: str, dialect: Dialect) -> ToolRefused:
    near = [other for other in suggestions(name, FUNCTIONS[dialect]) if likeness(name, other) > SURE]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return ToolRefused(f"The function {name} is not available here: use the usual functions of {dialect}.{hint}")


def _refuse_tables(tree: Any, schema: Schema) -> None:
    """Refuses what is a system table or a file; a merely unknown name is left to the check of names."""
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or _known(table, schema):
            continue
        name, path = table.name.casefold(), table.db.casefold()
        if name.startswith(_SYSTEM_PREFIXES) or path in _SYSTEM_SCHEMAS or table.catalog.casefold() in _SYSTEM_SCHEMAS:
            raise ToolRefused(f"The system table {table.name} may not be read: use the tables of this database.")
        if any(sign in name for sign in "/\\*?") or ("." in name and table.this.quoted):
            raise ToolRefused(f"Files may not be read: {one_line(table.name)} is no table of this database.")


def refuse_unlisted(query: Query, schema: Schema) -> None:
    """Refuses tables that are not listed in `schema`, whatever the engine would find under their names.

    Raises:
        ToolRefused: there is one.
    """
    from sqlglot import exp

    for table in query.tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not _known(table, schema):
            raise ToolRefused(f"There is no table {one_line(table.name)} here: use the tables of this database.")


def _known(table: Any, schema: Schema) -> bool:
    return (not table.db and _is_cte(table)) or schema.find_named(table.name, table.db) is not None


def _is_cte(table: Any) -> bool:
    """Whether a WITH around the table gives its name to a query that can be seen from there."""
    name, at = folded_name(table.name), table
    while at is not None:
        holder = at.parent
        with_ = holder.args.get("with_") if holder is not None else None
        if with_ is not None:
            named = [folded_name(cte.alias) for cte in with_.expressions]
            if name in named:
                return True
        elif type(at).__name__ == "CTE" and holder is not None:
            named = [folded_name(cte.alias) for cte in holder.expressions]
            before = named if holder.args.get("recursive") else named[: holder.expressions.index(at)]
            if name in before:
                return True
            at = holder
        at = at.parent
    return False


def invalid_sql(sentence: str, sql: str) -> InvalidArguments:
    """The error for SQL that cannot be read or whose names are wrong."""
    return InvalidArguments((FieldProblem("sql", sentence, one_line(sql)),))


def _syntax_sentence(error: Exception) -> str:
    details = getattr(error, "errors", None) or [{}]
    first = details[0]
    what = str(first.get("description") or "it cannot be read").partition(" but got <Token")[0].rstrip(".")
    if not first.get("line"):
        return "The SQL cannot be read: check quotes, commas and parentheses."
    what = re.sub(r"Required keyword: '\w+' missing for <class '[\w.]*\.(\w+)'>", r"\1 lacks an argument", what)
    near = one_line(str(first.get("highlight") or ""))
    at = f"near {near!r} (line {first['line']}, column {first['col']})" if near else f"in line {first['line']}"
    return f"The SQL has a syntax error {at}: {what}."


def _statement_name(sql: str) -> str:
    words = sql.split(None, 1)
    return words[0].split("(")[0].upper()[:40] if words and words[0].split("(")[0] else "This statement"


def _words(class_name: str) -> str:
    return "".join(f" {char}" if char.isupper() and i else char for i, char in enumerate(class_name)).upper()

"""The first check of a query: only one read-only statement passes."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused
from opposable.sql import messages
from opposable.sql.clickhouse_functions import CLICKHOUSE_SYSTEM_TABLES
from opposable.sql.described_statements import extract_query
from opposable.sql.function_allowlist import (
    FUNCTIONS_BY_DIALECT,
    KEYWORDS_BEFORE_PARENTHESIS,
    KEYWORDS_BY_DIALECT,
    TABLE_FUNCTIONS_BY_DIALECT,
    Dialect,
)
from opposable.sql.lexer import split_segments, standardize_string
from opposable.sql.mysql_functions import MYSQL_VARIABLES
from opposable.sql.name_similarity import compute_similarity, suggest_names
from opposable.sql.postgres_tree_guard import (
    find_refused_function,
    mask_operators,
    names_table_of_row,
    refuse_ambiguous_strings,
    refuse_operators,
    refuse_qualified_functions,
    refuse_unsafe_tree,
)
from opposable.sql.schema import DatabaseSchema, fold_name, quote_identifier, to_one_line, unquote_name
from opposable.sql.unread_forms import replace_unread_forms

MAX_CHARACTERS = 50_000
MAX_TOKENS = 10_000
MAX_DEPTH = 60
MAX_SELECTS = 200
MAX_UNARY_OPERATORS = 50
_MISSPELLED_SIMILARITY = 0.8
_MIN_FUNCTION_SIMILARITY = 0.62

_BYTE_ORDER_MARK = "\ufeff"
_FIRST_WORDS = frozenset({"select", "with", "from", "values", "table"})
_ROOT_NODES = frozenset({"Select", "Union", "Except", "Intersect", "Subquery", "Values", "Pivot"})
_PIVOT_WORDS = frozenset({"pivot", "pivot_wider", "unpivot", "pivot_longer"})
"""First words of a statement of DuckDB that reads."""
_GROUPED_DIGITS = re.compile(r"(?<![\w$.])\d+(?:_\d+)+")
"""An integer such as `1_000`, of which sqlglot reads only `1` in PostgreSQL's dialect."""
_NOT_NEWLINE = re.compile(r"[^\n]")
_COMMENT_DIALECTS = frozenset({"sqlite", "mysql"})
_SEQUENCE_TABLE = re.compile(r"seq_\d+_to_\d+(_step_\d+)?")
"""The name of a table of numbers, which MariaDB makes when it is read."""
_NODE_NAMES = """Alias Aliases All Any Apply AtIndex AtTimeZone Between BitString Boolean Bracket ByteString CTE Case Column ColumnDef
    Comprehension Cube DataType DataTypeParam Distinct Dot Except Fetch Filter Final ForIn From Group GroupingSets Having
    HavingMax HexString Identifier IgnoreNulls In IndexTableHint Intersect Interval IntervalSpan Introducer JSON
    JSONColumnDef JSONKeyValue JSONSchema JSONValue Join Kwarg Lambda Lateral Limit LimitOptions Literal National Null Offset
    Nearest OnCondition Order Ordered Parameter Partition Pivot PivotAlias PivotAny Placeholder PositionalColumn PreWhere PropertyEQ
    Pseudocolumn Qualify RawString RecursiveWithSearch RespectNulls Rollup Select Slice Star Subquery Table TableAlias TableSample Tuple UnicodeString Union Unnest UnpivotColumns Values Var Variadic Where Window
    WindowSpec With WithFill WithinGroup"""
_ALLOWED_NODES = frozenset(_NODE_NAMES.split())
_STRING_TOKENS = frozenset({"STRING", "NATIONAL_STRING", "RAW_STRING"})
_SYSTEM_PREFIXES = ("sqlite_", "pragma_", "duckdb_", "pg_", "fts3tokenize", "dbstat", "bytecode", "tables_used")
_SYSTEM_SCHEMAS = frozenset(
    {"information_schema", "pg_catalog", "system", "temp", "mysql", "performance_schema", "sys"}
)


@dataclass(frozen=True, slots=True)
class Query:
    """A statement that passed the guard.

    Attributes:
        sql: Its text.
        dialect: Its dialect.
        tree: The sqlglot tree of `inner_sql`.
        inner_sql: What EXPLAIN or DESCRIBE is about, see `extract_query`; `sql` itself for any other statement.
    """

    sql: str
    dialect: Dialect
    tree: Any
    inner_sql: str


def parse_safe_query(sql: str, dialect: Dialect, schema: DatabaseSchema) -> Query:
    """Parse `sql` and check that it is one read-only statement.

    Raises:
        ToolRefused: The statement does not only read tables of `schema` with functions on the allow list.
        InvalidArguments: The text is not valid SQL of this dialect.
    """
    text = _standardize(sql, dialect)
    if dialect in ("postgres", "clickhouse"):
        refuse_ambiguous_strings(text, dialect)
    inner_sql = extract_query(text, dialect)
    masked = _mask(inner_sql, dialect)
    tokens = _tokenize(masked, dialect)
    tree = _parse(masked, tokens, dialect)
    if type(tree).__name__ not in _ROOT_NODES:
        raise ToolRefused(messages.statement_not_allowed(_get_statement_name(masked)))
    _refuse_nodes(tree, dialect)
    called_names = _refuse_functions(tokens, tree, dialect, schema)
    _refuse_tables(tree, schema)
    if dialect == "postgres":
        refuse_unsafe_tree(tree, schema)
        if name := find_refused_function(masked, tree, schema, called_names):
            raise _build_function_refusal(name, dialect)
        refuse_operators(masked, schema)
    if dialect == "mysql":
        refuse_qualified_functions(tree, dialect)
    return Query(text, dialect, tree, inner_sql)


def _standardize(sql: str, dialect: Dialect) -> str:
    """Return `sql` without comments, and with strings and names that all parsers read alike.

    SQLite and MySQL name a column by its text, so the comments within it stay, except MySQL's hints `/*+ … */`.
    """
    if not sql.strip():
        raise build_invalid_sql_error("The SQL is empty: write one SELECT statement.", sql)
    if len(sql) > MAX_CHARACTERS:
        raise ToolRefused(messages.too_many(len(sql), "characters", MAX_CHARACTERS))
    if "\0" in sql or any("\ud800" <= char <= "\udfff" for char in sql):
        raise ToolRefused("The SQL contains a NUL or broken Unicode character: leave it out.")
    code: list[str] = []
    for part in split_segments(sql, dialect):
        if not part.is_closed:
            raise build_invalid_sql_error(
                f"A {part.kind} that begins at character {part.start + 1} is never closed.", sql
            )
        if part.kind == "comment" and part.text.startswith(("/*!", "/*M!")):
            raise ToolRefused("Comments of the form /*! … */ are not allowed: leave them out.")
        if part.kind == "string":
            code.append(standardize_string(part, dialect))
        elif dialect == "duckdb" and part.text.startswith("`"):
            code.append(quote_identifier(unquote_name(part.text)))
        elif part.kind == "comment" and (dialect not in _COMMENT_DIALECTS or part.text.startswith("/*+")):
            # strings of two lines are one string
            code.append("\n" if part.text.endswith(("\r", "\n")) else " ")
        else:
            code.append(part.text)
    return "".join(code).removeprefix(_BYTE_ORDER_MARK).strip().rstrip(";").strip()


def _mask(sql: str, dialect: Dialect) -> str:
    """Return `sql` with spaces in place of what sqlglot does not need.

    That is comments, and the signs between the digits of PostgreSQL's `1_000`.
    """
    parts: list[str] = []
    for part in split_segments(sql, dialect):
        text = _NOT_NEWLINE.sub(" ", part.text) if part.kind == "comment" else part.text
        if part.kind == "code" and dialect == "postgres":
            text = _GROUPED_DIGITS.sub(lambda number: number[0].replace("_", "").rjust(len(number[0])), text)
        parts.append(text)
    return "".join(parts)


def _tokenize(sql: str, dialect: Dialect) -> list[Any]:
    import sqlglot
    from sqlglot.errors import SqlglotError

    first = sql.lstrip("( \t\r\n").split(None, 1)[:1]
    word = first[0].split("(")[0].strip("*;").casefold() if first else ""
    if compute_similarity(word, "select") > _MISSPELLED_SIMILARITY and word != "select":
        raise build_invalid_sql_error(f"The SQL must begin with SELECT or WITH, not {to_one_line(word)}.", sql)
    if word not in _FIRST_WORDS and not (dialect == "duckdb" and word in _PIVOT_WORDS):
        raise ToolRefused(messages.statement_not_allowed(_get_statement_name(sql)))
    try:
        tokens = list(sqlglot.tokenize(sql, dialect=dialect))
    except SqlglotError as error:
        raise build_invalid_sql_error(_format_parse_error(error), sql) from error
    if len(tokens) > MAX_TOKENS:
        raise ToolRefused(messages.too_many(len(tokens), "words and signs", MAX_TOKENS))
    _refuse_depth(tokens)
    return tokens


def _refuse_depth(tokens: list[Any]) -> None:
    """Refuse nesting that could exhaust the recursion limit of a parser or the engine."""
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
        if unary > MAX_UNARY_OPERATORS:
            raise ToolRefused(
                f"More than {MAX_UNARY_OPERATORS} signs in a row are not allowed: simplify the expression."
            )
    if deepest > MAX_DEPTH:
        raise ToolRefused(messages.too_deep(deepest, MAX_DEPTH))
    if selects > MAX_SELECTS:
        raise ToolRefused(messages.too_many(selects, "SELECTs", MAX_SELECTS))


def _parse(sql: str, tokens: list[Any], dialect: Dialect) -> Any:
    from sqlglot.dialects.dialect import Dialect as SqlDialect
    from sqlglot.errors import SqlglotError

    parser = SqlDialect.get_or_raise(dialect).parser()
    failures = (SqlglotError, AttributeError, TypeError, ValueError)  # the others where an operand is missing
    try:
        try:
            statements = parser.parse(tokens, sql)
        except failures:
            read_tokens = _tokenize(mask_operators(sql), dialect) if dialect == "postgres" else tokens
            statements = parser.parse(replace_unread_forms(read_tokens, dialect), sql)
        statements = [tree for tree in statements if tree is not None]
    except failures as error:
        if any(token.token_type.name == "INTO" for token in tokens):
            raise ToolRefused(messages.clause_not_allowed("INTO")) from error
        raise build_invalid_sql_error(_format_parse_error(error), sql) from error
    except RecursionError as error:
        raise ToolRefused("The SQL is nested too deeply: simplify it.") from error
    if len(statements) != 1:
        raise ToolRefused(messages.several_statements(len(statements)))
    return statements[0]


def _refuse_nodes(tree: Any, dialect: Dialect) -> None:
    from sqlglot import exp

    allowed_classes = (exp.Func, exp.Binary, exp.Unary, exp.Predicate, exp.JSONPathPart, exp.JSONPath, exp.TimeUnit)
    for node in tree.walk():
        name = type(node).__name__
        if isinstance(node, exp.Placeholder) and str(node.args.get("kind")).casefold() == "identifier":
            raise ToolRefused(f"{to_one_line(node.sql(dialect), 80)}: write names of tables and columns into the SQL.")
        if dialect == "mysql" and isinstance(node, exp.Parameter):
            raise ToolRefused(f"Variables are not allowed: leave {to_one_line(node.sql(dialect), 80)} out.")
        for clause in ("settings", "format") if isinstance(node, exp.Query) else ():
            if node.args.get(clause):
                raise ToolRefused(messages.clause_not_allowed(clause.upper()))
        if name == "Select" and not node.expressions and not node.args.get("from_"):
            raise build_invalid_sql_error("A SELECT here selects nothing: name its columns.", node.sql())
        if name == "ObjectIdentifier" and (node.name == "OID" or names_table_of_row(node, tree)):
            continue
        if name == "SessionParameter" and node.this.name.casefold() in MYSQL_VARIABLES:
            continue
        if (dialect == "mysql" and name == "Version") or (dialect == "duckdb" and name in ("Describe", "Summarize")):
            continue  # FOR SYSTEM_TIME; FROM (DESCRIBE …)
        if name not in _ALLOWED_NODES and not isinstance(node, allowed_classes):
            words = "".join(f" {char}" if char.isupper() and i else char for i, char in enumerate(name))
            raise ToolRefused(messages.clause_not_allowed(words.upper()))


def _refuse_functions(tokens: list[Any], tree: Any, dialect: Dialect, schema: DatabaseSchema) -> list[str]:
    """Refuse functions that are not allowed, and return the words that a parenthesis follows as in a call."""
    from sqlglot import exp

    searched = [table.this for table in tree.find_all(exp.Table) if _is_searched_table(table, dialect, schema)]
    aliases = Counter(name.name.casefold() for name in tree.find_all(exp.TableAlias) if name.columns)
    aliases.update(name.name.casefold() for name in searched)
    allowed = FUNCTIONS_BY_DIALECT[dialect] | TABLE_FUNCTIONS_BY_DIALECT[dialect] | schema.allowed_functions
    allowed |= {"all"}  # as sqlglot reads the keyword in a > ALL ((SELECT …))
    if dialect == "clickhouse":  # x -> x + 1 AS f defines a function: sqlglot reads its sign as an operator of JSON
        named = tree.find_all(exp.Alias, exp.CTE)
        allowed |= {node.alias.casefold() for node in named if node.this.find(exp.JSONExtract)}
    called = Counter(_iter_called_names(tokens)) - aliases  # AS t(a, b) names columns, it calls nothing
    for name in called:
        # Some tokens are two words: ORDER BY.
        keyword = name.split()[-1] in KEYWORDS_BY_DIALECT.get(dialect, KEYWORDS_BEFORE_PARENTHESIS)
        if name in schema.refused_functions or not (keyword or name in allowed):
            raise _build_function_refusal(name, dialect)
    for node in tree.find_all(exp.Anonymous, exp.AnonymousAggFunc):
        if node.name.casefold() not in allowed and not any(node is name for name in searched):
            raise _build_function_refusal(node.name, dialect)
    for table in tree.find_all(exp.Table) if dialect != "postgres" else ():  # there, all of them may be in FROM
        if not isinstance(table.this, exp.Func) or any(table.this is name for name in searched):
            continue
        if _function_name(table.this) not in TABLE_FUNCTIONS_BY_DIALECT[dialect] | schema.allowed_functions:
            raise _build_function_refusal(_function_name(table.this), dialect)
    return list(called)


def _is_searched_table(table: Any, dialect: Dialect, schema: DatabaseSchema) -> bool:
    """Whether the item is `t('words')`, SQLite's form of `t WHERE t MATCH 'words'`."""
    from sqlglot import exp

    is_call = dialect == "sqlite" and isinstance(table.this, exp.Anonymous)
    return is_call and schema.find_table_by_identifier(table.this.name, table.db) is not None


def _iter_called_names(tokens: list[Any]) -> Iterator[str]:
    """Yield the words directly before a parenthesis, and the one in ClickHouse's `APPLY(sum)`, but not units."""
    for before, token, following in zip([None, None, *tokens], [None, *tokens], tokens, strict=False):
        kind = before.token_type.name if before else ""
        is_applied = kind == "APPLY" and token.token_type.name == "L_PAREN"
        name = following if is_applied else token
        if name is None or (following.token_type.name != "L_PAREN" and not is_applied):
            continue
        if name.text.upper() == "SECOND" and (
            kind in ("STRING", "INTERVAL") or (before and before.text.upper() == "TO")
        ):
            continue  # INTERVAL '1.5' SECOND(2)
        word = name.text.casefold()
        if name.token_type.name not in _STRING_TOKENS and word and (word[0].isalpha() or word[0] == "_"):
            yield word


def _function_name(node: Any) -> str:
    from sqlglot import exp

    if isinstance(node, exp.GenerateSeries):
        return "generate_series"
    if isinstance(node, exp.JSONTable):
        return "json_table"
    return str(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).casefold()


def _build_function_refusal(name: str, dialect: Dialect) -> ToolRefused:
    similar_names = [
        other
        for other in suggest_names(name, FUNCTIONS_BY_DIALECT[dialect])
        if compute_similarity(name, other) > _MIN_FUNCTION_SIMILARITY
    ]
    return ToolRefused(messages.function_not_available(name, dialect, similar_names))


def _refuse_tables(tree: Any, schema: DatabaseSchema) -> None:
    """Refuse system tables and files.

    The name checker reports names that are only unknown.
    """
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or _is_known_table(table, schema):
            continue
        name, path = table.name.casefold(), table.db.casefold()
        if name.startswith(_SYSTEM_PREFIXES) or path in _SYSTEM_SCHEMAS or table.catalog.casefold() in _SYSTEM_SCHEMAS:
            raise ToolRefused(messages.system_table(table.name))
        if any(sign in name for sign in "/\\*?") or ("." in name and table.this.quoted):
            raise ToolRefused(messages.file_not_readable(to_one_line(table.name)))


def refuse_unlisted_tables(query: Query, schema: DatabaseSchema) -> None:
    """Refuse tables that `schema` does not list.

    Raises:
        ToolRefused: A table is not listed.
    """
    from sqlglot import exp

    for table in query.tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not _is_known_table(table, schema):
            raise ToolRefused(messages.unlisted_table(to_one_line(table.name)))


def _is_known_table(table: Any, schema: DatabaseSchema) -> bool:
    if is_with_name(table) or is_pseudo_table(table, schema):
        return True
    return schema.find_table_by_identifier(table.name, table.db) is not None


def is_pseudo_table(table: Any, schema: DatabaseSchema) -> bool:
    """Whether the item is MySQL's DUAL, numbers of MariaDB, or ClickHouse's ARRAY JOIN of an array."""
    if table.db:
        return schema.dialect == "clickhouse" and f"{table.db}.{table.name}".casefold() in CLICKHOUSE_SYSTEM_TABLES
    if schema.dialect == "mysql":
        return table.name.casefold() == "dual" or _SEQUENCE_TABLE.fullmatch(table.name.casefold()) is not None
    return type(table.parent).__name__ == "Join" and table.parent.args.get("kind") == "ARRAY"


def is_with_name(table: Any) -> bool:
    """Whether an enclosing WITH defines the name of a table."""
    name, node = fold_name(table.name), table
    while node is not None and not table.db:
        parent = node.parent
        with_ = parent.args.get("with_") if parent is not None else None
        if with_ is not None:
            if name in [fold_name(cte.alias) for cte in with_.expressions]:
                return True
        elif type(node).__name__ == "CTE" and parent is not None:
            names = [fold_name(cte.alias) for cte in parent.expressions]
            visible_names = names if parent.args.get("recursive") else names[: parent.expressions.index(node)]
            if name in visible_names:
                return True
            node = parent
        node = node.parent
    return False


def build_invalid_sql_error(sentence: str, sql: str) -> InvalidArguments:
    """Build the error for SQL that cannot be parsed or has wrong names."""
    return InvalidArguments((FieldProblem("sql", sentence, to_one_line(sql)),))


def _format_parse_error(error: Exception) -> str:
    details = getattr(error, "errors", None) or [{}]
    first = details[0]
    description = str(first.get("description") or "it cannot be read").partition(" but got <Token")[0].rstrip(".")
    if not first.get("line"):
        return messages.unreadable_sql()
    description = re.sub(
        r"Required keyword: '\w+' missing for <class '[\w.]*\.(\w+)'>", r"\1 lacks an argument", description
    )
    excerpt = to_one_line(str(first.get("highlight") or ""))
    if not excerpt:
        return messages.unreadable_sql_in_line(first["line"], description)
    return messages.unreadable_sql_near(excerpt, first["line"], first["col"], description)


def _get_statement_name(sql: str) -> str:
    words = sql.split(None, 1)
    return words[0].split("(")[0].upper()[:40] if words and words[0].split("(")[0] else "This statement"

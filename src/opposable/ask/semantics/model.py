"""The semantic model: terms over the tables and joins of a database."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from opposable.ask.semantics.yaml_reader import YamlDocument
from opposable.domain.specs import MAX_ID_CHARACTERS, FrozenModel
from opposable.sql.schema import fold_name, unquote_name

MAX_TERMS = 2_000
"""Most terms in one section of a model."""

SECTIONS = ("metrics", "dimensions", "filters", "exclusions")

_NAME_PATTERN = r'\s*("(?:[^"]|"")+"|`[^`]+`|\w+)\s*'
_EQUALITY_PATTERN = re.compile(rf"{_NAME_PATTERN}\.{_NAME_PATTERN}={_NAME_PATTERN}\.{_NAME_PATTERN}")


def _quote_name(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else '"' + name.replace('"', '""') + '"'


TextList = Annotated[tuple[str, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v or ())]
"""A list of texts; a single text is a list of one."""


class Term(FrozenModel):
    """A term that a question may name.

    Unqualified columns of `expr` belong to the table with the id `table`. `dialect` is the SQL dialect of `expr`, "" for
    that of the model.
    """

    id: str = Field(pattern=r"^\w[\w .\-]*$", max_length=MAX_ID_CHARACTERS)
    expr: str = Field(min_length=1, max_length=4_000)
    dialect: str = ""
    table: str = ""
    synonyms: TextList = ()
    description: str = ""


class Metric(Term):
    """A metric: an aggregate over `table`, or arithmetic over other metrics.

    `time` is the column or expression that dates its rows. `default_filters` are ids of filters, or conditions.
    """

    time: str = ""
    default_filters: TextList = ()
    unit: str = ""


class Dimension(Term):
    """A dimension, which groups and filters rows. `values` maps a value of the column to its other names."""

    values: dict[str, TextList] = Field(default={})
    unit: str = ""


class ModelTable(FrozenModel):
    """A table of the model. `source` is its name in the database, `key` its unique columns."""

    id: str
    source: str
    time: str = ""
    key: TextList = ()
    synonyms: TextList = ()
    description: str = ""


class Join(FrozenModel):
    """A join of many rows of `many` with one row of `one`. `on` lists the pairs of equal columns."""

    many: str
    one: str
    on: tuple[tuple[str, str], ...] = Field(min_length=1)

    @property
    def text(self) -> str:
        """The join as it is written in a semantic model."""
        many, one = _quote_name(self.many), _quote_name(self.one)
        return " AND ".join(f"{many}.{_quote_name(a)} = {one}.{_quote_name(b)}" for a, b in self.on)

    @model_validator(mode="before")
    @classmethod
    def _parse_text(cls, value: Any) -> Any:
        """Parse `many.a = one.b [AND …]`."""
        if not isinstance(value, str):
            return value
        equalities = re.split(r"\s+and\s+", value.strip(), flags=re.IGNORECASE)
        matches = [_EQUALITY_PATTERN.fullmatch(equality) for equality in equalities]
        names = [tuple(map(unquote_name, match.groups())) for match in matches if match]
        if len(names) < len(matches) or len({(many, one) for many, _, one, _ in names}) != 1:
            example = "many.column = one.column, such as orders.customer_id = customers.id (AND for more columns)"
            raise ValueError(f"{value!r} is not a join: write {example}")
        return {"many": names[0][0], "one": names[0][2], "on": [(a, b) for _, a, _, b in names]}


class SemanticModel(FrozenModel):
    """A semantic model, with its terms and tables by id.

    Attributes:
        table: The table of the terms that name none.
        filters: Conditions that are true for the rows to include.
        exclusions: Conditions that are true for the rows to exclude.
        default_filters: Ids of filters and exclusions, or conditions, that apply to every metric that reaches them.
        tables: The tables, with those that are only used.
        joins: The joins, each from many rows to one.
        time: The column or expression that dates rows where a metric and its table have none.
        dialect: The SQL dialect of the expressions; "" for the dialect of the database.
        version: The version of the file, which is not used.
        unsupported: The parts of the file that are not supported.
        document: The YAML of the model, which locates its entries.
    """

    name: str = ""
    description: str = ""
    table: str = ""
    metrics: dict[str, Metric] = Field(default={}, max_length=MAX_TERMS)
    dimensions: dict[str, Dimension] = Field(default={}, max_length=MAX_TERMS)
    filters: dict[str, Term] = Field(default={}, max_length=MAX_TERMS)
    exclusions: dict[str, Term] = Field(default={}, max_length=MAX_TERMS)
    default_filters: TextList = ()
    tables: dict[str, ModelTable] = Field(default={})
    joins: tuple[Join, ...] = ()
    time: str = ""
    dialect: str = ""
    version: Any = None
    unsupported: tuple[str, ...] = ()
    document: YamlDocument | None = None

    @model_validator(mode="before")
    @classmethod
    def _complete_entries(cls, data: Any) -> Any:
        """Give each term and table its id; a text is the expression of a term."""
        if not isinstance(data, dict):
            return data
        default_table = {"table": data["table"]} if data.get("table") else {}
        completed = dict(data)
        for section in (*SECTIONS, "tables"):
            entries = data.get(section) or {}
            if not isinstance(entries, dict):
                continue
            completed[section] = dict(entries)
            for ref, entry in entries.items():
                defaults = {"source": ref} if section == "tables" else default_table
                body = {"expr": entry} if isinstance(entry, str) else entry or {}
                if isinstance(body, dict):
                    completed[section][ref] = defaults | body | {"id": ref}
        return completed

    @model_validator(mode="after")
    def _add_used_tables(self) -> Self:
        names = [term.table for _, term in self.iter_terms()]
        names += [name for join in self.joins for name in (join.many, join.one)]
        for name in (*names, self.table):
            if name and self.find_table(name) is None:
                self.tables[name] = ModelTable(id=name, source=name)
        return self

    def iter_terms(self) -> Iterator[tuple[str, Term]]:
        """Yield all terms with the names of their sections."""
        for section in SECTIONS:
            for term in getattr(self, section).values():
                yield section, term

    def get_join_tables(self, join: Join) -> tuple[str, str]:
        """Return the ids of the many table and the one table of a join."""
        many, one = (self.find_table(name) for name in (join.many, join.one))
        assert many is not None  # the model has every table that a join names
        assert one is not None
        return many.id, one.id

    def find_table(self, name: str) -> ModelTable | None:
        """Return the table with this id, case-insensitively."""
        if name in self.tables:
            return self.tables[name]
        folded_name = fold_name(name)
        return next((table for table in self.tables.values() if fold_name(table.id) == folded_name), None)

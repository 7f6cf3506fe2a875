"""A semantic model in memory: metrics, dimensions, filters, exclusions, and the tables and joins they stand on."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from opposable.domain.specs import FrozenModel
from opposable.sql.schema import fold_name

MAX_TERMS = 2_000
"""Metrics, dimensions, filters and exclusions that one model may hold together."""


class Term(FrozenModel):
    """Something with an id that a question may name. `table` is the id of the table its bare columns belong to."""

    id: str = Field(pattern=r"^\w[\w .\-]{0,99}$")
    expr: str = Field(min_length=1, max_length=4_000)
    table: str = ""
    synonyms: tuple[str, ...] = ()
    description: str = ""


class Metric(Term):
    """A number: an aggregate over `table`, or arithmetic over the ids of other metrics (then without a table).

    `time` is the column or expression that dates its rows, `default_filters` are ids of filters or conditions.
    """

    time: str = ""
    default_filters: tuple[str, ...] = ()
    unit: str = ""


class Dimension(Term):
    """What rows are grouped and filtered by. `values` maps a value of the column to what people call it."""

    values: dict[str, tuple[str, ...]] = Field(default={})
    unit: str = ""


class Filter(Term):
    """A named condition: `expr` is true for the rows that stay."""


class Exclusion(Term):
    """A named condition: `expr` is true for the rows that are left out."""


class ModelTable(FrozenModel):
    """A table under the name the model gives it. `source` is its name in the database, `key` its unique columns."""

    id: str
    source: str
    time: str = ""
    key: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    description: str = ""


class Join(FrozenModel):
    """Many rows of `many` have one row of `one`; `on` pairs a column of the first with one of the second."""

    many: str
    one: str
    on: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The join as the short form writes it."""
        return " AND ".join(f"{self.many}.{a} = {self.one}.{b}" for a, b in self.on)


class SemanticModel(FrozenModel):
    """Everything a model defines, by id.

    `dialect` is the SQL its expressions are written in, "" for that of the database they run on. `unread` names what
    a file held that is not supported. `lines` maps "metrics.revenue" to a line of `file`.
    """

    name: str = ""
    description: str = ""
    metrics: dict[str, Metric] = Field(default={})
    dimensions: dict[str, Dimension] = Field(default={})
    filters: dict[str, Filter] = Field(default={})
    exclusions: dict[str, Exclusion] = Field(default={})
    default_filters: tuple[str, ...] = ()
    tables: dict[str, ModelTable] = Field(default={})
    joins: tuple[Join, ...] = ()
    time: str = ""
    dialect: str = ""
    unsupported: tuple[str, ...] = ()
    file: Path | None = None
    lines: dict[str, int] = Field(default={})

    def iter_terms(self) -> Iterator[tuple[str, Term]]:
        """Every metric, dimension, filter and exclusion, with the name of its section."""
        for section in SECTIONS:
            for term in getattr(self, section).values():
                yield section, term

    def find_term(self, term_id: str) -> Term | None:
        """The metric, dimension, filter or exclusion of this id."""
        return next((found for section in SECTIONS if (found := getattr(self, section).get(term_id))), None)

    def find_table(self, name: str) -> ModelTable | None:
        """The table of this id, in any case."""
        if name in self.tables:
            return self.tables[name]
        wanted = fold_name(name)
        return next((table for table in self.tables.values() if fold_name(table.id) == wanted), None)

    def describe_location(self, path: str) -> str:
        """Where `path` ("metrics.revenue") stands, for people: "model.yaml, line 7: metrics.revenue"."""
        found = path
        while found and found not in self.lines:
            found = found.rpartition(".")[0]
        file = self.file.name if self.file else ""
        line = f"line {self.lines[found]}" if found else ""
        before = ", ".join(part for part in (file, line) if part)
        return f"{before}: {path}" if before else path


SECTIONS = ("metrics", "dimensions", "filters", "exclusions")

"""The semantic model: terms over the tables and joins of a database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from opposable.domain.specs import MAX_ID_CHARACTERS, FrozenModel
from opposable.sql.schema import fold_name

MAX_TERMS = 2_000
"""Most terms in one section of a model."""


def _text_to_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value or ()


TextList = Annotated[tuple[str, ...], BeforeValidator(_text_to_tuple)]
"""A list of texts; a single text is a list of one."""


class Term(FrozenModel):
    """A term that a question may name.

    Unqualified columns of `expr` belong to the table with the id `table`.
    """

    id: str = Field(pattern=r"^\w[\w .\-]*$", max_length=MAX_ID_CHARACTERS)
    expr: str = Field(min_length=1, max_length=4_000)
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
    """A dimension, which groups and filters rows.

    `values` maps a value of the column to its other names.
    """

    values: dict[str, TextList] = Field(default={})
    unit: str = ""


class Filter(Term):
    """A named condition that is true for the rows to include."""


class Exclusion(Term):
    """A named condition that is true for the rows to exclude."""


class ModelTable(FrozenModel):
    """A table of the model.

    `source` is its name in the database, `key` its unique columns.
    """

    id: str
    source: str
    time: str = ""
    key: TextList = ()
    synonyms: TextList = ()
    description: str = ""


class Join(FrozenModel):
    """A join of many rows of `many` with one row of `one`.

    `on` lists the pairs of equal columns.
    """

    many: str
    one: str
    on: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The join in the notation of the short form."""
        return " AND ".join(f"{self.many}.{a} = {self.one}.{b}" for a, b in self.on)


class SemanticModel(FrozenModel):
    """A semantic model, with its terms and tables by id.

    Attributes:
        name: The name of the model.
        description: What the model describes.
        metrics: The metrics.
        dimensions: The dimensions.
        filters: The named filters.
        exclusions: The named exclusions.
        default_filters: Ids of filters and exclusions, or conditions, that apply to every metric that reaches them.
        tables: The tables.
        joins: The joins, each from many rows to one.
        time: The column or expression that dates rows where a metric and its table have none.
        dialect: The SQL dialect of the expressions; "" for the dialect of the database.
        unsupported: The parts of the file that are not supported.
        file: The file of the model.
        lines: The lines of `file`, by path, such as "metrics.revenue".
    """

    name: str = ""
    description: str = ""
    metrics: dict[str, Metric] = Field(default={})
    dimensions: dict[str, Dimension] = Field(default={})
    filters: dict[str, Filter] = Field(default={})
    exclusions: dict[str, Exclusion] = Field(default={})
    default_filters: TextList = ()
    tables: dict[str, ModelTable] = Field(default={})
    joins: tuple[Join, ...] = ()
    time: str = ""
    dialect: str = ""
    unsupported: tuple[str, ...] = ()
    file: Path | None = None
    lines: dict[str, int] = Field(default={})

    def iter_terms(self) -> Iterator[tuple[str, Term]]:
        """Yield all terms with the names of their sections."""
        for section in SECTIONS:
            for term in getattr(self, section).values():
                yield section, term

    def find_term(self, term_id: str) -> Term | None:
        """Return the metric, dimension, filter or exclusion with this id."""
        return next((term for section in SECTIONS if (term := getattr(self, section).get(term_id))), None)

    def find_table(self, name: str) -> ModelTable | None:
        """Return the table with this id, case-insensitively."""
        if name in self.tables:
            return self.tables[name]
        folded_name = fold_name(name)
        return next((table for table in self.tables.values() if fold_name(table.id) == folded_name), None)

    def describe_location(self, path: str) -> str:
        """Describe the location of a path: "model.yaml, line 7: metrics.revenue"."""
        known_path = path
        while known_path and known_path not in self.lines:
            known_path = known_path.rpartition(".")[0]
        file = self.file.name if self.file else ""
        line = f"line {self.lines[known_path]}" if known_path else ""
        location = ", ".join(part for part in (file, line) if part)
        return f"{location}: {path}" if location else path


SECTIONS = ("metrics", "dimensions", "filters", "exclusions")

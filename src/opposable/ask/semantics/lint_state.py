"""The findings of the semantic model linter, and the state its checks share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.ask.semantics.join_graph import split_source
from opposable.ask.semantics.model import ModelTable, SemanticModel
from opposable.domain.errors import ToolError
from opposable.sql.database import Database, QueryLimits
from opposable.sql.name_checker import check_names
from opposable.sql.schema import DatabaseSchema, Table
from opposable.sql.statement_guard import parse_safe_query

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a semantic model.

    Attributes:
        severity: "error" for wrong or missing answers, "warning" for possibly wrong ones, else "info".
        location: The file, line and path.
        problem: What is wrong.
        hint: What to do.
    """

    severity: Severity
    location: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.location}: {self.problem}{f' → {self.hint}' if self.hint else ''}"


@dataclass(slots=True)
class LintState:
    """A semantic model, the database it is checked against, and the findings so far."""

    model: SemanticModel
    database: Database
    schema: DatabaseSchema
    findings: list[Finding] = field(default_factory=list)

    def add_finding(self, severity: Severity, path: str, problem: str, hint: str = "") -> None:
        """Add a finding about the entry of the model at `path`."""
        self.findings.append(Finding(severity, self.model.describe_location(path), problem, hint))

    async def fetch_rows(self, query: Any, path: str) -> Sequence[tuple[Any, ...]] | None:
        """Run a sqlglot query and return up to five rows.

        A failure adds a finding and returns None.
        """
        sql = query.sql(dialect=self.database.dialect)
        try:
            problems = check_names(parse_safe_query(sql, self.database.dialect, self.schema), self.schema)
            for problem in problems:
                self.add_finding("error", path, problem.message)
            if problems:
                return None
            await self.database.explain(sql)
            return (await self.database.run(sql, limits=QueryLimits(max_rows=5))).rows
        except ToolError as error:
            self.add_finding("error", path, str(error))
            return None

    def find_database_table(self, table: ModelTable) -> Table | None:
        """Return the database table of a model table."""
        parts = split_source(table.source)
        return self.schema.find_table_by_identifier(parts[-1], parts[-2] if len(parts) > 1 else "")


def build_similar_hint(similar: Sequence[str], noun: str, names: Sequence[str]) -> str:
    """Build a hint with the most similar name, or with up to 20 names that exist."""
    return f"did you mean {similar[0]}?" if similar else f"{noun} are {', '.join(names[:20])}"

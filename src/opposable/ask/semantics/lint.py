"""The linter of semantic models: checks them against a database."""

from opposable.ask.semantics.lint_joins import check_joins
from opposable.ask.semantics.lint_state import Finding, LintState
from opposable.ask.semantics.lint_terms import check_terms
from opposable.ask.semantics.model import SemanticModel
from opposable.sql.database import Database


async def lint_semantic_model(model: SemanticModel, database: Database) -> tuple[Finding, ...]:
    """Check a semantic model against a database, with read-only queries.

    Returns:
        The findings, errors first; () for a model without problems.
    """
    state = LintState(model, database, await database.get_schema())
    await check_joins(state)
    await check_terms(state)
    for text in model.unsupported:
        state.add_finding("info", "", text)
    ranks = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(dict.fromkeys(state.findings), key=lambda finding: ranks[finding.severity]))

"""The questions of evals/semantics on the public databases, by rules alone and without a model."""

import datetime
import json
from collections import Counter
from pathlib import Path

import pytest

from opposable.ask.intent.dimension_values import load_dimension_values
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.semantics.lint import lint_semantic_model
from opposable.ask.semantics.loader import load_semantic_model
from opposable.sql.database import QueryLimits
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
SETS = ROOT / "evals" / "semantics"
DATA = ROOT.parent / "shared" / "data" / "text2sql"


def normalize_cell(value):
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(f"{value:.7g}") if number else value


def to_comparable(rows, ordered):
    cells = [tuple(normalize_cell(value) for value in row) for row in rows]
    return cells if ordered else Counter(cells)


@pytest.mark.skipif(not DATA.is_dir(), reason="the public databases are not installed")
@pytest.mark.parametrize("name", ["chinook", "tpch"])
async def test_seven_of_ten_questions_are_answered_correctly_without_a_model(name):
    model = load_semantic_model(SETS / name / "model.yaml")
    questions = [
        json.loads(line) for line in (SETS / name / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    database = await open_database(str(DATA / questions[0]["database"]))
    try:
        assert [finding for finding in await lint_semantic_model(model, database) if finding.severity != "info"] == []
        parser = SemanticParser(model, await load_dimension_values(model, database))
        answered = []
        for entry in questions:
            today = datetime.date.fromisoformat(entry["today"])
            parsed = parser.parse(entry["question"], today)
            if not parsed.is_resolved:
                continue
            answered.append(entry["question"])
            compiled = compile_intent(parsed.intent, model, database.dialect, today)
            assert isinstance(compiled, CompiledQuery), (entry["question"], compiled)
            rows = (await database.run(compiled.sql, limits=QueryLimits(max_rows=1000))).rows
            expected = to_comparable(entry["gold_rows"], entry["ordered"])
            assert to_comparable(rows, entry["ordered"]) == expected, entry["question"]
    finally:
        await database.close()
    assert len(questions) == 40
    assert len(answered) >= 28, answered

"""The questions of evals/semantics on the public databases, by rules alone and without a model."""

import datetime
import json
from collections import Counter
from pathlib import Path

import pytest

from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.intent.value_lookup import load_dimension_values
from opposable.ask.semantics.lint import lint_semantic_model
from opposable.ask.semantics.loader import load_semantic_model
from opposable.sql.database import QueryLimits
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
SETS = ROOT / "evals" / "semantics"
DATA = ROOT.parent / "shared" / "data" / "text2sql"


def cell(value):
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(f"{value:.7g}") if number else value


def rows_of(rows, ordered):
    plain = [tuple(cell(value) for value in row) for row in rows]
    return plain if ordered else Counter(plain)


@pytest.mark.skipif(not DATA.is_dir(), reason="the public databases do not lie beside this checkout")
@pytest.mark.parametrize("name", ["chinook", "tpch"])
async def test_nine_of_ten_questions_are_right_without_a_model(name):
    model = load_semantic_model(SETS / name / "model.yaml")
    questions = [
        json.loads(line) for line in (SETS / name / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    database = await open_database(str(DATA / questions[0]["database"]))
    try:
        assert [f for f in await lint_semantic_model(model, database) if f.severity != "info"] == []
        parser = SemanticParser(model, await load_dimension_values(model, database))
        wrong = []
        for asked in questions:
            today = datetime.date.fromisoformat(asked["today"])
            parsed = await parser.parse(asked["question"], today)
            compiled = compile_intent(parsed.intent, model, database.dialect, today)
            assert isinstance(compiled, CompiledQuery), (asked["question"], compiled)
            rows = (await database.run(compiled.sql, limits=QueryLimits(max_rows=1000))).rows
            if rows_of(rows, asked["ordered"]) != rows_of(asked["gold_rows"], asked["ordered"]):
                wrong.append(asked["question"])
    finally:
        await database.close()
    assert len(questions) == 40
    assert len(wrong) <= 4, wrong

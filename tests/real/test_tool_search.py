"""Tools described in English, found by needs in Chinese and German with the embedded model."""

import sys
from pathlib import Path

import pytest

from opposable.models.embedded.llama_cpp import LocalModel
from opposable.models.embedded.weights import QWEN_CODER, get_models_directory, pull_weights
from opposable.settings import Settings

sys.path.append(str(Path(__file__).parents[2] / "evals" / "tool_search"))
from measure import build_library, rank_tools, read_needs

pytestmark = [pytest.mark.anyio, pytest.mark.real_model]

SAMPLE = slice(0, None, 4)
"""Every fourth tool; evals/tool_search/measure.py measures all of them."""


@pytest.mark.parametrize("column", ["zh_held_out", "de_held_out"])
async def test_a_need_in_another_language_finds_its_tool_among_fifty(column):
    rows = read_needs()
    assert len(build_library(rows).names) == 50
    model = LocalModel(await pull_weights(QWEN_CODER, get_models_directory(Settings().home)), context_tokens=2048)
    try:
        ranks = await rank_tools(model, rows, column, SAMPLE)
    finally:
        await model.aclose()
    # of all held-out needs 45 of 50 in Chinese and 43 of 50 in German find their tool
    assert sum(rank > 0 for rank in ranks) >= 0.7 * len(ranks)

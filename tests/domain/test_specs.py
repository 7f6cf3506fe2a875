"""Specs accept the ids that users give, in any script, and reject the rest."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

import opposable
from opposable.domain.specs import AgentSpec


@pytest.mark.parametrize("agent_id", ["a", "计算器.v2", "x" * 100])
def test_ids_have_letters_of_any_script(agent_id):
    assert AgentSpec(agent_id=agent_id).agent_id == agent_id


@pytest.mark.parametrize("agent_id", ["", "a b", "a/b", "a\n", "x" * 101])
def test_other_ids_are_rejected(agent_id):
    with pytest.raises(ValidationError):
        AgentSpec(agent_id=agent_id)


def test_no_validated_pattern_repeats_a_unicode_class_many_times():
    """pydantic compiles such a pattern to 10 MB, in every process. `max_length` bounds the length at no cost."""
    sources = Path(opposable.__file__).parent.rglob("*.py")
    constants = r'(?:pattern=|_PATTERN = |_ID = )f?r?"[^"\n]*\\w[^"\n]*\{\d*,\d{2,}\}'
    found = [path.name for path in sources if re.search(constants, path.read_text())]
    assert found == []

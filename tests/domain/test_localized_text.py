"""Messages in two languages, and the values that are filled into them."""

from string import Formatter

import pytest

from opposable.agent import loop_detection, untrusted_text
from opposable.agent import messages as run_messages
from opposable.agent.assistance import prompts
from opposable.ask.assistance import confidence, misplaced_columns
from opposable.ask.intent import messages as intent_messages
from opposable.ask.team import messages as team_messages
from opposable.domain.localized_text import LocalizedText, join_localized, localize

CATALOGS = (
    confidence, intent_messages, loop_detection, misplaced_columns, prompts, run_messages, team_messages, untrusted_text
)  # fmt: skip
TEMPLATES = [text for module in CATALOGS for text in vars(module).values() if isinstance(text, LocalizedText)]


def list_fields(template):
    return {field for _, field, _, _ in Formatter().parse(template) if field is not None}


@pytest.mark.parametrize("template", TEMPLATES)
def test_both_translations_of_a_template_name_the_same_values(template):
    assert list_fields(str(template)) == list_fields(template.chinese)


def test_a_value_is_filled_into_both_translations_as_it_is():
    text = LocalizedText("{name} failed: {reason}", "{name} 失败：{reason}")
    reason = join_localized(["{a}", "{b}"], ", ", "、")
    filled = text.format(name="{reason}", reason=reason)
    assert localize(filled, "en") == "{reason} failed: {a}, {b}"
    assert localize(filled, "zh") == "{reason} 失败：{a}、{b}"

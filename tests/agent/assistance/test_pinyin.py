"""Chinese names in Latin letters."""

import pytest

from opposable.agent.assistance.argument_suggestions import suggest_arguments
from opposable.agent.assistance.pinyin import is_pinyin_of


@pytest.mark.parametrize(
    ("latin", "chinese", "same"),
    [
        ("zhang.wei", "张伟", True),
        ("Wei Zhang", "张伟", True),
        ("wangxiaoming", "王小明", True),
        ("lü.bu", "吕布", True),
        ("a.li", "阿里", True),
        ("zhao.wen", "张伟", False),
        ("z.w", "张伟", False),
        ("zhang", "张伟", False),
        ("zhang", "张", False),
        ("anna.berg", "安娜", False),
        ("", "张伟", False),
        ("zhang wei", "zhang wei", False),
        ("wei", "䶮", False),
        ("zhang yan", "张䶮", False),
        ("zhang qian", "张骞", False),
    ],
)
def test_a_name_is_spelt_syllable_by_syllable(latin, chinese, same):
    assert is_pinyin_of(latin, chinese) is same


def test_of_the_contacts_a_failure_names_the_one_so_spelt_is_meant():
    said = "There is no contact '王芳'. The contacts are: anna.berg, wang.fang, wang.fei."
    assert suggest_arguments({"to": "王芳"}, said) == {"to": "wang.fang"}
    assert suggest_arguments({"to": "李芳"}, said.replace("王芳", "李芳")) == {}

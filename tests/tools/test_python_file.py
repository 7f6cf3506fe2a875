"""Python files become modules and specs."""

from pathlib import Path

import pytest

from opposable.domain.errors import BadInput
from opposable.domain.specs import FunctionToolSpec
from opposable.tools.function_loader import load_file_tools
from opposable.tools.python_file import create_file_specs, execute_file

SOURCE = b'''
import json
from collections import Counter
from dataclasses import dataclass
from opposable import tool

print("loaded")

@dataclass
class Item:
    name: str

def stock(item: str) -> int:
    """How many pieces are in stock."""
    return {"bolt": 4711}.get(item, 0)

@tool(name="shop.refund", needs_approval=True)
def refund(order: str) -> str:
    """Refund an order."""
    return order

def unclear(*things):
    return things

def _hidden(): ...
'''


def test_each_public_function_of_the_file_has_a_spec(tmp_path, capsys):
    path = tmp_path / "shop.py"
    specs, left_out = create_file_specs(path, SOURCE)
    assert [(spec.tool_id, spec.function_name, spec.file, spec.needs_approval) for spec in specs] == [
        ("stock", "stock", path, False),
        ("shop.refund", "refund", path, True),
    ]
    assert specs[0].description == "How many pieces are in stock."
    assert left_out == {"unclear": "a model cannot pass the parameter 'things'. Use named parameters only."}
    assert capsys.readouterr() == ("", "loaded\n")


def test_another_content_has_another_version():
    first, second = (
        create_file_specs(Path("/shop.py"), content)[0][0] for content in (SOURCE, SOURCE.replace(b"4711", b"12"))
    )
    assert first.version != second.version


def test_the_names_in_all_select_the_functions():
    specs, _ = create_file_specs(Path("/shop.py"), SOURCE + b'\n__all__ = ["stock", "Item", "json"]\n')
    assert [spec.tool_id for spec in specs] == ["stock"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"function_name": "_hidden"}, "is not a public name"),
        ({"function_name": "dataclass"}, "has no dataclass"),
        ({"function_name": "refund"}, "refund is missing in __all__"),
        ({"class_name": "Item"}, "functions, not classes"),
    ],
)
def test_a_spec_can_name_the_tools_of_the_file_only(target, message):
    source = SOURCE + b'\n__all__ = ["stock", "Item", "_hidden", "dataclass"]\n'
    spec = FunctionToolSpec(tool_id="a", module_path="/shop.py", **target)
    with pytest.raises(BadInput, match=message):
        load_file_tools(spec, execute_file(Path("/shop.py"), source))


def test_a_tool_has_the_name_that_the_file_gives_it():
    specs, _ = create_file_specs(
        Path("/shop.py"), b"double = lambda n: 2 * n\n\ndef stock(item: str): ...\n\npieces = stock\n"
    )
    assert [spec.tool_id for spec in specs] == ["double", "stock", "pieces"]


def test_a_file_is_executed_once(capsys):
    source = SOURCE + b"# executed once\n"
    assert execute_file(Path("/shop.py"), source) is execute_file(Path("/shop.py"), source)
    assert capsys.readouterr().err == "loaded\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"def stock(:", "/shop.py cannot be loaded: SyntaxError: invalid syntax"),
        (b"\xff", "/shop.py cannot be loaded: SyntaxError:"),
        (b"import sys; sys.exit(3)", "/shop.py cannot be loaded: SystemExit: 3."),
        (b"import neighbour", "can import installed packages only, not other files of its folder."),
        (b"import json", "/shop.py defines no public function."),
    ],
)
def test_a_file_without_usable_code_is_an_error(tmp_path, monkeypatch, source, message):
    (tmp_path / "neighbour.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as caught:
        create_file_specs(Path("/shop.py"), source)
    assert message in str(caught.value)

"""The structure of the code: lazy imports are declared, names are unique, tests mirror the source."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "opposable"
MODULES = sorted(SOURCE.rglob("*.py"))

NOT_MIRRORED: dict[str, str] = {}
"""Test files without a module of their name -> what they cover."""


def names(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("module", MODULES, ids=names)
def test_an_import_inside_a_function_is_declared_lazy(module):
    text = module.read_text()
    lines = text.splitlines()
    undeclared = [
        node.lineno
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom | ast.Import)
        and any(name.startswith("opposable") for name in imported_modules(node))
        and "# lazy:" not in lines[node.lineno - 1] + lines[node.lineno - 2]
    ]
    assert undeclared == [], "add a comment `# lazy: reason`, or import at the top"


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]


def test_no_two_public_classes_have_one_name():
    defined = defaultdict(list)
    for module in MODULES:
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(names(module))
    assert len(defined) > 300
    assert {name: modules for name, modules in defined.items() if len(modules) > 1} == {}


def test_test_files_are_named_after_the_modules_they_test():
    found = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(found) > 100
    not_mirrored = {path for path in found if not (SOURCE / path.replace("test_", "")).is_file()}
    assert not_mirrored == NOT_MIRRORED.keys(), "name the file after the module, or say in NOT_MIRRORED what it covers"

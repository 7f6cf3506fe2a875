"""The written pages are true: their code runs, their commands parse, their links lead somewhere."""

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

import pytest
import typer

import opposable
from opposable import parsers as dialects
from opposable.app.tool_factory import create_builtin_tools
from opposable.cli import cli
from opposable.domain import errors
from opposable.domain.events import Event, StopReason
from opposable.domain.tools import FailureKind
from opposable.models.embedded.weights import QWEN_CODER, find_installed_weights, get_models_directory
from opposable.models.factory import API_KEY_VARIABLES, PROVIDERS
from opposable.settings import Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
SEEDS = ROOT.parent / "shared" / "seeds"
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"  # → (.*)$", re.MULTILINE)
TRANSLATED = ("bash", "text")
"""Languages of blocks whose comments or labels are translated."""
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `how` is what follows the language."""

    page: Path
    line: int
    language: str
    how: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        language, _, how = match["info"].strip().partition(" ")
        found.append(Block(page, text.count("\n", 0, match.start()) + 1, language, how, match["body"]))
    return found


def compiled(block: Block):
    return compile("\n" * block.line + block.text, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def run(blocks: list[Block]) -> None:
    """Run blocks in one namespace, as at the prompt of `python -m asyncio`; `# → …` is a line that is printed."""
    names: dict[str, object] = {"__name__": "page"}
    with asyncio.Runner() as runner:
        for block in blocks:
            printed = io.StringIO()
            code = compiled(block)
            with contextlib.redirect_stdout(printed):
                if code.co_flags & inspect.CO_COROUTINE:
                    runner.run(evaluated(code, names))
                else:
                    exec(code, names)
            compare(block, printed.getvalue())


async def evaluated(code, names: dict[str, object]) -> None:
    await eval(code, names)


def compare(block: Block, printed: str) -> None:
    """Every expected line is printed, in order and, where all are words, nothing else; … is for anything."""
    expected = EXPECTED.findall(block.text)
    lines = [line for line in printed.splitlines() if line]
    if "local" not in block.how:
        assert len(lines) == len(expected), f"{block} printed {lines}"
    left = iter(lines)
    for wanted in expected:
        pattern = re.sub(r"([\[\]*?])", r"[\1]", wanted).replace("…", "*")
        assert any(fnmatchcase(line, pattern) for line in left), f"{block}: {wanted!r} is not in {lines}"


def python_pages(how: str) -> list[Path]:
    return [page for page in PAGES if any(b.language == "python" and b.how == how for b in blocks_of(page))]


@pytest.fixture
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_there_is_something_to_test():
    assert {page.name for page in PAGES} >= {
        "README.md",
        "README.zh-CN.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "index.md",
    }
    assert len(python_pages("")) > 4


@pytest.mark.parametrize("page", python_pages(""), ids=lambda page: page.name)
def test_code_of_a_page_runs_and_prints_what_it_says(page, at_root):
    run([block for block in blocks_of(page) if block.language == "python" and block.how == ""])


@pytest.mark.real_model
@pytest.mark.skipif(
    find_installed_weights(QWEN_CODER, get_models_directory()) is None, reason="the embedded model is not fetched"
)
def test_code_for_the_embedded_model_runs(at_root):
    [page] = [page for page in python_pages("local") if page.name == "README.md"]
    run([block for block in blocks_of(page) if block.language == "python" and block.how == "local"])


@pytest.mark.parametrize("block", [b for page in PAGES for b in blocks_of(page)], ids=str)
def test_a_block_says_what_it_is(block):
    assert (block.language, block.how) in {
        ("python", ""),
        ("python", "local"),
        ("python", "no-run"),
        ("bash", ""),
        ("console", ""),
        ("text", ""),
        ("json", ""),
        ("sql", ""),
    }
    if block.language == "python":
        compiled(block)


def commands() -> list[tuple[str, str]]:
    """Each command line of a page, with what it is said to print (console blocks)."""
    found = []
    for block in [b for page in PAGES for b in blocks_of(page) if b.language in ("bash", "console")]:
        for part in (
            re.split(r"^\$ ", block.text, flags=re.MULTILINE)
            if block.language == "console"
            else block.text.splitlines()
        ):
            line, _, output = part.partition("\n")
            if line.strip():
                found.append((line.strip(), output.strip()))
    return list(dict.fromkeys(found))


def words_of(line: str) -> list[str]:
    return shlex.split(line, comments=True)


@pytest.mark.parametrize("line", sorted({line for line, _ in commands() if " opposable " in f" {line}"}))
def test_a_command_of_ours_parses(line):
    words = [word for word in words_of(line.partition(" < ")[0]) if not re.fullmatch(r"[A-Z_]+=\S*", word)]
    command, context = typer.main.get_command(cli), None
    assert words[0] == "opposable", line
    args = words[1:]
    while True:
        context = command.make_context(words[0], list(args), parent=context)
        if not hasattr(command, "resolve_command"):
            return
        _, command, args = command.resolve_command(context, [*context._protected_args, *context.args])


@pytest.mark.parametrize(("line", "output"), [c for c in commands() if c[1]], ids=lambda value: str(value)[:60])
def test_a_command_prints_what_the_page_shows(line, output, tmp_path):
    words = words_of(line)
    assert words[:2] in (["opposable", "tools"], ["opposable", "run"]), "only commands that need no model show output"
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"COLUMNS": "200", "OPPOSABLE_HOME": str(tmp_path), "OPPOSABLE_DATABASE_URL": ""},
    )
    assert (done.stdout + done.stderr).strip() == output


@pytest.mark.parametrize("line", sorted({line for line, _ in commands() if line.startswith("make ")}))
def test_a_make_target_exists(line):
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert words_of(line)[1] in targets


def slug(heading: str) -> str:
    """A heading's anchor as code hosts make it."""
    text = re.sub(r"[`*]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(page: Path) -> list[tuple[int, str]]:
    text = FENCE.sub("", page.read_text())
    return [(len(marks), title) for marks, title in re.findall(r"^(#+) (.+)$", text, re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in sorted(links(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in {slug(title) for _, title in headings(target)}, f"{page.name} links to {link}"


def test_every_page_is_on_the_map():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    assert {page for page in PAGES if page != index} - linked == set()


def test_both_readmes_say_the_same_in_the_same_order():
    english, chinese = ROOT / "README.md", ROOT / "README.zh-CN.md"
    assert [level for level, _ in headings(chinese)] == [level for level, _ in headings(english)]
    english_blocks, chinese_blocks = blocks_of(english), blocks_of(chinese)
    assert [(b.language, b.how) for b in chinese_blocks] == [(b.language, b.how) for b in english_blocks]
    assert [b.text for b in chinese_blocks if b.language not in TRANSLATED] == [
        b.text for b in english_blocks if b.language not in TRANSLATED
    ]
    assert [bare(b) for b in chinese_blocks] == [bare(b) for b in english_blocks]
    rows = re.compile(r"^\|", re.MULTILINE)
    assert len(rows.findall(chinese.read_text())) == len(rows.findall(english.read_text()))
    assert links(chinese) - {"README.md"} == links(english) - {"README.zh-CN.md"}


def links(page: Path) -> set[str]:
    return set(LINK.findall(FENCE.sub("", page.read_text())))


def bare(block: Block) -> list[list[str]]:
    """A block's commands without their comments."""
    return [words_of(line) for line in block.text.splitlines()] if block.language == "bash" else []


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_readme_is_short_enough_to_be_read(name):
    assert len((ROOT / name).read_text().splitlines()) <= 205


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_readme_names_every_tool_model_and_variable(name):
    text = (ROOT / name).read_text()
    tools = [tool.tool_id for tool in create_builtin_tools([ROOT])]
    kinds = [f"`{kind}:NAME`" for kind in API_KEY_VARIABLES]
    variables = [*API_KEY_VARIABLES.values(), *(provider.base_url_variable for provider in PROVIDERS.values())]
    assert [word for word in (*tools, *kinds, *variables, "OPPOSABLE_API_KEY") if word not in text] == []


KNOWN = {
    "call-parsing.md": [*dialects.__all__, *get_args(dialects.RejectionReason)],
    "tools.md": [*get_args(FailureKind), *(kind.__name__ for kind in errors.ToolError.__subclasses__())],
    "models.md": [kind.__name__ for kind in (errors.ModelError, *errors.ModelError.__subclasses__())],
    "cli.md": [f"OPPOSABLE_{name.upper()}" for name in Settings.model_fields],
    "architecture.md": [*(event.__name__ for event in get_args(Event)), *get_args(StopReason)],
}


@pytest.mark.parametrize(("page", "names"), KNOWN.items(), ids=list(KNOWN))
def test_a_page_leaves_no_name_out(page, names):
    words = set(re.findall(r"\w+", (ROOT / "docs" / page).read_text()))
    assert [name for name in names if name not in words] == []


def test_every_public_name_is_on_some_page():
    words = set(re.findall(r"\w+", "".join(page.read_text() for page in PAGES)))
    assert [name for name in opposable.__all__ if name not in words] == []


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`(opposable\.[\w.]+)`", "".join(page.read_text() for page in PAGES))))
)
def test_a_dotted_name_in_the_pages_can_be_imported(name):
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            found = importlib.import_module(".".join(parts[:size]))
            for attribute in parts[size:]:
                fields = getattr(found, "__dataclass_fields__", {})
                found = fields[attribute] if attribute in fields else getattr(found, attribute)
            return
    pytest.fail(f"{name} does not exist")


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seed documents do not lie beside this checkout")
def test_every_method_of_the_seed_documents_has_its_counterpart():
    said = "".join(path.read_text() for path in sorted(SEEDS.glob("*.txt")))
    defined = set(re.findall(r"^\s*(?:(?:async )?def|class|func \([^)]*\)|CREATE TABLE) (\w+)", said, re.MULTILINE))
    defined |= set(re.findall(r"^type (\w+) ", said, re.MULTILINE))
    defined |= set(re.findall(r"\b(?:self|planner|agent|runtime|tool_library|sql_tool)\.(?:\w+\.)?(\w+)\(", said))
    words = set(re.findall(r"\w+", (ROOT / "docs" / "seeds.md").read_text()))
    assert sorted(defined - words - {"__init__"}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_no_place_of_one_machine(page):
    assert re.findall(r"/(?:root|tmp|work|home/\w+)/\S*", page.read_text()) == []

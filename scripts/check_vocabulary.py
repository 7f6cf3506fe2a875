"""Check that names and prose use the field's terms.

Run: python scripts/check_vocabulary.py [PATH ...]   (default: the whole repository; part of `make check`)

Two rules. First, the words and phrases in `BANNED` appear neither in identifiers nor in prose: docstrings, comments
and string literals of `src`, docstrings and comments elsewhere, Markdown outside code blocks. Second, no function of
`src` is named by a participle alone (`made`, `_normalized`): a name is a verb and its object. `ALLOWED` lists the
exceptions, each with its reason.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

BANNED = (
    "tell", "tells", "telling", "told", "kept", "put right", "puts right", "putting right",
    "mend", "mends", "mended", "mending", "stands", "beside", "behind", "whoever", "nobody", "somebody",
    "of its own accord", "so many", "cannot but", "anew", "akin", "there is none", "of ours", "a person's word",
    "signs of life", "house", "houses", "room", "rooms", "floor", "floors",
)  # fmt: skip
"""Words of a former private vocabulary; the glossary in CONTRIBUTING.md has the terms to use instead."""

ALLOWED: dict[tuple[str, str], str] = {
    ("scripts/check_vocabulary.py", "*"): "it lists the words",
    ("src/opposable/web/api/executions.py", "tell"): "the method of io.StringIO",
    ("src/opposable/parsers/quotation_patterns.py", "*"): "phrases that models write",
    ("src/opposable/ask/intent/lexicon.py", "tell"): 'a word of questions: "tell me …"',
    ("src/opposable/ask/catalog/stop_words.py", "tell"): 'a word of questions: "tell me …"',
    **{
        (f"src/opposable/sql/{module}.py", "floor"): "a function of SQL"
        for module in ("function_allowlist", "mysql_functions", "clickhouse_functions")
    },
    **{
        ("src/opposable/sql/tools.py", word): "descriptions of tools, which models read"
        for word in ("tell", "stands", "mend", "put right")
    },
    ("src/opposable/builtin_tools/calculator/*", "floor"): "a function of mathematics",
    ("tests/builtin_tools/calculator/*", "floor"): "a function of mathematics",
    ("src/opposable/builtin_tools/clock.py", "tell"): "a description of a tool, which models read",
    ("src/opposable/builtin_tools/python/python_executor.py", "kept"): "a description of a tool, which models read",
    **{
        ("src/opposable/builtin_tools/data_files/file_processor.py", word): "descriptions of tools, which models read"
        for word in ("tell", "told")
    },
    ("src/opposable/models/text_protocol_prompts.py", "told"): "a prompt",
    ("tests/harmless/traces.py", "room"): "a tool that books rooms",
    ("tests/agent/assistance/test_follow_ups.py", "room"): "tools that book rooms",
    ("tests/agent/assistance/test_follow_ups.py", "rooms"): "tools that book rooms",
    ("src/opposable/agent/history.py", "room"): "a note in the history, which models read",
    **{
        ("src/opposable/agent/assistance/prompts.py", word): "texts that models read"
        for word in ("tell", "told", "there is none")
    },
    ("evals/agent_runs/*.py", "room"): "meeting rooms, in tools and tasks of a model under test",
    ("evals/agent_runs/*.py", "rooms"): "meeting rooms, in tools and tasks of a model under test",
    ("evals/agent_runs/*_environments.py", "behind"): "tool descriptions of a model under test",
    ("evals/agent_runs/*_environments.py", "stands"): "tool descriptions of a model under test",
}
"""(path pattern, word) -> why the word is right there; "*" for every word."""

PARTICIPLES = frozenset(
    [
        "asked",
        "begun",
        "bound",
        "brought",
        "built",
        "chosen",
        "done",
        "drawn",
        "driven",
        "found",
        "given",
        "gone",
        "heard",
        "held",
        "hidden",
        "known",
        "lent",
        "made",
        "meant",
        "met",
        "said",
        "seen",
        "sent",
        "shown",
        "spoken",
        "spoilt",
        "stood",
        "taken",
        "thought",
        "tried",
        "understood",
        "unheard",
        "whole",
        "without",
        "with",
        "written",
    ]
)
"""Function names that say nothing, besides those that end in -ed or -ing."""

_PROSE = re.compile(r"\b(" + "|".join(re.escape(phrase) for phrase in BANNED) + r")\b", re.IGNORECASE)
_WORDS = frozenset(word for word in BANNED if " " not in word)
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_BARE = re.compile(r"_*([a-z]+(?:ed|ing))$")
_VERBS = frozenset({"feed", "seed", "embed", "shed", "string", "bring", "ping", "sing", "need", "exceed", "proceed"})


def main(arguments: list[str]) -> int:
    """Print each offence as `path:line: word`; return 1 where there is one."""
    paths = [Path(argument).resolve() for argument in arguments] or [ROOT]
    offences = sorted({offence for path in paths for file in _files(path) for offence in _check(file)})
    for name, line, word in offences:
        print(f"{name}:{line}: {word}")
    if offences:
        print(f"{len(offences)} names or phrases outside the project's vocabulary: see CONTRIBUTING.md, Vocabulary.")
    return 1 if offences else 0


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(ROOT)
        if file.suffix in (".py", ".md") and not any(
            part.startswith(".") or part in ("node_modules", "data", "__pycache__") for part in relative.parts
        ):
            yield file


def _check(file: Path) -> Iterator[tuple[str, int, str]]:
    name = file.relative_to(ROOT).as_posix()
    text = file.read_text(encoding="utf-8")
    found = _markdown(text) if file.suffix == ".md" else _python(text, in_source=name.startswith("src/"))
    for line, word in found:
        if not any(fnmatchcase(name, pattern) and allowed in ("*", word) for pattern, allowed in ALLOWED):
            yield name, line, word


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    blank = _FENCE.sub(lambda block: "\n" * block.group().count("\n"), text)
    yield from _prose(_INLINE_CODE.sub("", blank), 1)


def _python(text: str, *, in_source: bool) -> Iterator[tuple[int, str]]:
    docstrings = set(_docstring_lines(ast.parse(text)))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        if token.type == tokenize.NAME:
            for part in _NAME_PART.findall(token.string):
                if part.lower() in _WORDS:
                    yield line, part.lower()
        elif token.type == tokenize.COMMENT or (token.type == tokenize.STRING and (in_source or line in docstrings)):
            yield from _prose(token.string, line)
    if in_source:
        yield from _bare_participles(ast.parse(text))


def _prose(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    for match in _PROSE.finditer(text):
        yield first_line + text.count("\n", 0, match.start()), match[1].lower()


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno


def _bare_participles(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
            continue
        bare = _BARE.match(node.name)
        if (bare and bare[1] not in _VERBS) or node.name.strip("_") in PARTICIPLES:
            yield node.lineno, f"def {node.name}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

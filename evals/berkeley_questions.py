"""The Berkeley function-calling questions and their checker, taken from the `bfcl-eval` wheel of the package index.

The wheel is fetched once into the user's cache and used from there: it is not installed, and of its code only the
checker of written calls is loaded. That checker asks for a list of models whose import needs every provider's library,
and for readers of Java and JavaScript: it is given empty ones, as no question here needs them.
"""

import importlib
import json
import random
import re
import sys
import types
import zipfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opposable.models.embedded.download import download_file
from opposable.models.embedded.package_index import find_package_index, open_session
from opposable.models.embedded.weights import get_models_directory

BFCL_VERSION = "2026.3.23"
CATEGORIES = ("simple_python", "multiple", "parallel", "live_simple", "irrelevance", "live_irrelevance")
_CONVERTERS_MODULE = "bfcl_eval.eval_checker.ast_eval.type_convertor"

ToolCallPair = tuple[str, dict[str, Any]]
"""A tool's name as it was sent, and the arguments given."""


@dataclass(frozen=True, slots=True)
class BerkeleyQuestion:
    """One question: what is said, the tools in OpenAI's form, and what the checker needs."""

    id: str
    category: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    functions: list[dict[str, Any]]
    answer: Any


async def fetch_wheel(cache_directory: Path | None = None) -> Path:
    """The folder with the wheel's contents, fetched where it is not there yet. Raises: `WeightsError`, `OSError`."""
    folder = (cache_directory or get_models_directory().parent) / "evals" / f"bfcl_eval-{BFCL_VERSION}"
    if (folder / "bfcl_eval").is_dir():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "bfcl_eval.whl"
    async with open_session() as session:
        source = await find_package_index().find_wheel(session, "bfcl-eval", BFCL_VERSION, 1.0)
        await download_file(session, source, wheel, lambda _: None, 1.0)
    with zipfile.ZipFile(wheel) as box:
        box.extractall(folder)
    return folder


def read_questions(folder: Path, category: str, part_name: str, count: int, seed: int) -> list[BerkeleyQuestion]:
    """The first `number` questions of a part of a category: a third is "held" back from those who tune, the rest "dev"."""
    data = folder / "bfcl_eval" / "data"
    entries = _read_json_lines(data / f"BFCL_v4_{category}.json")
    answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
    right = {entry["id"]: entry["ground_truth"] for entry in _read_json_lines(answers)} if answers.exists() else {}
    random.Random(seed).shuffle(entries)  # noqa: S311 - a split, no secret
    held = len(entries) // 3
    chosen = entries[:held] if part_name == "held" else entries[held:]
    names = importlib.import_module("bfcl_eval.constants.type_mappings").GORILLA_TO_OPENAPI
    return [_parse_question(entry, category, right.get(entry["id"]), names) for entry in chosen if entry["function"]][
        :count
    ]


def load_checker(folder: Path) -> Callable[[BerkeleyQuestion, Sequence[ToolCallPair]], bool]:
    """The wheel's own checker: whether the calls of a reply are right."""
    sys.path.insert(0, str(folder))
    _install_stub_module("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING=defaultdict(_make_model_config))
    _install_stub_module(f"{_CONVERTERS_MODULE}.java_type_converter", java_type_converter=None)
    _install_stub_module(f"{_CONVERTERS_MODULE}.js_type_converter", js_type_converter=None)
    check = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON

    def right(question: BerkeleyQuestion, calls: Sequence[ToolCallPair]) -> bool:
        if "irrelevance" in question.category:
            return not calls
        if not calls:
            return False
        made = [{name: arguments} for name, arguments in calls]
        return bool(check(question.functions, made, question.answer, python, question.category, "any")["valid"])

    return right


def _make_model_config() -> types.SimpleNamespace:
    return types.SimpleNamespace(underscore_to_dot=True)


def _install_stub_module(name: str, **attributes: Any) -> None:
    module = types.ModuleType(name)
    module.__dict__.update(attributes)
    sys.modules[name] = module


def _read_json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _parse_question(entry: dict[str, Any], category: str, answer: Any, names: dict[str, str]) -> BerkeleyQuestion:
    tools = [
        {
            "type": "function",
            "function": {
                "name": re.sub(r"[^a-zA-Z0-9_-]", "_", function["name"])[:64],
                "description": function["description"],
                "parameters": {**_convert_schema(function["parameters"], names), "type": "object"},
            },
        }
        for function in entry["function"]
    ]
    return BerkeleyQuestion(entry["id"], category, entry["question"][0], tools, entry["function"], answer)


def _convert_schema(node: Any, type_names: dict[str, str]) -> Any:
    """A schema of the questions as JSON Schema: the names of its types are theirs."""
    if not isinstance(node, dict):
        return node
    made = dict(node)
    if isinstance(made.get("type"), str):
        made["type"] = type_names.get(made["type"], made["type"])
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: _convert_schema(about, type_names) for name, about in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in made:
            made[key] = _convert_schema(made[key], type_names)
    return made

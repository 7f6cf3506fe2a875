"""Reads the Berkeley function-calling questions and their checker from the `bfcl-eval` wheel.

The wheel is downloaded once into the user's cache and not installed. Only its checker of calls is loaded. The checker
imports a list of models, which needs the library of every provider, and parsers of Java and JavaScript. Stub modules
replace them, because the questions here do not need them.
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

from opposable.models.embedded.pip_download import download_wheel
from opposable.models.embedded.weights import get_models_directory

BFCL_VERSION = "2026.3.23"
CATEGORIES = (
    "simple_python",
    "multiple",
    "parallel",
    "live_simple",
    "live_multiple",
    "irrelevance",
    "live_irrelevance",
)
_CONVERTERS_MODULE = "bfcl_eval.eval_checker.ast_eval.type_convertor"

ToolCallPair = tuple[str, dict[str, Any]]
"""The name of a tool and the arguments of its call."""


@dataclass(frozen=True, slots=True)
class BerkeleyQuestion:
    """A question with its messages, its tools in OpenAI's format, and the checker's data."""

    id: str
    category: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    functions: list[dict[str, Any]]
    answer: Any


async def fetch_wheel(cache_directory: Path | None = None) -> Path:
    """Return the folder with the contents of the wheel, downloaded if necessary.

    Raises:
        WeightsError: The download failed.
        OSError: The folder cannot be written.
    """
    folder = (cache_directory or get_models_directory().parent) / "evals" / f"bfcl_eval-{BFCL_VERSION}"
    if (folder / "bfcl_eval").is_dir():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "bfcl_eval.whl"
    await download_wheel("bfcl-eval", BFCL_VERSION, wheel, lambda _: None)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def read_questions(folder: Path, category: str, part_name: str, count: int, seed: int) -> list[BerkeleyQuestion]:
    """Read the first `count` questions of a part of a category.

    A third of each category is the part "held", the rest is "dev".
    """
    data = folder / "bfcl_eval" / "data"
    entries = _read_json_lines(data / f"BFCL_v4_{category}.json")
    answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
    right_answers = (
        {entry["id"]: entry["ground_truth"] for entry in _read_json_lines(answers)} if answers.exists() else {}
    )
    random.Random(seed).shuffle(entries)  # noqa: S311 - a reproducible split
    held_count = len(entries) // 3
    part = entries[:held_count] if part_name == "held" else entries[held_count:]
    type_names = importlib.import_module("bfcl_eval.constants.type_mappings").GORILLA_TO_OPENAPI
    return [
        _parse_question(entry, category, right_answers.get(entry["id"]), type_names)
        for entry in part
        if entry["function"]
    ][:count]


def load_checker(folder: Path) -> Callable[[BerkeleyQuestion, Sequence[ToolCallPair]], bool]:
    """Load the wheel's checker, which returns whether the calls of a reply are right."""
    sys.path.insert(0, str(folder))
    _install_stub_module("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING=defaultdict(_make_model_config))
    _install_stub_module(f"{_CONVERTERS_MODULE}.java_type_converter", java_type_converter=None)
    _install_stub_module(f"{_CONVERTERS_MODULE}.js_type_converter", js_type_converter=None)
    check = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON

    def is_right(question: BerkeleyQuestion, calls: Sequence[ToolCallPair]) -> bool:
        if "irrelevance" in question.category:
            return not calls
        if not calls:
            return False
        call_objects = [{name: arguments} for name, arguments in calls]
        return bool(check(question.functions, call_objects, question.answer, python, question.category, "any")["valid"])

    return is_right


def _make_model_config() -> types.SimpleNamespace:
    return types.SimpleNamespace(underscore_to_dot=True)


def _install_stub_module(name: str, **attributes: Any) -> None:
    module = types.ModuleType(name)
    module.__dict__.update(attributes)
    sys.modules[name] = module


def _read_json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _parse_question(entry: dict[str, Any], category: str, answer: Any, type_names: dict[str, str]) -> BerkeleyQuestion:
    tools = [
        {
            "type": "function",
            "function": {
                "name": re.sub(r"[^a-zA-Z0-9_-]", "_", function["name"])[:64],
                "description": function["description"],
                "parameters": {**_convert_schema(function["parameters"], type_names), "type": "object"},
            },
        }
        for function in entry["function"]
    ]
    return BerkeleyQuestion(entry["id"], category, entry["question"][0], tools, entry["function"], answer)


def _convert_schema(node: Any, type_names: dict[str, str]) -> Any:
    """Convert a schema of the questions to JSON Schema, which has other type names."""
    if not isinstance(node, dict):
        return node
    converted = dict(node)
    if isinstance(converted.get("type"), str):
        converted["type"] = type_names.get(converted["type"], converted["type"])
    if isinstance(converted.get("properties"), dict):
        converted["properties"] = {
            name: _convert_schema(subschema, type_names) for name, subschema in converted["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if key in converted:
            converted[key] = _convert_schema(converted[key], type_names)
    return converted

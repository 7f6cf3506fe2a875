"""Python files of functions: executed from given bytes, and described by one spec for each public function."""

import contextlib
import hashlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.specs import FunctionToolSpec
from opposable.tools.function import FunctionTool
from opposable.tools.raised_errors import describe_error


def hash_source(source: bytes) -> str:
    """Return the SHA-256 of a file's content, as hexadecimal digits."""
    return hashlib.sha256(source).hexdigest()


def execute_file(path: Path, source: bytes) -> ModuleType:
    """Execute the source of a file once in this process, and return its module.

    What it prints goes to standard error, because standard output may be a protocol. The file's folder is not searched
    for imports: other files in it were not reviewed.

    Raises:
        BadInput: The code cannot be compiled, or raises.
    """
    name = f"opposable_file_{hash_source(bytes(path) + source)}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # annotations and dataclasses look their module up
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102 - the owner allowed this content
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        hint = (
            " A file of functions can import installed packages only, not other files of its folder."
            if isinstance(error, ModuleNotFoundError)
            else ""
        )
        raise BadInput(f"{path} cannot be loaded: {describe_error(error)[:300]}.{hint}") from error
    return module


def create_file_specs(path: Path, source: bytes) -> tuple[list[FunctionToolSpec], dict[str, str]]:
    """Execute a file, and return a spec for each of its public functions.

    `__all__` selects the functions, if the file defines it.

    Returns:
        The specs, and the reason for each function that cannot become a tool.

    Raises:
        BadInput: The file cannot be loaded, or has no public function.
    """
    module = execute_file(path, source)
    specs: list[FunctionToolSpec] = []
    left_out: dict[str, str] = {}
    for name, function in _iterate_functions(module):
        try:
            tool = function if isinstance(function, FunctionTool) else FunctionTool(function, tool_id=name)
        except ToolRegistrationError as error:
            left_out[name] = str(error).removeprefix(f"{name}: ")
            continue
        spec = tool.spec or FunctionToolSpec(
            tool_id=tool.tool_id, description=tool.outline.description, timeout=tool.timeout, module_path=""
        )
        origin = {"module_path": str(path), "function_name": name, "version": hash_source(source)[:12]}
        specs.append(spec.model_copy(update=origin))
    if not specs and not left_out:
        raise BadInput(f"{path} defines no public function. Each function without a leading underscore is a tool.")
    return specs, left_out


def _iterate_functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", None) or vars(module):
        value = getattr(module, name, None)
        function = value.function if isinstance(value, FunctionTool) else value
        is_own = getattr(function, "__module__", None) == module.__name__
        if is_own and not name.startswith("_") and callable(function) and not inspect.isclass(function):
            yield name, value

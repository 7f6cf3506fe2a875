"""Functions and classes named by a spec: found in modules that the owner allows, and nowhere else."""

import importlib
import inspect
from collections.abc import Sequence
from typing import Any

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.specs import FunctionToolSpec
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool


def load_tools(spec: FunctionToolSpec, allowed: Sequence[str]) -> list[Tool]:
    """The tools of a spec: the function it names, or the methods of an object of the class it names.

    `allowed` lists what may be named: `package.module` for all that is written in it and below it, or
    `package.module:name` for one function or class. Of a class all public methods are actions, or those alone that
    the spec's capabilities name.

    Raises: `BadInput`, saying what is not allowed, not there or does not fit.
    """
    name = spec.class_name or spec.function_name
    if bool(spec.class_name) == bool(spec.function_name):
        raise BadInput(f"{spec.tool_id}: give either class_name or function_name.")
    if not name.isidentifier() or name.startswith("_"):
        raise BadInput(
            f"{spec.tool_id}: {name!r} is no public name; give the name of a function or class of the module."
        )
    if not _is_allowed(spec.module_path, name, allowed):
        raise BadInput(
            f"{spec.tool_id}: {spec.module_path}:{name} may not be used. "
            f"The owner allows: {', '.join(allowed) or 'nothing'}."
        )
    found = _load_object(spec, name)
    if spec.function_name:
        if inspect.isclass(found) or not callable(found):
            raise BadInput(f"{spec.tool_id}: {name} in {spec.module_path} is no function; name a class by class_name.")
        if spec.init_params:
            raise BadInput(f"{spec.tool_id}: init_params are for classes; {name} is a function.")
        return [_create_tool(found, spec, spec.tool_id, spec.description)]
    if not inspect.isclass(found):
        raise BadInput(f"{spec.tool_id}: {name} in {spec.module_path} is no class; name a function by function_name.")
    return _create_action_tools(_create_instance(found, spec), spec)


def _is_allowed(module: str, name: str, allowed: Sequence[str]) -> bool:
    for one in allowed:
        prefix, _, only = one.partition(":")
        if only and (module, name) == (prefix, only):
            return True
        if not only and (module == prefix or module.startswith(f"{prefix}.")):
            return True
    return False


def _load_object(spec: FunctionToolSpec, name: str) -> Any:
    """What the module itself holds under the name: nothing that it has merely imported."""
    try:
        module = importlib.import_module(spec.module_path)
    except ModuleNotFoundError as error:
        raise BadInput(f"{spec.tool_id}: there is no module {error.name}.") from error
    except Exception as error:
        raise BadInput(f"{spec.tool_id}: {spec.module_path} cannot be imported: {_describe_error(error)}") from error
    found = getattr(module, name, None)
    found = found.function if isinstance(found, FunctionTool) else found
    if found is None or getattr(found, "__module__", None) != module.__name__:
        own = [each for each, value in vars(module).items() if _is_defined_in(each, value, module.__name__)]
        raise BadInput(f"{spec.tool_id}: {spec.module_path} has no {name}. It has: {', '.join(own[:20]) or 'nothing'}.")
    return found


def _is_defined_in(name: str, value: Any, module: str) -> bool:
    value = value.function if isinstance(value, FunctionTool) else value
    return not name.startswith("_") and callable(value) and getattr(value, "__module__", None) == module


def _create_instance(cls: type, spec: FunctionToolSpec) -> object:
    try:
        inspect.signature(cls).bind(**spec.init_params)
    except TypeError as error:
        takes = ", ".join(inspect.signature(cls).parameters) or "none"
        raise BadInput(f"{spec.tool_id}: init_params do not fit {cls.__name__}: {error}. It takes: {takes}.") from error
    try:
        return cls(**spec.init_params)
    except Exception as error:
        raise BadInput(f"{spec.tool_id}: {cls.__name__} cannot be made: {_describe_error(error)}") from error


def _create_action_tools(instance: object, spec: FunctionToolSpec) -> list[Tool]:
    public = [name for name, _ in inspect.getmembers(type(instance), inspect.isfunction) if not name.startswith("_")]
    about = {capability.name: capability.description for capability in spec.capabilities}
    unknown = [name for name in about if name not in public]
    if unknown:
        raise BadInput(
            f"{spec.tool_id}: {type(instance).__name__} has no {', '.join(unknown)}. Its public methods are: "
            f"{', '.join(public) or 'none'}."
        )
    chosen = [name for name in public if name in about] if about else public
    if not chosen:
        raise BadInput(f"{spec.tool_id}: {type(instance).__name__} has no public method to offer as an action.")
    ids = {name: spec.tool_id if name == spec.tool_id else f"{spec.tool_id}.{name}" for name in chosen}
    return [_create_tool(getattr(instance, name), spec, ids[name], about.get(name, "")) for name in chosen]


def _create_tool(function: Any, spec: FunctionToolSpec, tool_id: str, description: str) -> Tool:
    try:
        return FunctionTool(function, tool_id=tool_id, description=description, timeout=spec.timeout)
    except ToolRegistrationError as error:
        raise BadInput(f"{spec.tool_id}: {error}") from error


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]

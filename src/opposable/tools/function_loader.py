"""Loads the function or class that a spec names, from the modules that the owner allows."""

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.specs import Capability, FunctionToolSpec
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool, create_tool, list_methods, to_action_id
from opposable.tools.raised_errors import describe_error


def load_tools(spec: FunctionToolSpec, allowed: Sequence[str]) -> list[Tool]:
    """Create the tools of a spec: the function that it names, or the methods of an instance of its class.

    The tools of a class are its public methods, or only those that the spec's capabilities name. A class method, such
    as another constructor, is one only if it is named there or has the decorator `tool`.

    `allowed` lists what specs may name: `package.module` for everything defined in a module and below it, or
    `package.module:name` for one function or class.

    Raises:
        BadInput: The name is not allowed, does not exist or does not fit.
    """
    name = spec.class_name or spec.function_name
    _check_name(spec, name)
    if not _is_allowed(spec.module_path, name, allowed):
        raise BadInput(
            f"{spec.tool_id}: {spec.module_path}:{name} may not be used. "
            f"The owner allows: {', '.join(allowed) or 'nothing'}. "
            f"To allow it, list {spec.module_path} in OPPOSABLE_MODULES."
        )
    return _create_tools(spec, name, _import_module(spec))


def load_file_tools(spec: FunctionToolSpec, module: ModuleType) -> list[Tool]:
    """Create the tool of a spec that names a Python file: one of the public functions of its module.

    Raises:
        BadInput: The name does not exist, is missing in `__all__`, or is that of a class.
    """
    name = spec.function_name
    if spec.class_name:
        raise BadInput(f"{spec.tool_id}: a Python file provides functions, not classes. Name a function.")
    _check_name(spec, name)
    if name not in getattr(module, "__all__", (name,)):
        raise BadInput(f"{spec.tool_id}: {name} is missing in __all__ of {spec.module_path}.")
    return _create_tools(spec, name, module)


def _create_tools(spec: FunctionToolSpec, name: str, module: ModuleType) -> list[Tool]:
    loaded = _get_object(spec, name, module)
    if spec.function_name:
        if inspect.isclass(loaded) or not _is_callable(loaded):
            raise BadInput(
                f"{spec.tool_id}: {name} in {spec.module_path} is not a function. Name a class by class_name."
            )
        if spec.init_params:
            raise BadInput(f"{spec.tool_id}: init_params are for classes, and {name} is a function.")
        [capability] = spec.capabilities if len(spec.capabilities) == 1 else [Capability(name=name)]
        return [_create_tool(loaded, spec, spec.tool_id, spec.description or capability.description, capability)]
    if not inspect.isclass(loaded):
        raise BadInput(
            f"{spec.tool_id}: {name} in {spec.module_path} is not a class. Name a function by function_name."
        )
    return _create_action_tools(_create_instance(loaded, spec), spec)


def _check_name(spec: FunctionToolSpec, name: str) -> None:
    if bool(spec.class_name) == bool(spec.function_name):
        raise BadInput(f"{spec.tool_id}: give either class_name or function_name.")
    if not name.isidentifier() or name.startswith("_"):
        raise BadInput(
            f"{spec.tool_id}: {name!r} is not a public name. Give the name of a function or class of the module."
        )


def _is_allowed(module: str, name: str, allowed: Sequence[str]) -> bool:
    for pattern in allowed:
        prefix, _, only_name = pattern.partition(":")
        if only_name and (module, name) == (prefix, only_name):
            return True
        if not only_name and (module == prefix or module.startswith(f"{prefix}.")):
            return True
    return False


def _import_module(spec: FunctionToolSpec) -> ModuleType:
    try:
        return importlib.import_module(spec.module_path)
    except ModuleNotFoundError as error:
        raise BadInput(f"{spec.tool_id}: there is no module {error.name}.") from error
    except (Exception, SystemExit) as error:
        raise BadInput(
            f"{spec.tool_id}: {spec.module_path} cannot be imported: {describe_error(error)[:300]}"
        ) from error


def _get_object(spec: FunctionToolSpec, name: str, module: ModuleType) -> Any:
    """Return what the module defines under a name; names that it merely imports are refused."""
    loaded = getattr(module, name, None)
    if loaded is None or _get_module_name(loaded) != module.__name__:
        members = [
            (key, value) for key, value in vars(module).items() if not key.startswith("_") and _is_callable(value)
        ]
        defined = [key for key, value in members if _get_module_name(value) == module.__name__]
        raise BadInput(
            f"{spec.tool_id}: {spec.module_path} has no {name}. It has: {', '.join(defined[:20]) or 'nothing'}."
        )
    return loaded


def _is_callable(value: Any) -> bool:
    return callable(value) or isinstance(value, FunctionTool)


def _get_module_name(value: Any) -> str | None:
    return getattr(value.function if isinstance(value, FunctionTool) else value, "__module__", None)


def _create_instance(cls: type, spec: FunctionToolSpec) -> object:
    try:
        inspect.signature(cls).bind(**spec.init_params)
    except TypeError as error:
        parameters = ", ".join(inspect.signature(cls).parameters) or "none"
        raise BadInput(
            f"{spec.tool_id}: init_params do not fit {cls.__name__}: {error}. It takes: {parameters}."
        ) from error
    try:
        return cls(**spec.init_params)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{spec.tool_id}: {cls.__name__} cannot be created: {describe_error(error)[:300]}") from error


def _create_action_tools(instance: object, spec: FunctionToolSpec) -> list[Tool]:
    class_name = type(instance).__name__
    methods = list_methods(type(instance))
    capabilities = {capability.name: capability for capability in spec.capabilities}
    unknown = [name for name in capabilities if name not in methods]
    if unknown:
        raise BadInput(
            f"{spec.tool_id}: {class_name} has no {', '.join(unknown)}. Its public methods are: "
            f"{', '.join(methods) or 'none'}."
        )
    names = [name for name in methods if name in capabilities or (not capabilities and _is_offered(instance, name))]
    if not names:
        raise BadInput(
            f"{spec.tool_id}: {class_name} has no public method. Each public method becomes an action, and a class "
            "method only if the capabilities name it."
        )
    tools = []
    for name in names:
        capability = capabilities.get(name, Capability(name=name))
        tool_id = to_action_id(spec.tool_id, name)
        tools.append(_create_tool(getattr(instance, name), spec, tool_id, capability.description, capability))
    return tools


def _is_offered(instance: object, name: str) -> bool:
    """Return whether a method is an action without being named in capabilities: any but a class method without `tool`."""
    member = getattr(type(instance), name)
    return not inspect.ismethod(member) or isinstance(member.__func__, FunctionTool)


def _create_tool(function: Any, spec: FunctionToolSpec, tool_id: str, description: str, capability: Capability) -> Tool:
    """Create a tool. The capability may describe parameters; their types are those of the signature."""
    try:
        tool = create_tool(function, tool_id, description=description)
        tool.timeout = spec.timeout or tool.timeout
    except ToolRegistrationError as error:
        raise BadInput(f"{spec.tool_id}: {error}") from error
    described = {
        name: declared["description"]
        for name, declared in capability.parameters.get("properties", {}).items()
        if name in tool.outline.parameters and isinstance(declared, dict) and declared.get("description")
    }
    if described:
        properties = dict(tool.definition.parameters["properties"])
        properties |= {name: {**properties[name], "description": text} for name, text in described.items()}
        tool.definition = replace(tool.definition, parameters={**tool.definition.parameters, "properties": properties})
        tool.outline = replace(tool.outline, parameters={**tool.outline.parameters, **described})
    return tool

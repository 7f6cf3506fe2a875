"""Imports the public names of a package on their first use."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def import_on_first_use(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """Return `__getattr__` and `__all__` for a package.

    Args:
        package: The package.
        names: The public names of each of its modules, separated by spaces.
    """
    modules = {name: module for module, text in names.items() for name in text.split()}

    def import_attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return import_attribute, sorted(modules)

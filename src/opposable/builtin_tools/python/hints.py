"""Hints for errors of the small Python interpreter."""

import re

_HINTS = (
    (r"ModuleNotFoundError", "Only parts of the standard library are here (math, re, json, datetime and a few more): compute it in plain Python"),
    (r"'os\.|has no attribute 'system'|PermissionError", "Files, variables and programs of the machine cannot be reached from here"),
    (r"does not yet support yield", "Generators with yield are not supported: build and return a list"),
    (r"NotImplementedError|not yet support|is not supported", "This small Python lacks that: write it with functions, loops, lists and dictionaries"),
    (r"name 'input' is not defined", "No one can be asked here: write the values into the code"),
    (r"name '__import__'|__class__|__globals__|__subclasses__", "Names with two underscores are not reachable here"),
    (r"4300 digits", "Print a part of so large a number, such as n % 10**20"),
)  # fmt: skip


def get_hint(error_message: str) -> str:
    """Return a hint for the model on an error message, "" otherwise."""
    return next((f". {hint}" for pattern, hint in _HINTS if re.search(pattern, error_message)), "")

"""Checks of the values that a program passes to the library."""

from collections.abc import Collection
from typing import Any, get_args

from opposable.domain.errors import BadInput


def require_choice(kind: str, value: str, choices: Collection[str]) -> None:
    """Raise `BadInput` if a value is not one of the choices of its kind, such as "calling mode"."""
    if value not in choices:
        raise BadInput(f"There is no {kind} {value!r}. Use one of these: {', '.join(choices)}.")


def require_types(**arguments: tuple[Any, Any]) -> None:
    """Raise `BadInput` if the value of an argument is not of the type after it."""
    for name, (value, kind) in arguments.items():
        if not isinstance(value, kind):
            types = " or ".join(one.__name__ for one in get_args(kind) or (kind,)).replace("NoneType", "None")
            raise BadInput(f"`{name}` must be {types}, not {value!r}.")


def require_at_least_zero(kind: str, values: Any) -> None:
    """Raise `BadInput` if a number among the attributes `__slots__` of `values` is less than 0, or NaN."""
    for name in values.__slots__:
        value = getattr(values, name)
        if isinstance(value, int | float) and not value >= 0:
            raise BadInput(f"The {kind} `{name}` must be at least 0, not {value!r}.")

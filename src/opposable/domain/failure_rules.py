"""Which results of a tool are failures, declared as data."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator


def check_failure_rules(rules: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rules if they are valid.

    Each rule maps a JSON pointer to the value that means a failure, to a list of such values, or to `{"not": value}`
    with the values that mean success.

    Raises:
        ValueError: A rule has another form.
    """
    for pointer, expected in rules.items():
        if not pointer.strip("/"):
            raise ValueError(f"{pointer!r} names no field of the result. Use a JSON pointer such as /status.")
        if isinstance(expected, Mapping) and set(expected) != {"not"}:
            raise ValueError(f'{pointer}: use a value, a list of values, or {{"not": …}} with the values of a success.')
    return rules


FailureWhen = Annotated[dict[str, Any], AfterValidator(check_failure_rules)]
"""Rules that say which results are failures; a result is one if any rule matches."""

"""Checks of a YAML text that is safe to load."""

from collections.abc import Iterable
from typing import Any

MAX_NESTING = 1_000
"""Levels of YAML that are loaded, as many as orjson loads of JSON."""


def check_yaml_events(events: Iterable[Any]) -> None:
    """Check the events of a YAML text before it is loaded. A merge key (`<<`) may occur twice.

    Raises:
        RecursionError: The text is nested so deeply that loading it would end the process.
        yaml.YAMLError: The text is invalid, or a mapping has a key twice, of which the loader drops the first value.
    """
    import yaml

    keys_by_level: list[set[str] | None] = [None]  # None for the document and for a sequence
    is_key_next = [False]
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            keys_by_level.pop()
            is_key_next.pop()
        elif isinstance(event, yaml.NodeEvent):
            keys = keys_by_level[-1]
            if keys is not None:
                is_key, is_key_next[-1] = is_key_next[-1], not is_key_next[-1]
                if is_key and isinstance(event, yaml.ScalarEvent):
                    if event.value in keys and event.value != "<<":
                        mark: Any = event.start_mark
                        problem = f"{event.value} is defined twice: remove one of them"
                        raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
                    keys.add(event.value)
            if isinstance(event, yaml.CollectionStartEvent):
                keys_by_level.append(set() if isinstance(event, yaml.MappingStartEvent) else None)
                is_key_next.append(True)
                if len(keys_by_level) > MAX_NESTING + 1:
                    raise RecursionError

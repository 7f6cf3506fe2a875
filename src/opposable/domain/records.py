"""What is kept of a run: one record a call."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opposable.domain.tools import FailureKind


@dataclass(frozen=True, slots=True)
class Execution:
    """One call as it was made. `arguments` have secrets redacted; `seconds` is wall time; `at` is in UTC.

    `result` is what the model was told, or empty where `handle` says where the whole is kept.
    """

    execution_id: str
    run_id: str
    call_id: str
    tool_id: str
    name: str
    arguments: dict[str, Any]
    result: str
    at: datetime
    seconds: float
    failure: FailureKind | None = None
    attempts: int = 1
    cached: bool = False
    repairs: tuple[str, ...] = ()
    handle: str = ""
    trace_id: str = ""
    agent_id: str = ""
    conversation_id: str = ""

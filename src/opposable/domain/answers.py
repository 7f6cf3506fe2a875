"""An answer to a question about data."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DataAnswer:
    """What a question about data came to.

    `text` is a sentence in the asker's language and never empty. `sql` is what was run ("" where nothing could be).
    `chart` describes a picture (`type`, `x`, `y`) where the rows have the shape of one. `assumptions` is what was taken
    for granted, `corrections` what was put right on the way. `confidence` is between 0 and 1.
    """

    text: str
    sql: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    truncated: bool = False
    chart: dict[str, Any] | None = None
    assumptions: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    confidence: float = 0.0

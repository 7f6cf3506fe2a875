"""Measure how often the tool for a need in English, Chinese or German is among those sent to the model.

50 tools are described in English. `needs.tsv` has two needs for each in every language; the second of each was not
used to choose the search.

    python evals/tool_search/measure.py zh_held_out de_held_out
"""

import asyncio
import csv
import sys
from pathlib import Path

from opposable.domain.call_context import CallContext
from opposable.domain.tools import ToolDefinition
from opposable.tools.library import ToolLibrary

NEEDS = Path(__file__).parent / "needs.tsv"
COLUMNS = ("en", "en_held_out", "zh", "zh_held_out", "de", "de_held_out")
RANKS = (1, 3, 8)


class NamedTool:
    """A tool with a description that is never called."""

    timeout = None

    def __init__(self, tool_id: str, description: str) -> None:
        self.tool_id = tool_id
        self.definition = ToolDefinition(tool_id, description, {"type": "object", "properties": {}})

    async def run(self, arguments: dict[str, object], context: CallContext) -> str:
        """Do nothing."""
        return self.tool_id


def read_needs() -> list[dict[str, str]]:
    """Return the rows of `needs.tsv`."""
    with NEEDS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def build_library(rows: list[dict[str, str]]) -> ToolLibrary:
    """Return a library of the tools."""
    return ToolLibrary([NamedTool(row["tool"], row["description"]) for row in rows])


async def rank_tools(rows: list[dict[str, str]], column: str) -> list[int]:
    """Return the rank of the right tool for each need of a column; 0 if it is not among the matches."""
    library = build_library(rows)
    ranks = []
    for row in rows:
        names = [match.name for match in await library.search_by_meaning(row[column], max(RANKS))]
        ranks.append(names.index(row["tool"]) + 1 if row["tool"] in names else 0)
    return ranks


async def main(columns: tuple[str, ...]) -> None:
    """Print a line per column."""
    rows = read_needs()
    for column in columns:
        ranks = await rank_tools(rows, column)
        shares = ", ".join(f"first {top}: {sum(0 < rank <= top for rank in ranks)}" for top in RANKS)
        print(f"{column}: of {len(ranks)} needs, {shares}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(tuple(sys.argv[1:]) or COLUMNS))

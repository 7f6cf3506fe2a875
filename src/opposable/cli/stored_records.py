"""What the commands over stored records share: the store, the search by id, and cells of limited width."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.text import Text

from opposable.app.default_store import open_existing_store
from opposable.cli.errors import run_async
from opposable.cli.options import read_settings
from opposable.domain.errors import BadInput
from opposable.domain.records import Page

if TYPE_CHECKING:
    from opposable.store.store import Store

T = TypeVar("T")

SHORT_ID_CHARACTERS = 8
"""Characters of an id in a list."""

LimitOption = Annotated[int, typer.Option("--number", "-n", min=1, max=1000, help="Maximum number of rows")]
RecordIdArgument = Annotated[str, typer.Argument(help="Id, or its first characters", metavar="ID")]


def read_store(operation: "Callable[[Store], Awaitable[T]]", default: T) -> T:
    """Run `operation` on the store, and return `default` if there is no store: none is created."""

    async def run() -> T:
        async with open_existing_store(read_settings()) as store:
            return default if store is None else await operation(store)

    return run_async(run())


def read_page(operation: "Callable[[Store], Awaitable[Page[T]]]") -> tuple[T, ...]:
    """Return the items of a page from the store, none if there is no store: none is created."""
    empty_page: Page[T] = Page(())
    return read_store(operation, empty_page).items


def run_with_store(operation: "Callable[[Store], Awaitable[T]]") -> T:
    """Run `operation` on the store.

    Raises:
        BadInput: There is no store; none is created.
    """

    async def run() -> T:
        async with open_existing_store(read_settings()) as store:
            if store is None:
                raise BadInput("Nothing is stored yet: the database of OPPOSABLE_DATABASE_URL has no store.")
            return await operation(store)

    return run_async(run())


async def find_by_id_prefix(
    list_by_id_prefix: Callable[[str], Awaitable[Sequence[T]]],
    id_prefix: str,
    get_id: Callable[[T], str],
    noun: str,
    group: str = "",
) -> T:
    """Return the record with that id, or the only one whose id starts with it.

    Args:
        list_by_id_prefix: Returns the first two records whose id starts with a text, ordered by id.
        id_prefix: An id, or its first characters.
        get_id: Returns the id of a record.
        noun: What a record is called.
        group: The command group of these records; the plural of `noun` by default.

    Raises:
        BadInput: No record matches, or several do.
    """
    prefix = id_prefix.strip()
    prefix = prefix.lower() if re.fullmatch(r"[0-9A-Fa-f]+", prefix) else prefix
    matching = await list_by_id_prefix(prefix) if prefix else ()
    if len(matching) == 1 or (matching and get_id(matching[0]) == prefix):
        return matching[0]
    problem = f"More than one {noun} begins with {id_prefix!r}" if matching else f"There is no {noun} {id_prefix!r}"
    raise BadInput(f"{problem}. See: opposable {group or f'{noun}s'} list")


def fit_cell(text: str, width: int) -> str:
    """Return `text` on one line, cut to `width` columns of a terminal."""
    cell = Text(" ".join(text.split()))
    cell.truncate(width, overflow="ellipsis")
    return cell.plain


def format_minute(time: datetime | None) -> str:
    """Return month, day, hour and minute of a time in the local time zone; "" for None."""
    return time.astimezone().strftime("%m-%d %H:%M") if time else ""

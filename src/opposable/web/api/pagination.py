"""Pages of lists, and parameters that several routes share."""

from typing import Annotated, Generic, TypeVar

from fastapi import Path, Query
from pydantic import BaseModel, Field

from opposable.domain.specs import ID_PATTERN, MAX_ID_CHARACTERS
from opposable.store.pagination import MAX_PAGE_SIZE

T = TypeVar("T")

AfterQuery = Annotated[str, Query(description="The `next` of the previous page; empty for the first.", max_length=1000)]
LimitQuery = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="The number of items on a page.")]
ToolIdPath = Annotated[
    str,
    Path(pattern=ID_PATTERN, max_length=MAX_ID_CHARACTERS, description="The id of a tool.", examples=["calculator"]),
]
AgentIdPath = Annotated[
    str, Path(pattern=ID_PATTERN, max_length=MAX_ID_CHARACTERS, description="The id of an agent.", examples=["default"])
]


class PageResponse(BaseModel, Generic[T]):
    """A page of a list.

    Send `next` as `after` to get the following page; it is empty on the last page.
    """

    items: list[T]
    next: str = ""
    unreadable: dict[str, str] = Field(default={}, description="Rows that cannot be read, with the reason.")

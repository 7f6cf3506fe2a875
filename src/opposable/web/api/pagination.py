"""Shapes that several of the routes share: parts of lists, and what is given in queries."""

from typing import Annotated, Generic, TypeVar

from fastapi import Path, Query
from pydantic import BaseModel, Field

from opposable.domain.specs import ID_PATTERN
from opposable.store.pagination import MAX_PAGE_SIZE

T = TypeVar("T")

AfterQuery = Annotated[str, Query(description="The `next` of the part before; empty for the first.", max_length=1000)]
LimitQuery = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Items of one part.")]
ToolIdPath = Annotated[str, Path(pattern=ID_PATTERN, description="A tool's id.", examples=["calculator"])]
AgentIdPath = Annotated[str, Path(pattern=ID_PATTERN, description="An agent's id.", examples=["default"])]


class PageResponse(BaseModel, Generic[T]):
    """A part of a list; `next` is given as `after` for the one that follows, and empty at the end."""

    items: list[T]
    next: str = ""
    set_aside: dict[str, str] = Field(default={}, description="Rows that could not be read, with the reason.")

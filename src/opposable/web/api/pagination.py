"""Shapes that several of the routes share: parts of lists, and what is given in queries."""

from typing import Annotated, Generic, TypeVar

from fastapi import Path, Query
from pydantic import BaseModel, Field

from opposable.domain.specs import ID
from opposable.store.pagination import LARGEST

T = TypeVar("T")

After = Annotated[str, Query(description="The `next` of the part before; empty for the first.", max_length=1000)]
Limit = Annotated[int, Query(ge=1, le=LARGEST, description="Items of one part.")]
ToolId = Annotated[str, Path(pattern=ID, description="A tool's id.", examples=["calculator"])]
AgentId = Annotated[str, Path(pattern=ID, description="An agent's id.", examples=["default"])]


class Part(BaseModel, Generic[T]):
    """A part of a list; `next` is given as `after` for the one that follows, and empty at the end."""

    items: list[T]
    next: str = ""
    set_aside: dict[str, str] = Field(default={}, description="Rows that could not be read, with the reason.")

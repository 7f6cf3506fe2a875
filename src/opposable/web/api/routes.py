"""The routers of the service's own routes, together."""

from fastapi import FastAPI

from opposable.web.api import agui, approvals, ask, chat, conversations, runs


def add_routes(app: FastAPI) -> None:
    """Add them."""
    for room in (chat, agui, ask, conversations, runs, approvals):
        app.include_router(room.router)

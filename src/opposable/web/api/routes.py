"""The routers of chats, runs, batches, conversations and approvals."""

from fastapi import FastAPI

from opposable.web.api import agui, approvals, ask, batches, chat, conversations, databases, runs, semantics


def add_routes(app: FastAPI) -> None:
    """Add the routers to the application."""
    for module in (chat, agui, ask, databases, semantics, conversations, runs, batches, approvals):
        app.router.routes += module.router.routes

"""A library with two tools, and a gateway whose model writes its calls as text."""

from contextlib import asynccontextmanager

from tests.web.gateway.clients import FIND, LOOK, SYSTEM, TASK, ToolLog
from tests.web.gateway.test_clients import written
from tests.web.serving import serve_models

from opposable.domain.content import FilePart, ImagePart
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel
from opposable.tools.library import ToolLibrary

__all__ = ["SYSTEM", "TASK", "create_library", "create_media_library", "serve_written_calls"]


def create_library(log: ToolLog) -> ToolLibrary:
    def find_order(customer: str) -> str:
        return log.call("find_order", customer)

    def order_status(order_number: str) -> str:
        return log.call("order_status", order_number)

    find_order.__doc__, order_status.__doc__ = FIND, LOOK
    return ToolLibrary([find_order, order_status])


def create_media_library() -> ToolLibrary:
    """A library whose tool returns two images and two files."""

    def show() -> list:
        image, file = ImagePart("", b"png", "image/png"), FilePart("", b"pdf", "application/pdf", "a.pdf")
        return [image, ImagePart("https://example.com/b.png"), file, FilePart("https://example.com/b.pdf")]

    return ToolLibrary([show])


@asynccontextmanager
async def serve_written_calls():
    model = TextProtocolModel(ScriptedModel(lambda messages: written("hermes", messages), chunk_size=5), "protocol")
    async with serve_models(model) as url:
        yield url

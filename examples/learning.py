"""Failure memory: a model repeats a click on a missing selector until a guard stops it; the next run avoids it.

python examples/learning.py           with a browser on a local page, or a simulated page if Chromium is not installed
python examples/learning.py bare      without guards

The scripted model clicks the wrong selector until it is stopped, or warned in advance. The first run records the
failure and its correction. The second run starts with that knowledge.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from opposable import Agent, Limits, Message, ToolLibrary
from opposable.agent.assistance.guard_options import ALL_GUARDS, NO_GUARDS
from opposable.builtin_tools.browser.browser_navigator import BrowserNavigator
from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolFailed, ToolUnavailable
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.tools.function import tools_from_object

PAGE = '<title>Mara</title><h1>Mara</h1><a class="about" href="#">About</a> <a class="social-link" href="#f">1,204 followers</a>'
WRONG_SELECTOR, RIGHT_SELECTOR = "a.social-count", "a.social-link"


class SimulatedPage:
    """Simulates the page if no browser is installed."""

    async def navigate(self, url: str) -> str:
        """Go to a web page."""
        return "Mara. About. 1,204 followers."

    async def click(self, selector: str) -> str:
        """Click an element of the page."""
        if selector != RIGHT_SELECTOR:
            raise ToolFailed(
                f"Selector {selector!r} not found. Selectors on this page: a.about (About); {RIGHT_SELECTOR}."
            )
        return "Mara. 1,204 followers."


@asynccontextmanager
async def serve_page() -> AsyncIterator[str]:
    """Serve the page and yield its URL."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/"
    finally:
        await runner.cleanup()


def make_stubborn_model(url: str) -> ScriptedModel:
    """Return a model that opens the page and clicks the wrong selector; see above."""
    model: ScriptedModel

    def reply(messages: Sequence[Message]) -> str | Message:
        results = [message.content for message in messages if message.role == "tool"]
        is_warned = any("Known from before" in tool.description for tool in model.requests[-1].tools)
        if not results:
            return reply_with_calls(tool_call("browser_navigate", f'{{"url": "{url}"}}', "c0"))
        if "1,204" in results[-1] and len(results) > 1 and "not found" not in results[-1]:
            return "Mara has 1,204 followers."
        selector = RIGHT_SELECTOR if is_warned or "Not run" in results[-1] else WRONG_SELECTOR
        return reply_with_calls(tool_call("browser_click", f'{{"selector": "{selector}"}}', f"c{len(results)}"))

    model = ScriptedModel(reply)
    return model


@asynccontextmanager
async def open_browser_library() -> AsyncIterator[ToolLibrary]:
    """Open a library with two actions of the browser, or of the simulated page."""
    async with BrowserNavigator(allowed_hosts=["127.0.0.1"]) as browser:
        try:
            async with serve_page() as url:
                await browser.navigate(url, CallContext("probe"))
            page: object = browser
        except (ToolUnavailable, ImportError):
            page = SimulatedPage()
        yield ToolLibrary(
            tool for tool in tools_from_object(page, "browser") if tool.tool_id.endswith(("navigate", "click"))
        )


async def main(is_guarded: bool) -> None:
    """Run the same agent twice."""
    async with serve_page() as url, open_browser_library() as library:
        limits = Limits(turns=16, tool_calls=None)
        agent = Agent(
            make_stubborn_model(url), library, limits=limits, assistance=ALL_GUARDS if is_guarded else NO_GUARDS
        )
        for number in ("first", "second"):
            run_finished = await agent.run("How many followers does Mara have?")
            results = [message.content for message in run_finished.messages if message.role == "tool"]
            failed_count = sum("not found" in result and "Not run" not in result for result in results)
            refused_count = sum("Not run" in result for result in results)
            print(
                f"{number} run: {len(results) - 1} clicks, {failed_count} failed, {refused_count} refused; {run_finished.text[:60]}"
            )


if __name__ == "__main__":
    asyncio.run(main(is_guarded=sys.argv[1:] != ["bare"]))

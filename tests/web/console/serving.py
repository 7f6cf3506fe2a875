"""A service with a scripted model for the console, and a page of a real browser."""

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
from playwright.async_api import Browser, Page, async_playwright, expect

from opposable.domain.content import ImagePart
from opposable.domain.errors import ModelUnavailable
from opposable.domain.events import Reply, TextDelta
from opposable.domain.messages import Message, assistant_message
from opposable.domain.specs import AgentSpec, AgentToolBinding
from opposable.models.profile import ModelProfile
from opposable.models.scripted import reply_with_calls, tool_call
from opposable.service.service import Service, open_service
from opposable.settings import Settings
from opposable.web.http_server import serve_in_background
from opposable.web.server import create_app

expect.set_options(timeout=15_000)
ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "examples" / "data" / "chinook.sqlite"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
EXECUTABLE = next((path for name in BROWSERS if (path := shutil.which(name))), None)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HOSTILE_TEXT = (
    "<script>window.hacked = 1</script> <img src=x onerror='window.hacked = 2'>\n\n"
    "![beacon](http://127.0.0.1:9/beacon.png?secret=1) [click](javascript:window.hacked=3)"
)


def draw() -> list[ImagePart]:
    """Draw: return an image, and the address of another one."""
    return [ImagePart("", PIXEL, "image/png"), ImagePart("http://127.0.0.1:9/beacon.png")]


ANSWER = """Both results are in.

| item | price |
|---|---:|
| tea | 4.50 |
| coffee | 6.20 |

```python
total = 4.50 + 6.20
```
"""


class ConsoleModel:
    """A model that answers by keywords of the last message: calculate, parallel, slow, hostile, fail, approve, unreachable, draw."""

    def __init__(self, name: str = "scripted", *, images: bool = True) -> None:
        self.name = name
        self.is_reachable = False
        self.profile = ModelProfile(images=images)

    async def stream(self, messages, tools=(), options=None):
        """Stream the reply for the last message."""
        last = messages[-1]
        text = last.content
        if last.role == "user" and "slow" in text:
            for _ in range(600):
                yield TextDelta("word ")
                await asyncio.sleep(0.05)
        if last.role == "user" and "unreachable" in text and not self.is_reachable:
            raise ModelUnavailable("The model server is out of memory.")
        reply = self._reply(last, [tool.name for tool in tools])
        if any("unicorns" in message.content for message in messages):
            reply = "```sql\nSELECT Name FROM Unicorn\n```"
        message = reply if isinstance(reply, Message) else assistant_message(reply)
        for start in range(0, len(message.content), 12):
            yield TextDelta(message.content[start : start + 12])
        yield Reply(message)

    def _reply(self, last: Message, tools: list[str]) -> str | Message:
        text = last.content
        if last.media and last.role == "user":
            return f"I see {len(last.media)} attachments."
        if text == "draw":
            return reply_with_calls(tool_call("draw", "{}"))
        if not tools and "Atlantis" in text and last.role == "user":
            return "```sql\nSELECT Total FROM Invoice WHERE BillingCountry = 'Atlantis'\n```"
        if not tools and "two drafts" in text and last.role == "user":
            return "```sql\nSELECT Name FROM Genres\n```"
        if not tools and "no table Genres" in text and last.role == "user":
            return "```sql\nSELECT Name FROM Genre ORDER BY 1\n```"
        if not tools and "SELECT" not in text and last.role == "user":
            return "```sql\nSELECT BillingCountry, SUM(Total) AS revenue FROM Invoice GROUP BY 1 ORDER BY 2 DESC LIMIT 8\n```"
        if last.role == "tool":
            return HOSTILE_TEXT if "hacked" in text else ANSWER
        if "parallel" in text:
            calls = (tool_call("calculator", '{"expression": "25*4"}', "p1"), tool_call("time", "{}", "p2"))
            return reply_with_calls(*calls)
        if "hostile" in text:
            return reply_with_calls(tool_call("echo", '{"text": ' + _quote(HOSTILE_TEXT) + "}"))
        if "fail" in text:
            return reply_with_calls(tool_call("calculator", '{"expression": "1/0"}'))
        if "calculate" in text or "%" in text or "approve" in text:
            return reply_with_calls(tool_call("calculator", '{"expression": "2340*17/100"}'))
        return ANSWER if "table" in text else f"You said: {text}"

    async def aclose(self) -> None:
        """Do nothing: there is nothing to release."""


def _quote(text: str) -> str:
    return orjson.dumps(text).decode()


@dataclass
class Console:
    """A running service, its address and a browser."""

    url: str
    service: Service
    browser: Browser
    model: ConsoleModel

    async def open(self, path: str = "/", **options) -> Page:
        """Open a page; the tour is closed unless `tour=True`."""
        with_tour = options.pop("tour", False)
        context = await self.browser.new_context(locale=options.pop("locale", "en-US"), **options)
        context.set_default_timeout(15_000)
        if not with_tour:
            await context.add_init_script("localStorage.setItem('opposable-tour', 'done')")
        page = await context.new_page()
        await page.goto(path if "://" in path else self.url + path)
        return page


async def create_key(console: Console, **body) -> str:
    """Create an API key with the API of a console whose own key is `sesame`."""
    page = await console.open("/chat")
    headers = {"Authorization": "Bearer sesame"}
    response = await page.request.post(console.url + "/api/keys", data={"name": "clerk", **body}, headers=headers)
    assert response.ok, await response.text()
    return (await response.json())["key"]


class BreakableProxy:
    """Forwards TCP connections to a port, and breaks all of them on request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()

    def break_connections(self) -> None:
        """Reset every open connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection in both directions until it ends."""
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, upstream_writer}
        try:
            await asyncio.gather(_copy(reader, upstream_writer), _copy(upstream_reader, writer))
        except OSError:
            pass  # the connection was reset
        finally:
            self._writers -= {writer, upstream_writer}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def open_proxy(url: str) -> AsyncIterator[tuple[str, BreakableProxy]]:
    """Serve a proxy of the server at a URL; yield its own URL."""
    proxy = BreakableProxy(int(url.rpartition(":")[2]))
    async with await asyncio.start_server(proxy.forward, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy
        proxy.break_connections()


@asynccontextmanager
async def launch_browser() -> AsyncIterator[Browser]:
    """Start Chromium."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def serve_console(browser: Browser, folder: Path, *, api_key: str = "", **settings) -> AsyncIterator[Console]:
    """Serve the console with a scripted model, an agent that needs approval and a database.

    The contexts of the browser are closed at the end.
    """
    model = ConsoleModel()
    models = {"scripted": model, "other": ConsoleModel("other", images=False)}
    service_settings = Settings(_env_file=None, home=folder, roots=(folder,), **settings)
    async with (
        open_service(service_settings, models) as service,
        serve_in_background(create_app(service, api_key=api_key)) as url,
    ):
        await add_agents(service)
        try:
            yield Console(url.removesuffix("/v1"), service, browser, model)
        finally:
            for context in browser.contexts:
                await context.close()


async def add_agents(service: Service) -> None:
    """Store an agent whose calculator needs approval, and one with a database."""
    tools = (AgentToolBinding(tool_id="calculator"), AgentToolBinding(tool_id="time"))
    careful = AgentSpec(agent_id="careful", name="Careful clerk", tools=tools, needs_approval=("calculator",))
    analyst = AgentSpec(agent_id="analyst", name="Music store", database=f"sqlite:///{SAMPLE}")
    for spec in (careful, analyst):
        if await service.store.agents.get(spec.agent_id) is None:
            await service.store.agents.add(spec)

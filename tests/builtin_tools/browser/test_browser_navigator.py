"""A real Chromium reads, clicks and types on local pages, and the guard confines it."""

import asyncio
import base64
import shutil
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from opposable.builtin_tools.browser.browser_navigator import BrowserNavigator
from opposable.domain.call_context import CallContext
from opposable.domain.errors import InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.domain.specs import FunctionToolSpec
from opposable.tools.function import tools_from_object
from opposable.tools.function_loader import load_tools
from opposable.tools.library import ToolLibrary

CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FETCHED = [*Path.home().glob(".cache/ms-playwright/chromium*")]
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not any(map(shutil.which, CHROMIUM)) and not FETCHED, reason="no Chromium: see make browser"),
]

PROFILE = """<!doctype html><meta charset=utf-8><title>Profile</title>
<body><h1>Mara</h1>
<a class="social-counter" href="/stars">128 stars</a> <a href="/zh">中文</a>
<form action="/hello"><input name="who" placeholder="Your name"><button id="go">Greet</button></form>
<button onclick="setTimeout(() => { document.body.insertAdjacentHTML('beforeend', '<p id=late>arrived</p>') }, 100)">Load</button>
<a id="tab" target="_blank" href="/stars">New tab</a> <a id="slow-tab" target="_blank" href="/slow">Slow tab</a>
"""
CHINESE = "<!doctype html><meta charset=utf-8><title>天气</title><body><h1>北京天气</h1><p>今天晴，最高 26 度。</p><button id=查询>查询</button>"


POP_UP = """<body><button onclick="setTimeout(() => { const tab = window.open('/stars'); setTimeout(() => {
  if (location.search) tab.close(); document.body.append('signed in') }, 300) }, 300)">Sign in</button>"""


class Site:
    def __init__(self, port, hits):
        self.port, self.hits = port, hits
        self.url = f"http://127.0.0.1:{port}"


@asynccontextmanager
async def serve_site():
    hits = []

    def page(text):
        async def answer(request):
            hits.append(request.path)
            return web.Response(text=text, content_type="text/html")

        return answer

    async def hello(request):
        return web.Response(text=f"<title>Hello</title>Hello, {request.query['who']}!", content_type="text/html")

    async def away(request):
        raise web.HTTPFound(request.query["to"])

    async def slow(request):
        await asyncio.sleep(1)
        return web.Response(text="Here at last", content_type="text/html")

    app = web.Application()
    app.router.add_get("/slow", slow)
    app.router.add_get("/pop-up", page(POP_UP))
    app.router.add_get("/", page(PROFILE))
    app.router.add_get("/zh", page(CHINESE))
    app.router.add_get("/stars", page("<title>Stars</title>All 128 stars"))
    app.router.add_get("/empty", page(""))
    app.router.add_get(
        "/hang", page(f"<title>{'T' * 9999}</title><script>setTimeout(() => {{while (1);}}, 400)</script>")
    )
    app.router.add_get("/hello", hello)
    app.router.add_get("/away", away)
    app.router.add_get("/secret", page("the secret"))
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield Site(runner.addresses[0][1], hits)
    finally:
        await runner.cleanup()


@pytest.fixture(scope="module")
def anyio_backend():
    """One loop for the module: a browser takes a second to start, and belongs to its loop."""
    return "asyncio"


@pytest.fixture(scope="module")
async def site():
    async with serve_site() as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
async def browser(site, folder):
    async with BrowserNavigator(
        [folder], allowed_hosts=[f"127.0.0.1:{site.port}"], timeout_seconds=15, max_pages=50
    ) as made:
        yield made


@pytest.fixture
def one(request):
    return CallContext(run_id=request.node.name)


async def test_a_page_that_hangs_is_closed(site, one):
    async with BrowserNavigator((), allowed_hosts=[f"127.0.0.1:{site.port}"], timeout_seconds=4) as browser:
        assert (await browser.navigate(f"{site.url}/hang", one))["title"] == "T" * 300
        await asyncio.sleep(0.5)
        with pytest.raises(TimeoutError, match="the page did not answer within 8 seconds"):
            await browser.read(one)
        assert (await browser.navigate(site.url, one))["title"] == "Profile"


async def test_page_is_read_clicked_and_typed_into(browser, site, one):
    assert await browser.navigate(site.url, one) == {
        "url": f"{site.url}/",
        "title": "Profile",
        "text": "Mara 128 stars 中文 Greet Load New tab Slow tab",
    }
    links = (await browser.read(one, "links"))["links"]
    assert links[:2] == [{"text": "128 stars", "url": f"{site.url}/stars"}, {"text": "中文", "url": f"{site.url}/zh"}]
    elements = (await browser.read(one, "elements"))["elements"]
    selectors = [element["selector"] for element in elements]
    assert selectors[:4] == ["a.social-counter", 'a[href="/zh"]', 'input[name="who"]', "#go"]
    assert (await browser.type('input[name="who"]', "小明", one, submit=True))["text"] == "Hello, 小明!"


async def test_every_returned_selector_matches_one_element(browser, site, one):
    await browser.navigate(site.url, one)
    elements = (await browser.read(one, "elements"))["elements"]
    assert len(elements) > 3
    for element in elements:
        found = await browser.read(one, selector=element["selector"])
        assert "note" not in found


async def test_chinese_page_is_read(browser, site, one):
    await browser.navigate(f"{site.url}/zh", one)
    assert (await browser.read(one))["text"] == "北京天气\n\n今天晴，最高 26 度。\n\n查询"
    assert (await browser.read(one, "elements"))["elements"] == [{"selector": "#查询", "tag": "button", "text": "查询"}]


async def test_selector_without_match_is_reported_with_similar_ones(browser, site, one):
    await browser.navigate(site.url, one)
    with pytest.raises(ToolFailed) as raised:
        await browser.click("a.social-count", one)
    message = str(raised.value)
    assert message.startswith(f"Selector 'a.social-count' not found on {site.url}/. Selectors on this page: ")
    near = message.partition("Selectors on this page: ")[2].split("; ")[0].rpartition(" (")[0]
    assert (await browser.click(near, one))["text"] == "All 128 stars"


@pytest.mark.parametrize("selector", ["a[", "::::"])
async def test_invalid_selector_is_reported(browser, site, selector, one):
    await browser.navigate(site.url, one)
    with pytest.raises(InvalidArguments, match="must be a CSS selector"):
        await browser.click(selector, one)


async def test_wait_finds_late_elements_or_times_out(browser, site, one):
    library = ToolLibrary(tools_from_object(browser, "browser_navigator"))
    await library.call("browser_navigator.navigate", {"url": site.url}, one)
    await library.call("browser_navigator.click", {"selector": "text=Load"}, one)
    assert "arrived" in (await library.call("browser_navigator.wait", {"selector": "#late"}, one)).data["text"]
    result = await library.call("browser_navigator.wait", {"text": "never", "seconds": 0.2}, one)
    assert (result.failure, "never was not ready within 0.2 seconds" in result.content) == ("timeout", True)


async def test_new_tab_becomes_the_current_page(browser, site, one):
    await browser.navigate(site.url, one)
    await browser.click("#tab", one)
    await browser.wait(one, text="All 128 stars")
    assert (await browser.read(one))["url"] == f"{site.url}/stars"


async def test_wait_follows_a_link_to_a_new_tab_that_answers_late(browser, site, one):
    await browser.navigate(site.url, one)
    await browser.click("#slow-tab", one)
    assert (await browser.wait(one, text="Here at last"))["url"] == f"{site.url}/slow"


@pytest.mark.parametrize("url", ["/pop-up", "/pop-up?closes"])
async def test_wait_finds_a_text_of_the_first_page_after_another_tab_opened(browser, site, one, url):
    await browser.navigate(site.url + url, one)
    await browser.click("text=Sign in", one)
    assert (await browser.wait(one, text="signed in"))["url"] == site.url + url


async def test_wait_does_not_look_at_tabs_in_the_background(browser, site, one):
    await browser.navigate(site.url, one)
    await browser.click("#tab", one)
    await browser.wait(one, text="All 128 stars")
    with pytest.raises(TimeoutError, match="Slow tab was not ready"):
        await browser.wait(one, text="Slow tab", seconds=0.3)


async def test_runs_have_separate_pages(browser, site, one):
    two = CallContext(run_id="two")
    await asyncio.gather(browser.navigate(site.url, one), browser.navigate(f"{site.url}/zh", two))
    assert [(await browser.read(one))["title"] for one in (one, two)] == ["Profile", "天气"]


async def test_owners_have_separate_pages_outside_of_runs(browser, site):
    one, two = CallContext(owner="one"), CallContext(owner="two")
    await browser.navigate(site.url, one)
    with pytest.raises(ToolFailed, match="No page is open yet"):
        await browser.read(two)


async def test_screenshot_is_written_inside_the_roots_only(browser, site, folder, one):
    await browser.navigate(site.url, one)
    result = await browser.screenshot(one, "page.png")
    assert result["path"] == "page.png"
    assert (folder / "page.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ToolRefused):
        await browser.screenshot(one, "../page.png")


async def test_screenshot_without_roots_is_base64(site, one):
    async with BrowserNavigator(allowed_hosts=[f"127.0.0.1:{site.port}"]) as browser:
        await browser.navigate(f"{site.url}/empty", one)
        assert base64.b64decode((await browser.screenshot(one))["png_base64"])[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "chrome://version",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://169.254.169.254/latest/meta-data/",
        "http://2130706433/",
        "http://[::1]/",
        "http://localhost/",
        "http://10.0.0.1/",
        "http://user@127.0.0.1/",
    ],
)
async def test_forbidden_url_is_refused(browser, url, one):
    with pytest.raises(ToolRefused):
        await browser.navigate(url, one)


async def test_redirects_scripts_and_frames_do_not_bypass_the_guard(browser, site, one):
    async with serve_site() as inner:
        with pytest.raises(ToolRefused, match="loopback"):
            await browser.navigate(f"{site.url}/away?to={inner.url}/secret", one)
        await browser.navigate(site.url, one)
        async with browser._sessions.use_page(("", one.run_id)) as page:
            outcome = await page.evaluate(
                """async (url) => {
                  const tried = [];
                  for (const go of [
                    () => fetch(url, {mode: "no-cors"}),
                    () => new Promise((ok, no) => { const w = new WebSocket(url.replace("http", "ws")); w.onopen = ok; w.onerror = no; }),
                    () => new Promise((ok, no) => { const i = new Image(); i.onload = ok; i.onerror = no; i.src = url; }),
                  ]) { try { await go(); tried.push("reached"); } catch { tried.push("refused"); } }
                  const f = document.createElement("iframe"); f.src = url; document.body.append(f);
                  const b = navigator.sendBeacon(url, "x");
                  await new Promise((ok) => setTimeout(ok, 300));
                  return tried;
                }""",
                f"{inner.url}/secret",
            )
        assert outcome == ["refused", "refused", "refused"]
        assert inner.hits == []


async def test_an_unreachable_page_is_not_reported_with_the_refusals_of_another_run(site, one):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closed_port = listening.getsockname()[1]
    async with BrowserNavigator(allowed_hosts=["127.0.0.1"]) as browser:
        await browser.navigate(site.url, one)
        async with browser._sessions.use_page(("", one.run_id)) as page:
            await page.evaluate("() => { setInterval(() => fetch('http://10.9.8.7/payroll').catch(() => {}), 20) }")
            await asyncio.sleep(0.2)
        with pytest.raises(ToolUnavailable) as caught:
            await browser.navigate(f"http://127.0.0.1:{closed_port}/", CallContext(run_id="other"))
        assert "10.9.8.7" not in str(caught.value)


async def test_unresolvable_host_is_unavailable(browser, one):
    with pytest.raises(ToolUnavailable):
        await browser.navigate("http://no-such-host.invalid/", one)


async def test_action_without_a_page_is_reported(browser, one):
    with pytest.raises(ToolFailed, match="call navigate first"):
        await browser.click("#go", one)


async def test_idle_page_is_closed_and_the_next_call_opens_a_new_one(site, one):
    async with BrowserNavigator(allowed_hosts=[f"127.0.0.1:{site.port}"], idle_seconds=0.2) as browser:
        await browser.navigate(site.url, one)
        for _ in range(100):
            if browser._sessions._browser is None:
                break
            await asyncio.sleep(0.05)
        assert browser._sessions._browser is None
        assert (await browser.navigate(site.url, one))["title"] == "Profile"


async def test_missing_browser_is_reported_with_install_hints(monkeypatch, tmp_path, one):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    async with BrowserNavigator() as browser:
        with pytest.raises(ToolUnavailable, match="apt-get install chromium-headless-shell"):
            await browser.navigate("http://example.com", one)


async def test_spec_capabilities_limit_the_actions():
    spec = FunctionToolSpec.model_validate(
        {
            "tool_id": "browser_navigator",
            "display_name": "网页导航器",
            "description": "提供网页导航和元素交互功能",
            "capabilities": [
                {
                    "name": "navigate",
                    "description": "导航到指定网页",
                    "examples": [{"arguments": {"url": "https://www.example.com"}}],
                    "category": "web",
                },
                {
                    "name": "click",
                    "description": "点击页面元素",
                    "examples": [{"arguments": {"selector": "#submit-button"}}],
                    "category": "web",
                },
            ],
            "tags": ["web", "automation", "browser"],
            "module_path": "opposable.builtin_tools.browser.browser_navigator",
            "class_name": "BrowserNavigator",
        }
    )
    tools = load_tools(spec, allowed=["opposable.builtin_tools.browser.browser_navigator:BrowserNavigator"])
    result = {tool.tool_id: list(tool.definition.parameters["properties"]) for tool in tools}
    assert result == {"browser_navigator.click": ["selector"], "browser_navigator.navigate": ["url"]}

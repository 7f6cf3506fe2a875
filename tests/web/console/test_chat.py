"""Chat in a real browser: streaming, calls, approval, stop, broken connections, hostile output."""

import re

import pytest
from playwright.async_api import expect
from tests.web.console.serving import open_proxy, serve_console

pytestmark = pytest.mark.anyio


async def send(page, text: str) -> None:
    await page.get_by_role("textbox", name="Write a message").fill(text)
    await page.get_by_role("button", name="Send").click()


async def test_a_message_is_answered_and_stays_after_a_reload(tmp_path):
    async with serve_console(tmp_path) as console:
        page = await console.open()
        await send(page, "run parallel calls")
        await expect(page.locator("[data-tool-call]")).to_have_count(2)
        await expect(page.get_by_role("cell", name="coffee")).to_be_visible()
        await page.locator("[data-tool-call=calculator] button").first.click()
        await expect(page.get_by_role("region", name="Result")).to_contain_text('"result": 100')
        await page.reload()
        await expect(page.get_by_role("cell", name="coffee")).to_be_visible()
        await expect(page.locator("[data-tool-call]")).to_have_count(2)


async def test_conversations_are_found_renamed_and_deleted(tmp_path):
    async with serve_console(tmp_path) as console:
        page = await console.open()
        await send(page, "good morning")
        row = page.get_by_role("link", name="good morning")
        await expect(row).to_be_visible()
        await page.get_by_role("button", name="Actions for good morning").click()
        await page.get_by_role("menuitem", name="Rename").click()
        await page.get_by_role("textbox", name="Title").fill("Greeting")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("link", name="Greeting")).to_be_visible()
        await page.get_by_role("textbox", name="Search conversations").fill("nothing like it")
        await expect(page.get_by_text("Nothing matches.")).to_be_visible()
        await page.get_by_role("textbox", name="Search conversations").fill("greet")
        await page.get_by_role("button", name="Actions for Greeting").click()
        await page.get_by_role("menuitem", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No conversations yet.")).to_be_visible()


@pytest.mark.parametrize(("decision", "outcome"), [("Approve", "Succeeded"), ("Deny", "Not run")])
async def test_a_call_waits_for_the_decision_on_its_arguments(tmp_path, decision, outcome):
    async with serve_console(tmp_path) as console:
        page = await console.open("/chat?agent=careful")
        await send(page, "calculate")
        card = page.get_by_role("region", name="Allow calculator to run with exactly these arguments?")
        await expect(card).to_contain_text("2340*17/100")
        await card.get_by_role("button", name=decision).click()
        await expect(page.get_by_role("img", name=outcome)).to_be_visible()
        await expect(page.get_by_role("cell", name="coffee")).to_be_visible()


async def test_a_run_is_stopped(tmp_path):
    async with serve_console(tmp_path) as console:
        page = await console.open()
        await send(page, "slow")
        await expect(page.get_by_text("word word")).to_be_visible()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_text("Stopped.")).to_be_visible()
        assert console.service.runner.active_count == 0


async def test_a_broken_connection_is_resumed(tmp_path):
    async with serve_console(tmp_path) as console, open_proxy(console.url) as (url, proxy):
        page = await console.open(url)
        await send(page, "slow")
        await expect(page.get_by_text("word word")).to_be_visible()
        async with page.expect_request("**/events"):
            proxy.break_connections()
        before = len(await page.get_by_role("article").inner_text())
        await expect(page.get_by_role("article")).to_have_text(re.compile(f"[\\s\\S]{{{before + 50}}}"))
        text = await page.get_by_role("article").inner_text()
        assert set(text.split()) == {"slow", "word"}
        assert console.service.runner.active_count == 1


async def test_hostile_output_is_shown_as_text(tmp_path):
    async with serve_console(tmp_path) as console:
        page = await console.open()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        await send(page, "hostile")
        await expect(page.get_by_text("image not loaded: beacon")).to_be_visible()
        await page.locator("[data-tool-call=echo] button").first.click()
        await expect(page.get_by_role("region", name="Result")).to_contain_text("<script>window.hacked = 1</script>")
        assert await page.evaluate("window.hacked") is None
        assert await page.locator("a[href^='javascript']").count() == 0
        assert [url for url in requests if not url.startswith(console.url)] == []

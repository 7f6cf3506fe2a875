"""Sign-in, and what the console offers to a key by its scopes, in a real browser."""

import pytest
from playwright.async_api import Page, expect
from tests.web.console.serving import Console, create_key, serve_console

pytestmark = pytest.mark.anyio


async def open_signed_in(console: Console, path: str, scopes: list[str], **options) -> Page:
    """Open a page with a new key that has these scopes."""
    key = await create_key(console, name=" ".join(scopes), scopes=scopes)
    page = await console.open(path, **options)
    await page.get_by_label("API key").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    return page


async def list_buttons(page: Page) -> list[str]:
    """Return the names of the buttons and the links that look like buttons in the content of a page."""
    return [text for text in await page.locator("main .mantine-Button-root").all_inner_texts() if text]


async def test_a_key_signs_in_and_is_out_of_reach_of_scripts(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        page = await console.open("/runs")
        await page.get_by_label("API key").fill("wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_contain_text("The API key is not valid.")
        await page.get_by_label("API key").fill("sesame")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("navigation").get_by_role("link", name="Chat")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("navigation").get_by_role("link", name="Chat")).to_be_visible()
        stored = await page.evaluate("document.cookie + JSON.stringify({...localStorage, ...sessionStorage})")
        assert "sesame" not in stored
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("API key")).to_be_visible()


async def test_a_key_may_have_any_characters(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="芝麻") as console:
        page = await console.open("/runs")
        await page.get_by_label("API key").fill("“wrong”")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_contain_text("The API key is not valid.")
        await page.get_by_label("API key").fill("芝麻")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("navigation").get_by_role("link", name="Chat")).to_be_visible()


async def test_the_language_and_the_colors_change(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open(locale="zh-CN")
        await expect(page.get_by_role("link", name="对话", exact=True)).to_be_visible()
        await page.get_by_role("button", name="切换为英文").click()
        await expect(page.get_by_role("link", name="Chat", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Use dark colors").click()
        await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
        await page.reload()
        await expect(page.get_by_role("link", name="Chat", exact=True)).to_be_visible()
        await expect(page.get_by_role("button", name="Use light colors")).to_be_visible()


async def test_a_key_for_chats_gets_one_step_of_the_tour_and_no_tools(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        page = await open_signed_in(console, "/", ["chat"], tour=True)
        tour = page.get_by_role("region", name="First steps")
        await expect(tour).to_contain_text("1/1")
        await tour.get_by_role("button", name="Ask a question").click()
        await expect(page.get_by_role("textbox", name="Write a message")).to_have_value("What is 17% of 2,340?")
        await expect(tour).to_be_hidden()
        for path in ("/tools", "/tools/new", "/tools/calculator", "/agents", "/agents/careful"):
            await page.goto(console.url + path)
            await expect(page.get_by_role("alert", name="This is not allowed.")).to_contain_text("tools:read")
            assert await list_buttons(page) == []
        await page.goto(console.url + "/settings?tab=keys")
        await expect(page.get_by_role("alert", name="This is not allowed.")).to_contain_text("admin")
        assert await list_buttons(page) == []


async def test_a_key_that_reads_tools_changes_none(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        page = await open_signed_in(console, "/", ["tools:read"], tour=True)
        await expect(page).to_have_url(console.url + "/tools")
        await expect(page.get_by_role("link", name="calculator")).to_be_visible()
        await expect(page.get_by_role("region", name="First steps")).to_be_hidden()
        assert await list_buttons(page) == []
        await page.goto(console.url + "/tools/new")
        await expect(page.get_by_role("alert", name="This is not allowed.")).to_contain_text("tools:write")
        await page.goto(console.url + "/tools/calculator")
        await expect(page.get_by_role("tab")).to_have_text(["For the model", "Agents", "Definition", "Versions"])
        await page.get_by_role("tab", name="Definition").click()
        await expect(page.get_by_role("region", name="Definition")).to_contain_text('"calculator"')
        assert await list_buttons(page) == []
        await page.goto(console.url + "/agents")
        await expect(page.get_by_role("link", name="Careful clerk")).to_be_visible()
        assert await list_buttons(page) == []
        await page.get_by_role("link", name="Careful clerk").click()
        await expect(page.get_by_role("textbox", name="Name")).to_be_disabled()
        assert await list_buttons(page) == ["YAML"]
        await page.goto(console.url + "/settings")
        await expect(page.get_by_text("Signed in as")).to_be_visible()
        await expect(page.get_by_role("button", name="Start the tour")).to_be_hidden()


async def test_a_key_that_writes_tools_cannot_set_what_needs_an_admin(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        page = await open_signed_in(console, "/agents/careful", ["chat", "tools:read", "tools:write"])
        await expect(page.get_by_role("textbox", name="Name")).to_be_enabled()
        await expect(page.get_by_role("textbox", name="Database")).to_be_disabled()
        assert await list_buttons(page) == ["Chat", "YAML", "Delete", "Save"]
        await page.goto(console.url + "/tools/new")
        await expect(page.get_by_role("tab")).to_have_text(["HTTP", "OpenAPI", "Function", "Skill"])
        await page.goto(console.url + "/tools/calculator")
        await expect(page.get_by_role("tab")).to_have_text(
            ["Try it", "For the model", "Agents", "Definition", "Versions"]
        )


async def test_a_key_that_only_approves_decides_the_calls_of_other_keys(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        asker = await open_signed_in(console, "/chat?agent=careful&message=approve", ["chat", "tools:read"])
        await asker.get_by_role("button", name="Send").click()
        await expect(asker.get_by_role("region", name="Allow calculator")).to_be_visible()
        page = await open_signed_in(console, "/", ["approve"])
        await expect(page.get_by_role("tab", name="Approvals (1)")).to_be_visible()
        card = page.get_by_role("region", name="Allow calculator")
        await expect(card).to_contain_text("2340*17/100")
        await card.get_by_role("button", name="Approve").click()
        await expect(page.get_by_role("heading", name="No call waits for approval")).to_be_visible()
        await expect(asker.get_by_role("cell", name="coffee")).to_be_visible()
        await page.goto(console.url + "/runs?tab=runs")
        await expect(page.get_by_role("alert", name="This is not allowed.")).to_contain_text("chat")


async def test_what_was_typed_stays_when_a_session_expires(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        key = await create_key(console, scopes=["chat", "tools:read", "tools:write"])
        page = await console.open("/agents/careful")
        await page.get_by_label("API key").fill(key)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_label("Instructions").fill("Be kind.")
        await page.context.clear_cookies()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("The key is missing or not valid.")
        await expect(page.get_by_label("Instructions")).to_be_hidden()
        await page.get_by_label("API key").fill(key)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_label("Instructions")).to_have_value("Be kind.")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved.")).to_be_visible()
        assert (await console.service.store.agents.get("careful")).spec.instructions == "Be kind."


async def test_a_key_without_the_scope_cannot_decide_an_approval(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        page = await open_signed_in(console, "/chat?agent=careful&message=approve", ["chat", "tools:read"])
        await page.get_by_role("button", name="Send").click()
        card = page.get_by_role("region", name="Allow calculator")
        await expect(card).to_contain_text("calculator waits for a person who may approve it")
        await expect(card).to_contain_text("2340*17/100")
        await expect(card.get_by_role("button", name="Approve")).to_be_hidden()

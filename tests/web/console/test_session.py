"""Sign-in in a real browser."""

import pytest
from playwright.async_api import expect
from tests.web.console.serving import serve_console

pytestmark = pytest.mark.anyio


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

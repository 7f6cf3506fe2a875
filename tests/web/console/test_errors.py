"""Errors in the language of the user, with the sentence of the server below, in a real browser."""

import sqlite3
from contextlib import closing

import pytest
from playwright.async_api import Page, expect
from tests.web.console.serving import create_key, serve_console

pytestmark = pytest.mark.anyio


async def sign_in(page: Page, key: str) -> None:
    await page.get_by_label("API 密钥").fill(key)
    await page.get_by_role("button", name="登录").click()


async def expect_error(page: Page, headline: str, *details: str) -> None:
    """Expect one alert with a headline, and with details of the server below it."""
    alert = page.get_by_role("alert", name=headline, exact=True)
    await expect(alert).to_be_visible()
    for detail in details:
        await expect(alert).to_contain_text(detail)


async def test_a_wrong_key_and_a_missing_scope_are_explained_in_chinese(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        key = await create_key(console, scopes=["chat"])
        page = await console.open("/agents/careful", locale="zh-CN")
        await sign_in(page, "wrong")
        await expect_error(page, "密钥缺失或无效。", "The API key is not valid.")
        await sign_in(page, key)
        await expect_error(page, "不允许此操作。", "API 密钥需要权限 tools:read。")


async def test_too_many_requests_are_explained_in_chinese(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        key = await create_key(console, scopes=["chat"], rate_limit={"calls": 1, "seconds": 3600})
        page = await console.open("/runs", locale="zh-CN")
        await sign_in(page, key)
        await expect_error(page, "请求过于频繁，请稍后再试。", "allows 1 requests in 3600 seconds")


async def test_a_used_up_budget_is_explained_in_chinese(browser, tmp_path):
    async with serve_console(browser, tmp_path, api_key="sesame") as console:
        key = await create_key(console, scopes=["chat"], token_budget=0)
        page = await console.open("/chat", locale="zh-CN")
        await sign_in(page, key)
        await expect_error(page, "API 密钥的词元预算已用完。", "has used its budget of 0 tokens")


async def test_missing_pages_and_rejected_forms_are_explained_in_chinese(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open("/tools/missing", locale="zh-CN")
        await expect_error(page, "该对象不存在，或属于另一个 API 密钥。", "There is no tool 'missing'.")
        await page.goto(console.url + "/agents")
        await page.get_by_role("button", name="创建智能体").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("textbox", name="标识").fill("careful")
        await dialog.get_by_role("button", name="创建智能体").click()
        await expect_error(page, "该对象已存在，或已被更改。", "careful")
        await dialog.get_by_role("textbox", name="标识").fill("no spaces")
        await dialog.get_by_role("button", name="创建智能体").click()
        await expect_error(page, "输入无效。", "agent_id: 只能包含字母、数字、“.”、“_”和“-”")
        await page.goto(console.url + "/tools/new?kind=function")
        await page.get_by_label("标识", exact=True).fill("system")
        await page.get_by_label("模块").fill("os")
        await page.get_by_role("textbox", name="函数").fill("system")
        await page.get_by_role("button", name="保存").click()
        await expect_error(page, "输入无效。", "may not be used")
        await page.goto(console.url + "/tools/new?kind=mcp")
        await page.get_by_role("textbox", name="配置").fill("{")
        await page.get_by_role("button", name="添加工具").click()
        await expect_error(page, "输入不是有效的 JSON。")


async def test_a_failing_model_is_explained_in_chinese(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open("/chat?message=unreachable", locale="zh-CN")
        await page.get_by_role("button", name="发送").click()
        alert = page.get_by_role("alert", name="运行失败")
        await expect(alert).to_contain_text("无法连接模型。")
        await expect(alert).to_contain_text("The model server is out of memory.")


async def test_a_broken_store_and_a_lost_network_are_explained_in_chinese(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open("/settings", locale="zh-CN")
        with closing(sqlite3.connect(tmp_path / "opposable.sqlite")) as database, database:
            database.execute("UPDATE agents SET spec = '{'")
            database.execute("ALTER TABLE runs RENAME TO lost")
        await page.get_by_role("link", name="智能体").click()
        await expect_error(page, "服务器出现问题。", "The log of the service has the details.")
        await page.get_by_role("link", name="运行").click()
        await expect_error(page, "服务暂时无法响应，请稍后重试。")
        await page.context.set_offline(offline=True)
        await page.get_by_role("button", name="重试").click()
        await expect_error(page, "服务器没有响应。", "请确认 opposable serve 正在运行，且网络正常。")


async def test_an_export_that_fails_says_so(browser, tmp_path):
    async with serve_console(browser, tmp_path) as console:
        page = await console.open("/agents/careful", locale="zh-CN")
        await expect(page.get_by_role("textbox", name="名称")).to_be_visible()
        await page.context.set_offline(offline=True)
        await page.get_by_role("button", name="YAML").click()
        await expect_error(page, "服务器没有响应。")
        await page.context.set_offline(offline=False)
        await page.goto(console.url + "/runs?tab=calls")
        await expect(page.get_by_role("heading", name="没有调用")).to_be_visible()
        await page.context.set_offline(offline=True)
        await page.get_by_role("button", name="CSV").click()
        await expect_error(page, "服务器没有响应。")

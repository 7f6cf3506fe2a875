"""The built-in tools that need an extra or an owner's word: code, files of rows, the network, a browser."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from importlib.util import find_spec

from opposable.app.spec_loader import Toolbox
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool, actions

NEEDS = {
    "python_executor": "pydantic_monty",
    "file_processor": "duckdb",
    "data_analyzer": "duckdb",
    "web_scraper": "trafilatura",
    "browser_navigator": "playwright",
}
"""The module without which a tool is not offered; `api_caller` is offered where the owner lists hosts."""


def further_tools(box: Toolbox, closing: AsyncExitStack) -> list[Tool]:
    """Those of them that can be had here; what they open is closed by `closing`."""
    return list(_made(box, closing))


def _made(box: Toolbox, closing: AsyncExitStack) -> Iterator[Tool]:
    roots = list(box.reach.roots)
    if _there("python_executor"):
        from opposable.builtin_tools.python.python_executor import PythonExecutor

        executor = PythonExecutor()
        closing.push_async_exit(executor)
        yield FunctionTool(executor.python_executor)
    if roots and _there("file_processor"):
        from opposable.builtin_tools.data_files.data_analyzer import DataAnalyzer
        from opposable.builtin_tools.data_files.file_processor import FileProcessor

        yield from actions(FileProcessor(roots, allow_overwrite=box.reach.overwrite), "file_processor")
        yield from actions(DataAnalyzer(roots), "data_analyzer")
    if _there("web_scraper"):
        from opposable.builtin_tools.web_scraper import WebScraper

        yield FunctionTool(WebScraper(box.client).web_scraper)
    if box.reach.api_hosts:
        from opposable.builtin_tools.api_caller import ApiCaller

        yield FunctionTool(ApiCaller(box.client, box.reach.api_hosts).api_caller)
    if _there("browser_navigator"):
        from opposable.builtin_tools.browser.browser_navigator import BrowserNavigator

        browser = BrowserNavigator(roots, allow=box.reach.private_hosts)
        closing.push_async_exit(browser)
        yield from actions(browser, "browser_navigator")


def _there(tool: str) -> bool:
    return find_spec(NEEDS[tool]) is not None

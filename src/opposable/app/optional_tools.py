"""Built-in tools with optional dependencies: code, data files, web, browser."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from importlib.util import find_spec

from opposable.app.search_keywords import add_search_keywords
from opposable.app.spec_loader import SpecLoader
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool, tools_from_object


def create_optional_tools(loader: SpecLoader, exit_stack: AsyncExitStack) -> list[Tool]:
    """Create the tools whose dependencies are installed, `api_caller` only with allowed hosts.

    `exit_stack` closes what they open.
    """
    return [*add_search_keywords(_iter_optional_tools(loader, exit_stack))]


def _iter_optional_tools(loader: SpecLoader, exit_stack: AsyncExitStack) -> Iterator[FunctionTool]:
    roots = list(loader.permissions.roots)
    if _is_installed("pydantic_monty"):
        from opposable.builtin_tools.python.python_executor import PythonExecutor  # lazy: optional dependency

        executor = PythonExecutor()
        exit_stack.push_async_exit(executor)
        yield FunctionTool(executor.python_executor, read_only=True)
    if roots and _is_installed("duckdb"):
        from opposable.builtin_tools.data_files.data_analyzer import DataAnalyzer  # lazy: optional dependency
        from opposable.builtin_tools.data_files.file_processor import FileProcessor  # lazy: optional dependency

        yield from tools_from_object(
            FileProcessor(roots, allow_overwrite=loader.permissions.allow_overwrite),
            "file_processor",
            read_only=("read", "head", "info"),
        )
        methods = ("describe", "group", "correlate", "chart")
        yield from tools_from_object(DataAnalyzer(roots), "data_analyzer", read_only=methods)
    if _is_installed("trafilatura"):
        from opposable.builtin_tools.web_scraper import WebScraper  # lazy: optional dependency

        tool = FunctionTool(WebScraper(loader.client).web_scraper, read_only=True, untrusted_output=True)
        tool.calls_any_host = True
        yield tool
    if loader.permissions.api_hosts:
        from opposable.builtin_tools.api_caller import ApiCaller  # lazy: optional dependency

        caller = ApiCaller(loader.client, loader.permissions.api_hosts)
        tool = FunctionTool(caller.api_caller, untrusted_output=True)
        tool.calls_any_host = True
        yield tool
    if _is_installed("playwright"):
        from opposable.builtin_tools.browser.browser_navigator import BrowserNavigator  # lazy: optional dependency

        browser = BrowserNavigator(roots, allowed_hosts=loader.permissions.private_hosts)
        exit_stack.push_async_exit(browser)
        yield from tools_from_object(browser, "browser_navigator", read_only=("read", "wait"), untrusted_output=True)


def _is_installed(module: str) -> bool:
    return find_spec(module) is not None

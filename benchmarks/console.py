"""Measures the console in a real Chromium: a run and a chat with 1,000 events, and a table of 100,000 rows.

    python -m benchmarks.console            a table; --json for scripts

A page is loaded and then scrolled for 120 frames from top to end. The figures are the time until the content is
complete, the processor time of the main thread for a frame, the frame times and the longest task while it scrolls, and
the number of elements.
"""

import argparse
import asyncio
import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.async_api import CDPSession, Page
from tests.web.console.serving import Console, launch_browser, serve_console

from opposable.domain.records import Run, RunEvent

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLS = 333
ROWS = 100_000
TIMEOUT_MS = 120_000
FRAMES = 120

SCROLL = """async ([selector, frames]) => {
  const element = document.querySelector(selector);
  const tasks = [];
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration)));
  observer.observe({ type: "longtask" });
  const times = [];
  let last = performance.now();
  for (let frame = 1; frame <= frames; frame++) {
    element.scrollTop = (element.scrollHeight * frame) / frames;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  observer.disconnect();
  times.sort((a, b) => a - b);
  return {
    frame_ms_median: times[Math.floor(times.length / 2)],
    frame_ms_p95: times[Math.floor(times.length * 0.95)],
    long_tasks: tasks.length,
    longest_task_ms: Math.max(0, ...tasks),
    elements: document.querySelectorAll("*").length,
  };
}"""


async def add_run(console: Console, run_id: str, events: list[tuple[str, dict[str, Any]]], kind: str) -> None:
    """Store an ended run with its events."""
    conversation = "long" if kind == "chat" else ""
    run = Run(run_id, NOW, "finished", "default", conversation, task="A long run", ended_at=NOW, kind=kind)
    await console.service.store.runs.save(run)
    records = [RunEvent(run_id, number, *event, NOW) for number, event in enumerate(events, 1)]
    await console.service.store.runs.add_events(records)


def create_call_events() -> list[tuple[str, dict[str, Any]]]:
    """Return the 1,000 events of a run with 333 model turns and calls."""
    events: list[tuple[str, dict[str, Any]]] = []
    for number in range(CALLS):
        call = {"call_id": f"c{number}", "name": "lookup"}
        usage = {"input_tokens": 900 + number, "output_tokens": 20}
        events.append(("model_replied", {"turn": number + 1, "finish": "tool_calls", "tool_calls": [], "usage": usage}))
        events.append(("tool_started", {**call, "arguments": {"page": number, "query": "all orders of May"}}))
        result = {"success": True, "result": '{"rows": 20}', "failure": None, "seconds": 0.01 * (number % 90)}
        events.append(("tool_finished", {**call, **result, "attempts": 1, "cached": False, "cut": 0, "repairs": []}))
    usage = {"input_tokens": 1, "output_tokens": 1}
    return [*events, ("run_finished", {"text": "All pages are read.", "reason": "answer", "usage": usage})]


def create_table_events() -> list[tuple[str, dict[str, Any]]]:
    """Return the events of an answer with 100,000 rows."""
    rows = [[number, f"customer {number * 7919 % ROWS}", number * 37 % 1000 / 10] for number in range(ROWS)]
    answer = {"text": "Here they are.", "sql": "SELECT * FROM orders", "columns": ["id", "name", "total"], "rows": rows}
    more = {"truncated": False, "chart": None, "assumptions": [], "corrections": [], "confidence": 1.0}
    return [
        ("data_answered", answer | more),
        (
            "run_finished",
            {"text": answer["text"], "reason": "answer", "usage": {"input_tokens": 1, "output_tokens": 1}},
        ),
    ]


async def measure_page(console: Console, path: str, ready: str, scrolled: str) -> tuple[Page, dict[str, float]]:
    """Open a page and scroll an element; return the page and its figures."""
    page = await console.open("/runs")
    page.set_default_timeout(TIMEOUT_MS)
    start = time.perf_counter()
    await page.goto(console.url + path)
    await page.locator(ready).first.wait_for()
    seconds = time.perf_counter() - start
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = await _read_thread_seconds(session)
    figures = await page.evaluate(SCROLL, [scrolled, FRAMES])
    thread_ms = 1000 * (await _read_thread_seconds(session) - before) / FRAMES
    return page, {"ready_seconds": seconds, "main_thread_ms_per_frame": thread_ms, **figures}


async def _read_thread_seconds(session: CDPSession) -> float:
    """Return the processor time of the page's main thread, which other programs do not change."""
    metrics = (await session.send("Performance.getMetrics"))["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


async def measure() -> dict[str, dict[str, float]]:
    """Return the figures of each page."""
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with launch_browser() as browser, serve_console(browser, Path(folder)) as console:
            await add_run(console, "calls", create_call_events(), "chat")
            await add_run(console, "table", create_table_events(), "data")
            timeline = "section[tabindex='0']:has(.timeline)"
            page, figures["run with 1,000 events"] = await measure_page(
                console, "/runs/calls", f"{timeline} >> text=Model turn 1", timeline
            )
            await page.context.close()
            page, figures["chat with 1,000 events"] = await measure_page(
                console, "/chat/long", "[role=log] >> text=All pages are read.", "[role=log]"
            )
            await page.context.close()
            page, figures["table of 100,000 rows"] = await measure_page(
                console, "/data?agent=analyst&run=table", "[role=table] >> text=customer", "[role=table]"
            )
            start = time.perf_counter()
            await page.get_by_role("button", name="name").click()
            await page.get_by_role("columnheader", name="↑").wait_for()
            figures["table of 100,000 rows"]["sort_seconds"] = time.perf_counter() - start
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = asyncio.run(measure())
    if options.json:
        print(json.dumps(figures))
        return
    for name, values in figures.items():
        print(name)
        for figure, value in values.items():
            print(f"  {figure:24} {value:10.2f}")


if __name__ == "__main__":
    main()

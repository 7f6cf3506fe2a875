"""Measures the tool library with 10,000 tools, and the tokens saved by tool selection.

    python benchmarks/library.py            both tables; --tools N for another number of tools

Times are the CPU time of this process; searches are the median of 500. Memory is the increase of the process. Tokens
are estimated as a quarter of the bytes of the names, descriptions and schemas.
"""

import argparse
import asyncio
import gc
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from opposable.agent.tool_selection import ToolSelection
from opposable.domain.messages import user_message
from opposable.domain.specs import Capability, Example, HttpToolSpec
from opposable.domain.tools import ToolDefinition
from opposable.models.base import ModelOptions
from opposable.models.openai_compatible import OpenAICompatibleModel
from opposable.tools.library import ToolLibrary
from opposable.tools.registry import count_definition_bytes

# The words of tool descriptions, users and models. The first word of each list is that of the tool.
VERBS = {
    "create": ["create", "make", "add", "set up", "open", "新建"],
    "get": ["read", "show", "look up", "get", "tell me about", "查询"],
    "update": ["change", "edit", "correct", "update", "modify", "修改"],
    "delete": ["delete", "remove", "throw away", "get rid of", "删除"],
    "list": ["list", "show all", "give me an overview of", "which are the", "列出"],
    "export": ["export", "download", "save to a file the", "export", "导出"],
    "approve": ["approve", "accept", "sign off", "release", "审批"],
    "share": ["share", "send around", "pass on", "share", "分享"],
    "archive": ["archive", "put away", "file", "archive", "归档"],
    "compare": ["compare", "tell the difference between", "compare", "对比"],
}
NOUNS = {
    "invoice": ["invoice", "bill", "invoice for a customer", "发票"],
    "order": ["order", "purchase", "order of goods", "订单"],
    "parcel": ["parcel", "package", "parcel that was sent", "包裹"],
    "ticket": ["support ticket", "complaint", "ticket", "工单"],
    "contract": ["contract", "agreement", "contract with a supplier", "合同"],
    "employee": ["employee", "colleague", "employee record", "员工"],
    "customer": ["customer", "client", "customer account", "客户"],
    "payment": ["payment", "transfer of money", "payment", "付款"],
    "calendar_event": ["calendar event", "meeting", "appointment", "日程"],
    "photo": ["photo", "picture", "image", "照片"],
    "recipe": ["recipe", "dish", "recipe for cooking", "菜谱"],
    "vehicle": ["vehicle", "car", "vehicle of the fleet", "车辆"],
    "sensor": ["sensor", "thermometer", "sensor reading", "传感器"],
    "backup": ["backup", "copy of the data", "backup", "备份"],
    "translation": ["translation", "translated text", "translation", "译文"],
    "booking": ["hotel booking", "room reservation", "booking", "预订"],
    "course": ["course", "lesson", "training course", "课程"],
    "patient": ["patient", "patient record", "sick person", "病人"],
    "repository": ["code repository", "repo", "git repository", "代码仓库"],
    "warehouse_item": ["warehouse item", "stock item", "article in stock", "库存"],
}


class StubTool:
    """A tool that does nothing."""

    timeout = None

    def __init__(self, tool_id: str, definition: ToolDefinition) -> None:
        self.tool_id = tool_id
        self.definition = definition

    async def run(self, arguments, context) -> str:
        return ""


def make_tool(tool_id: str, verb_key: str, noun_key: str, shop: str = "") -> tuple[HttpToolSpec, StubTool]:
    """Make a tool with three parameters, a Chinese display name and an example."""
    verb, noun = VERBS[verb_key][0], NOUNS[noun_key][0]
    place = f" of shop {shop}" if shop else ""
    text = f"{verb.capitalize()} {'an' if noun[0] in 'aeiou' else 'a'} {noun}{place}. Gives its number, state and date."
    parameters = {
        "type": "object",
        "properties": {
            f"{noun_key}_id": {"type": "string", "description": f"the number of the {noun}"},
            "fields": {"type": "array", "items": {"type": "string"}, "description": "which fields are wanted"},
            "dry_run": {"type": "boolean", "default": False, "description": "only say what would be done"},
        },
        "required": [f"{noun_key}_id"],
    }
    spec = HttpToolSpec(
        tool_id=tool_id,
        display_name=f"{VERBS[verb_key][-1]}{NOUNS[noun_key][-1]}",
        description=text,
        endpoint={"url_template": f"https://example.com/{noun_key}/{{{noun_key}_id}}"},
        capabilities=(Capability(name=verb_key, examples=(Example(arguments={f"{noun_key}_id": "7"}),)),),
        tags=(noun_key,),
        parameters=parameters,
    )
    return spec, StubTool(tool_id, ToolDefinition(tool_id, text, parameters))


def measure_cpu_ms(work: Callable[[], object], times: int = 1) -> float:
    """Return the median CPU milliseconds of `work` over `times` calls."""
    durations = []
    for _ in range(times):
        start = time.process_time()
        work()
        durations.append((time.process_time() - start) * 1e3)
    return statistics.median(durations)


def get_resident_megabytes() -> float:
    """Return the resident memory of this process in megabytes."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


def make_request(verb_key: str, noun_key: str, rng: random.Random, *, chinese: bool = False) -> str:
    """Make a user request for a tool, in the words of the tool or in other words."""
    if chinese:
        return f"请帮我{VERBS[verb_key][-1]}一下这个{NOUNS[noun_key][-1]}"
    verb, noun = rng.choice(VERBS[verb_key][:-1]), rng.choice(NOUNS[noun_key][:-1])
    templates = ["Please {} the {} from last week.", "I need to {} a {}, can you do that?", "{} the {} number 4711"]
    return rng.choice(templates).format(verb, noun)


async def measure_large_library(count: int) -> dict[str, str]:
    """Measure a library of `count` tools."""
    pairs = [(doing, thing) for thing in NOUNS for doing in VERBS]
    before = get_resident_megabytes()
    tools = [
        make_tool(f"{doing}_{thing}_{n}", doing, thing, str(n))
        for n, (doing, thing) in ((n, pairs[n % len(pairs)]) for n in range(count))
    ]
    data = get_resident_megabytes()
    library = ToolLibrary()

    def register() -> None:
        for spec, tool in tools:
            assert library.register(spec, [tool]).has_tools

    rng = random.Random(7)
    needs = [f"{make_request(*rng.choice(pairs), rng)} shop {rng.randrange(count)}" for _ in range(500)]
    requests = iter(needs)
    registering = measure_cpu_ms(register)
    registered = get_resident_megabytes()
    indexing = measure_cpu_ms(lambda: library.search("anything"))
    model = OpenAICompatibleModel("m", "http://127.0.0.1:9/v1")
    messages, options = (user_message(needs[0]),), ModelOptions()

    def body() -> bytes:
        return model._build_body(messages, library.definitions, options)  # noqa: SLF001 - measures the request

    def fitting() -> bytes:
        fit = ToolSelection(library, messages, options).definitions
        return model._build_body(messages, fit, options)  # noqa: SLF001 - as above

    def listing() -> None:
        assert len(library.specs) == len(library.names) == count

    def one_more() -> None:
        spec, tool = make_tool("one_more", "create", "order")
        assert library.register(spec, [tool]).has_tools
        assert library.unregister("one_more")

    first, again = measure_cpu_ms(body), measure_cpu_ms(body, 5)
    figures = {
        "register": f"{registering:,.0f} ms ({registering * 1e3 / count:,.0f} µs a tool)",
        "index, at the first search": f"{indexing:,.0f} ms ({indexing * 1e3 / count:,.0f} µs a tool)",
        "register one more and remove it": f"{measure_cpu_ms(one_more, 20):.2f} ms",
        "list all": f"{measure_cpu_ms(listing, 5):,.2f} ms",
        "describe one in full": f"{measure_cpu_ms(lambda: library.describe(tools[count // 2][0].tool_id, 'full'), 100):.3f} ms",
        "describe all briefly": f"{measure_cpu_ms(lambda: library.describe(), 3):,.0f} ms",
        "search, p50": f"{measure_cpu_ms(lambda: library.search(next(requests)), 500):.2f} ms",
        "model request with all tools, first": f"{first:,.1f} ms, {len(body()) / 1e6:.1f} MB",
        "model request with all tools, later": f"{again:.2f} ms",
        "model request with selected tools": f"{measure_cpu_ms(fitting, 50):.2f} ms, {len(fitting()) / 1e3:.1f} kB",
        "call by name": f"{await measure_call_us(library):.1f} µs",
        "memory": f"{data - before:.0f} MB of specs and schemas, {registered - data:.0f} MB registered, "
        f"{get_resident_megabytes() - registered:.0f} MB of index and requests",
    }
    await model.aclose()
    return figures


async def measure_call_us(library: ToolLibrary) -> float:
    """Return the CPU microseconds of one call of a tool that does nothing."""
    name = library.names[len(library.names) // 2]
    start = time.process_time()
    for _ in range(2000):
        await library.call(name, {})
    return (time.process_time() - start) / 2000 * 1e6


def measure_selection() -> dict[str, str]:
    """Measure the selection among 200 tools for 100 requests, 80 in English and 20 in Chinese."""
    library = ToolLibrary()
    pairs = [(doing, thing) for thing in NOUNS for doing in VERBS]
    for doing, thing in pairs:
        spec, tool = make_tool(f"{doing}_{thing}", doing, thing)
        library.register(spec, [tool])
    rng = random.Random(11)
    options = ModelOptions()
    shown_count = found_count = 0
    tokens = []
    for n, (doing, thing) in enumerate(rng.sample(pairs, 100)):
        task = user_message(make_request(doing, thing, rng, chinese=n % 5 == 4))
        definitions = ToolSelection(library, (task,), options).definitions
        tokens.append(sum(map(count_definition_bytes, definitions)) / 4)
        right = f"{doing}_{thing}"
        is_shown = right in {definition.name for definition in definitions}
        asked = f"{VERBS[doing][0]} {rng.choice(NOUNS[thing][:-1])}"  # as a model asks, with the plain verb
        shown_count += is_shown
        found_count += is_shown or right in {
            match.name for match in library.search(asked, library.disclosure.max_matches)
        }
    every = sum(map(count_definition_bytes, library.definitions)) / 4
    return {
        "tokens, all tools": f"{every:,.0f}",
        "tokens, selected tools": f"{statistics.mean(tokens):,.0f} ({1 - statistics.mean(tokens) / every:.0%} saved)",
        "right tool selected": f"{shown_count} of 100",
        "right tool selected or found by one search": f"{found_count} of 100",
    }


async def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=10_000)
    options = parser.parse_args()
    for title, figures in (
        (f"{options.tools:,} tools", await measure_large_library(options.tools)),
        ("200 tools, 100 requests", measure_selection()),
    ):
        print(f"\n{title}")
        for name, figure in figures.items():
            print(f"  {name:42} {figure}")


if __name__ == "__main__":
    asyncio.run(main())

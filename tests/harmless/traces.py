"""Expert traces: what a capable model writes through native function calling, which must pass unchanged.

A trace is a task and the model's replies. Each call has the outcome that the tool has in the trace. Nothing else is
expected: every call reaches its tool with exactly its arguments, every reply is one request, every text is the user's.
"""

from dataclasses import dataclass
from typing import Any

from opposable.domain.errors import ToolFailed, ToolRefused, ToolUnavailable


@dataclass(frozen=True)
class Call:
    """One call with its outcome: a value, or an exception that the tool raises."""

    name: str
    arguments: dict[str, Any]
    outcome: Any = "ok"


Turn = str | tuple[Call, ...]
"""A reply: a text that ends the trace, or calls made at once."""


@dataclass(frozen=True)
class Trace:
    """`rule` is the number of the rule in the first law that the trace exercises."""

    name: str
    rule: int
    task: str
    turns: tuple[Turn, ...]
    system: str = ""
    earlier: tuple[tuple[str, str], ...] = ()


TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}


def tool_schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "cancel_order": ("Cancel an order.", tool_schema("order", order=TEXT)),
    "get_order": ("Show an order.", tool_schema("order", order=TEXT)),
    "list_orders": ("List orders, ten a page.", tool_schema(customer=TEXT, page=INTEGER, status=TEXT)),
    "place_order": (
        "Order an item.",
        tool_schema("item", "quantity", item=TEXT, quantity=INTEGER, note={"type": ["string", "null"]}, gift=BOOLEAN),
    ),
    "pay": ("Pay an invoice.", tool_schema("invoice", "amount", invoice=TEXT, amount=NUMBER, currency=TEXT)),
    "checkout": ("Check out the cart.", tool_schema()),
    "add_to_cart": ("Add an item to the cart.", tool_schema("sku", sku=TEXT, quantity=INTEGER)),
    "run_tests": ("Run the tests.", tool_schema(path=TEXT)),
    "edit_file": ("Replace text in a file.", tool_schema("path", "old", "new", path=TEXT, old=TEXT, new=TEXT)),
    "write_file": ("Write a file.", tool_schema("path", "content", path=TEXT, content=TEXT)),
    "read_page": ("Read a web page or a document.", tool_schema("url", url=TEXT)),
    "press_key": ("Press a key of the remote control.", tool_schema("key", key=TEXT)),
    "get_status": ("Return the status of a job.", tool_schema("job", job=TEXT)),
    "start_job": ("Start a job.", tool_schema("name", name=TEXT, options={"type": "object"})),
    "book_room": (
        "Book a meeting room.",
        tool_schema("room", "minutes", room=TEXT, minutes=INTEGER, start=TEXT, attendees={"type": "array", "items": TEXT}),
    ),
    "set_reminder": (
        "Set a reminder.", tool_schema("text", text=TEXT, due={"type": ["string", "null"], "format": "date-time"})
    ),
    "send_mail": ("Send a mail.", tool_schema("to", "body", to=TEXT, subject=TEXT, body=TEXT, cc={"type": "array", "items": TEXT})),
    "search": ("Search documents.", tool_schema("query", query=TEXT, limit=INTEGER, filters={"type": "object"})),
    "convert": ("Convert an amount.", tool_schema("value", value=NUMBER, source=TEXT, target=TEXT)),
    "call_api": ("Call an API with a free body.", {"type": "object", "additionalProperties": True}),
    "validate": ("Validate a document.", tool_schema("document", document=TEXT)),
    "delete_user": ("Delete a user.", tool_schema("id", id=INTEGER)),
    "restart_service": ("Restart a service.", tool_schema("name", name=TEXT)),
    "set_volume": ("Set the volume.", tool_schema("level", level={"type": "integer", "minimum": 0, "maximum": 100})),
    "set_mode": ("Set a mode.", tool_schema("mode", mode={"type": "string", "enum": ["Auto", "manual", "OFF"]})),
    "get_weather": ("Return the weather.", tool_schema("city", city=TEXT, unit={"type": "string", "enum": ["c", "f"]})),
    "run_command": ("Run a shell command.", tool_schema("command", command=TEXT, timeout=INTEGER)),
    "click": ("Click an element.", tool_schema("selector", selector=TEXT)),
    "translate": ("Translate a text.", tool_schema("text", "to", text=TEXT, to=TEXT)),
    "save_record": ("Save a record.", tool_schema("record", record={"type": "object"}, tags={"type": "array", "items": TEXT})),
    "import": ("Import a class.", tool_schema("class", **{"class": TEXT, "from": TEXT})),
    "Get-Item": ("Get an item.", tool_schema("ID", ID=TEXT)),
    "find_flat": (
        "Find a flat.",
        tool_schema(
            "city", city=TEXT, max_rent={"type": "integer", "default": None}, near=TEXT | {"default": None},
            size={"type": "string", "enum": ["S", "M", "L"], "default": "any"},
        ),
    ),
    "chaxun_tianqi": ("查询城市的天气。", tool_schema("城市", 城市=TEXT, 日期=TEXT)),
}  # fmt: skip
"""Name -> description and parameters."""


def one(name: str, outcome: Any = "ok", /, **arguments: Any) -> tuple[Call, ...]:
    return (Call(name, arguments, outcome),)


def trace(rule: int, name: str, task: str, *turns: Turn, **options: Any) -> Trace:
    return Trace(name, rule, task, turns, **options)


def argument_traces() -> list[Trace]:
    """Rule 1: valid arguments are not changed."""
    exact: list[tuple[str, str, str, dict[str, Any]]] = [
        ("free-form input key", "Call the API with input hello.", "call_api", {"input": "hello"}),
        ("type and input keys", "Upload the image.", "call_api", {"type": "image", "input": "a.png"}),
        ("arguments key", "Pass these arguments on.", "call_api", {"arguments": {"a": 1}}),
        ("parameters key as text", "Pass the parameters.", "call_api", {"parameters": '{"a": 1}'}),
        ("name and arguments keys", "Register the call.", "call_api", {"name": "add", "arguments": {"x": 1}}),
        ("null clears a date", "Clear the due date.", "set_reminder", {"text": "tax", "due": None}),
        ("null note", "Order two bolts without a note.", "place_order", {"item": "bolt", "quantity": 2, "note": None}),
        ("number in text", "Show order 0017.", "get_order", {"order": "0017"}),
        ("leading zeros", "Show order 000042.", "get_order", {"order": "000042"}),
        ("number as text stays text", "Show order 5.", "get_order", {"order": "5"}),
        ("true as text stays text", "Search for true.", "search", {"query": "true"}),
        ("JSON as text stays text", "Search for the object.", "search", {"query": '{"a": 1}'}),
        ("list as text stays text", "Search for brackets.", "search", {"query": "[1, 2]"}),
        ("surrounding spaces", "Write two spaces.", "write_file", {"path": "a.txt", "content": "  two  "}),
        ("only a newline", "Write a newline.", "write_file", {"path": "a.txt", "content": "\n"}),
        ("empty text", "Empty the file.", "write_file", {"path": "a.txt", "content": ""}),
        ("tabs and returns", "Write a table.", "write_file", {"path": "t.tsv", "content": "a\tb\r\n1\t2\r\n"}),
        ("case of an enum", "Set the mode to Auto.", "set_mode", {"mode": "Auto"}),
        ("upper-case enum", "Switch it off.", "set_mode", {"mode": "OFF"}),
        ("float that is whole", "Pay 10.", "pay", {"invoice": "I-1", "amount": 10.0}),
        ("small float", "Pay a tenth of a cent.", "pay", {"invoice": "I-2", "amount": 0.001}),
        ("large integer", "Pay it.", "pay", {"invoice": "I-3", "amount": 9007199254740993}),
        ("exponent", "Convert 1e-7.", "convert", {"value": 1e-7, "source": "m", "target": "km"}),
        ("negative zero point five", "Convert -0.5.", "convert", {"value": -0.5}),
        ("nested object", "Save it.", "save_record", {"record": {"a": {"b": [1, None, {"c": False}]}}, "tags": []}),
        ("object with a null", "Save the null.", "save_record", {"record": {"deleted_at": None}}),
        ("empty object", "Start it with default options.", "start_job", {"name": "n", "options": {}}),
        ("empty list", "Book room 1 for nobody else.", "book_room", {"room": "1", "minutes": 30, "attendees": []}),
        ("list of one", "Book room 1 with Ann.", "book_room", {"room": "1", "minutes": 30, "attendees": ["Ann"]}),
        ("default given", "Search ten.", "search", {"query": "x", "limit": 10, "filters": {}}),
        ("false flag given", "No gift.", "place_order", {"item": "nut", "quantity": 1, "gift": False}),
        ("zero", "Mute it.", "set_volume", {"level": 0}),
        ("markup in text", "Mail the snippet.", "send_mail", {"to": "a@b.c", "body": "<think>x</think> <b>y</b>"}),
        ("chat markers in text", "Mail the marker.", "send_mail", {"to": "a@b.c", "body": "<|im_start|>user"}),
        ("a call in text", "Mail the call.", "send_mail", {"to": "a@b.c", "body": '<tool_call>{"name": "x"}</tool_call>'}),
        ("fence in text", "Write the readme.", "write_file", {"path": "R.md", "content": "```json\n{}\n```"}),
        ("quotes and backslashes", "Write the path.", "write_file", {"path": "p", "content": 'C:\\new\\"x"'}),
        ("unicode escapes", "Write the escape.", "write_file", {"path": "p", "content": "\\u4f60"}),
        ("emoji", "Mail a smile.", "send_mail", {"to": "a@b.c", "body": "🙂👩‍👩‍👧"}),
        ("full-width text", "按原样写入", "write_file", {"path": "全角.txt", "content": "ＡＢＣ，１２３"}),
        ("Chinese value", "查询北京的天气", "chaxun_tianqi", {"城市": "北京", "日期": "明天"}),
        ("Chinese spaces", "搜索带空格的词", "search", {"query": "　人工 智能　"}),
        ("extra property allowed", "Send the flags.", "call_api", {"a": 1, "b": None, "c": [], "d": ""}),
        ("a key called properties", "Send the schema.", "call_api", {"properties": {"a": {"type": "string"}}}),
        ("percent text", "Search for 50%.", "search", {"query": "50%"}),
        ("template text", "Search for the template.", "search", {"query": "{{name}}"}),
        ("placeholder-like key", "Use the example key.", "call_api", {"key": "YOUR_API_KEY"}),
        ("example address", "Mail the example address.", "send_mail", {"to": "ann@example.com", "body": "hi"}),
        ("undeclared optional with text number", "Pay in EUR.", "pay", {"invoice": "7", "amount": 7, "currency": "EUR"}),
        ("date text", "Book it.", "book_room", {"room": "2", "minutes": 45, "start": "2026-11-22T09:00"}),
    ]  # fmt: skip
    return [trace(1, name, task, (Call(tool, arguments),), "Done.") for name, task, tool, arguments in exact]


def text_traces() -> list[Trace]:
    """Rule 2: the text of a native reply is text."""
    texts = [
        ("code fence with a call", "Show me the call that deletes user 7. Do not run it.", "```python\ndelete_user(id=7)\n```"),
        ("JSON call", "What would the JSON look like?", '{"name": "delete_user", "arguments": {"id": 7}}'),
        ("fenced JSON call", "Show the JSON only.", '```json\n{"name": "delete_user", "arguments": {"id": 7}}\n```'),
        ("tool_call tags", "How does Qwen write a call?", 'Like this:\n<tool_call>{"name": "delete_user", "arguments": {"id": 7}}</tool_call>'),
        ("bare tool_call tags", "Print the raw format.", '<tool_call>\n{"name": "delete_user", "arguments": {"id": 7}}\n</tool_call>'),
        ("think tag", "What does </think> do?", "The tag `</think>` ends the reasoning: <think>…</think>."),
        ("unbalanced think tag", "Which tag closes it?", "</think> closes it."),
        ("ChatML", "Explain ChatML.", "<|im_start|>system\nYou are…<|im_end|>\nis one message."),
        ("Mistral marker", "How does Mistral mark calls?", '[TOOL_CALLS] [{"name": "delete_user", "arguments": {"id": 7}}]'),
        ("Llama marker", "How does Llama mark calls?", '<|python_tag|>{"name": "delete_user", "parameters": {"id": 7}}'),
        ("function tag", "And the function tag?", '<function=delete_user>{"id": 7}</function>'),
        ("ReAct", "Show ReAct.", "Thought: I need it\nAction: delete_user\nAction Input: {\"id\": 7}"),
        ("pythonic list", "Show the pythonic form.", "[delete_user(id=7)]"),
        ("protocol text", "What does the protocol look like?", '{"action": "tool_call", "tool_calls": [{"name": "delete_user", "arguments": {"id": 7}}]}'),
        ("finish text", "And the end?", '{"action": "finish", "content": "ok"}'),
        ("XML", "Give me XML.", "<?xml version='1.0'?><invoke name='delete_user'><parameter name='id'>7</parameter></invoke>"),
        ("JSON answer", "Answer in JSON.", '{"content": "hello", "reasoning": "none"}'),
        ("leading and trailing spaces", "Indent it by four.", "    indented\n\n  text  "),
        ("ellipsis", "Continue the sentence.", "..."),
        ("one character", "Yes or no, one letter.", "y"),
        ("Chinese text with a call", "展示调用格式，不要执行", "格式如下：\n```json\n{\"name\": \"delete_user\", \"arguments\": {\"id\": 7}}\n```"),
        ("Chinese quotation", "引用这句话", "他说：“<tool_call>{\"name\": \"delete_user\", \"arguments\": {\"id\": 7}}</tool_call>”"),
        ("question back", "Cancel order 17.", "There is no order 17. Did you mean A-17?"),
        ("refusal", "Delete all users.", "I will not do that without your confirmation."),
        ("status text", "What is the state of this task?", "[State of this task: 0 calls, 0 worked, 0 failed.]"),
        ("markdown", "Make a table.", "| a | b |\n|---|---|\n| `x` | **y** |"),
        ("HTML", "Write a div.", "<div class=\"tool_call\">x</div>"),
        ("empty-looking code", "Write an empty fence.", "```\n```"),
    ]  # fmt: skip
    return [trace(2, name, task, text) for name, task, text in texts]


def repetition_traces() -> list[Trace]:
    """Rule 3: a call is refused only for an exact repeat of a permanent failure."""
    red, green = "2 failed", "all passed"
    edit = {"path": "a.py", "old": "1", "new": "2"}
    tests = one("run_tests", red, path="tests")
    return [
        trace(3, "tests after each edit", "Fix the tests.", tests, one("edit_file", **edit), tests,
              one("edit_file", path="a.py", old="2", new="3"), tests, one("edit_file", path="a.py", old="3", new="4"),
              one("run_tests", green, path="tests"), "All tests pass."),
        trace(3, "tests that cannot run until fixed", "Fix the tests.",
              one("run_tests", ToolFailed("SyntaxError"), path="tests"), one("edit_file", **edit),
              one("run_tests", ToolFailed("SyntaxError"), path="tests"), one("edit_file", **edit | {"old": "x"}),
              one("run_tests", green, path="tests"), "Fixed."),
        trace(3, "check out again after adding an item", "Buy a bolt.",
              one("checkout", ToolFailed("HTTP 422: the cart is empty")), one("add_to_cart", sku="bolt"),
              one("checkout", "order 9"), "Ordered: 9."),
        trace(3, "volume up ten times", "Ten louder.", *[one("press_key", key="volume_up")] * 9, "Done."),
        trace(3, "nine presses in one reply", "Ten louder.", one("press_key", key="volume_up") * 9, "Done."),
        trace(3, "polling a job", "Wait for job 7.", *[one("get_status", "running", job="7")] * 8,
              one("get_status", "finished", job="7"), "It has finished."),
        trace(3, "polling with a changing result", "Wait for job 8.",
              *[one("get_status", f"{n} %", job="8") for n in range(0, 100, 10)], one("get_status", "done", job="8"), "Done."),
        trace(3, "polling two jobs", "Wait for both.",
              *[(*one("get_status", "running", job="1"), *one("get_status", "running", job="2"))] * 8, "Still running."),
        trace(3, "retry after unavailable", "Weather in Oslo?", one("get_weather", ToolUnavailable("no route"), city="Oslo"),
              one("get_weather", ToolUnavailable("no route"), city="Oslo"), one("get_weather", "3 °C", city="Oslo"), "3 °C."),
        trace(3, "retry after failed", "Weather in Oslo?", one("get_weather", ToolFailed("busy"), city="Oslo"),
              one("get_weather", "3 °C", city="Oslo"), "3 °C."),
        trace(3, "same page twice", "Compare the page now and later.", one("read_page", "v1", url="u"), one("read_page", "v1", url="u"), "Unchanged."),
        trace(3, "read, write, read", "Replace it and check.", one("read_page", "old", url="u"), one("write_file", path="u", content="new"), one("read_page", "new", url="u"), "Replaced."),
        trace(3, "refused, then allowed path", "Read the log.", one("read_page", ToolRefused("outside"), url="/etc/passwd"), one("read_page", "ok", url="log"), "ok"),
        trace(3, "another value after not found", "Show the order of Ann.", one("get_order", ToolFailed("no order 17"), order="17"), one("get_order", "bolt", order="A-17"), "It is a bolt."),
        trace(3, "back to the first value", "Which works?", one("get_order", ToolFailed("locked"), order="1"), one("get_order", "b", order="2"), one("get_order", "a", order="1"), "Both."),
        trace(3, "five orders of one item", "Order five bolts, one at a time.", *[one("place_order", "ordered", item="bolt", quantity=1)] * 5, "Five orders."),
        trace(3, "click next many times", "Go to page nine.", *[one("click", "clicked", selector="#next")] * 8, "Page nine."),
        trace(3, "two tools in turn", "Ping-pong.", *[one("press_key", key="left"), one("press_key", key="right")] * 6, "Done."),
        trace(3, "failing twice in one reply", "Both orders.", (*one("get_order", ToolFailed("no"), order="1"), *one("get_order", ToolFailed("no"), order="2")), "Neither exists."),
        trace(3, "按十次", "把音量调高十次", *[one("press_key", key="音量+")] * 9, "已调高。"),
        trace(3, "轮询", "等任务完成", *[one("get_status", "运行中", job="九")] * 7, one("get_status", "完成", job="九"), "完成了。"),
        trace(3, "改了再测", "修好测试", one("run_tests", "失败", path="t"), one("edit_file", **edit), one("run_tests", "失败", path="t"), one("edit_file", **edit | {"new": "9"}), one("run_tests", "通过", path="t"), "通过。"),
    ]  # fmt: skip


def provenance_traces() -> list[Trace]:
    """Rule 4: a value may be computed, converted, remembered or a default."""
    remembered = (("user", "Order A-17 is late."), ("assistant", "I see that A-17 is late."))
    return [
        trace(4, "id of an earlier turn", "Cancel that order.", one("cancel_order", order="A-17"), "Cancelled.", earlier=remembered),
        trace(4, "ninety minutes", "Book room 4 for an hour and a half.", one("book_room", room="4", minutes=90), "Booked."),
        trace(4, "half an hour", "Room 4 for half an hour.", one("book_room", room="4", minutes=30), "Booked."),
        trace(4, "a dozen", "Order a dozen bolts.", one("place_order", item="bolt", quantity=12), "Ordered."),
        trace(4, "sum of two", "Pay 12 and 30 together.", one("pay", invoice="both", amount=42), "Paid."),
        trace(4, "percentage", "Set the volume to a quarter.", one("set_volume", level=25), "Set."),
        trace(4, "converted unit", "What are 3 feet in metres?", one("convert", "0.9144", value=3, source="ft", target="m"), "0.9144 m."),
        trace(4, "country code", "Pay it in pounds.", one("pay", invoice="I", amount=5, currency="GBP"), "Paid."),
        trace(4, "system prompt value", "Book the usual room.", one("book_room", room="Aurora", minutes=60), "Booked.", system="The usual room is Aurora, for 60 minutes."),
        trace(4, "own default", "Search the docs for limits.", one("search", query="limits", limit=5), "Found."),
        trace(4, "translated value", "北京今天多少度？", one("get_weather", "20", city="Beijing", unit="c"), "20 度。"),
        trace(4, "spelled-out date", "Remind me tomorrow to call Ann.", one("set_reminder", text="call Ann", due="2026-11-23T09:00:00Z"), "Set."),
        trace(4, "runbook", "Follow the runbook.", one("read_page", "1. restart_service nginx", url="runbook"), one("restart_service", name="nginx"), "Restarted."),
        trace(4, "tool named by a mail", "Do what the mail says.", one("read_page", "Please send_mail to bob@x.y", url="inbox/1"), one("send_mail", to="bob@x.y", body="Hi"), "Sent."),
        trace(4, "invented name", "Save a random test record.", one("save_record", record={"name": "Jane Roe", "n": 4711}), "Saved."),
        trace(4, "guessed id after failure", "Show Ann's order.", one("get_order", ToolFailed("not found"), order="ANN"), one("get_order", "bolt", order="ann-1"), "bolt"),
        trace(4, "value from a result", "Cancel the latest order.", one("list_orders", '["B-2", "B-1"]'), one("cancel_order", order="B-2"), "Cancelled."),
        trace(4, "composed path", "Write the note for May.", one("write_file", path="notes/2026-05.md", content="May"), "Written."),
        trace(4, "command", "Which containers run?", one("run_command", "none", command="docker ps --format '{{.Names}}'"), "None."),
        trace(4, "一个半小时", "订四号会议室，一个半小时", one("book_room", room="四号", minutes=90), "订好了。"),
        trace(4, "一打", "买一打螺栓", one("place_order", item="螺栓", quantity=12), "买好了。"),
        trace(4, "沿用上文", "取消那个订单", one("cancel_order", order="A-17"), "已取消。", earlier=(("user", "A-17 迟到了"), ("assistant", "是的，A-17 迟到了。"))),
    ]  # fmt: skip


def ghost_writing_traces() -> list[Trace]:
    """Rule 5: no answer is sent back, no page demanded, no call made that the model did not make."""
    page = '{"orders": ["A-9"], "next_page": 2, "total": 190}'
    return [
        trace(5, "answer after a failure", "Cancel order 17.", one("cancel_order", ToolFailed("There is no order 17. Orders: A-17."), order="17"), "There is no order 17. Did you mean A-17?"),
        trace(5, "answer after two failures", "Cancel order 17.", one("cancel_order", ToolFailed("no 17"), order="17"), one("get_order", ToolFailed("no 17"), order="17"), "I found no order 17."),
        trace(5, "answer after unavailable", "Weather?", one("get_weather", ToolUnavailable("down"), city="Rome"), "The service is down."),
        trace(5, "answer from page 1", "What is my latest order?", one("list_orders", page), "A-9."),
        trace(5, "answer from a list with more", "Name one customer.", one("search", '{"items": ["Ann"], "has_more": true, "cursor": "x"}', query="customers"), "Ann."),
        trace(5, "payment outcome unknown", "Pay I-9.", one("pay", TimeoutError("no answer in 30 s"), invoice="I-9", amount=9), "I do not know whether I-9 was paid. Please check before trying again."),
        trace(5, "partial work", "Cancel A-1 and A-2.", one("cancel_order", order="A-1"), "A-1 is cancelled. Shall I cancel A-2 as well?"),
        trace(5, "asks for a value", "Book a room.", "Which room, and for how long?"),
        trace(5, "no tool needed", "What is 2 + 2?", "4"),
        trace(5, "plan first", "Plan it, do not run it.", "1. cancel_order(order=\"A-17\")\n2. place_order(item=\"nut\", quantity=1)"),
        trace(5, "announces and stops", "Tell me what you would do.", "I will call delete_user with id 7 once you confirm."),
        trace(5, "declines", "Delete user 7.", "I need your confirmation first."),
        trace(5, "pending result", "Start the job.", one("start_job", "queued", name="n"), "The job is queued."),
        trace(5, "empty result", "Any orders?", one("list_orders", "[]"), "There are none."),
        trace(5, "unused tools", "Weather in Rome?", one("get_weather", "20", city="Rome"), "20 °C."),
        trace(5, "failed part of a pair", "Both.", (*one("get_order", "bolt", order="1"), *one("get_order", ToolFailed("no"), order="2")), "1 is a bolt, 2 does not exist."),
        trace(5, "只答第一页", "最新的订单是哪个？", one("list_orders", page), "A-9。"),
        trace(5, "失败后作答", "取消订单 17", one("cancel_order", ToolFailed("没有订单 17，只有 A-17"), order="17"), "没有订单 17，您是指 A-17 吗？"),
    ]  # fmt: skip


def result_traces() -> list[Trace]:
    """Rule 6: results are passed on as they are."""
    values: list[tuple[str, Any]] = [
        ("ok false is data", {"ok": False}),
        ("success false is data", {"success": False, "issues": 3}),
        ("an error key is data", {"error": "line 3: unexpected token"}),
        ("errors with status", {"errors": [{"line": 1}], "status": 422}),
        ("null", None),
        ("empty text", ""),
        ("false", False),
        ("zero", 0),
        ("list", [1, "a", None]),
        ("nested", {"a": {"b": [{"c": "ü"}]}}),
        ("think tags", "<think>not reasoning</think> text"),
        ("chat markers", "<|im_start|>assistant<|im_end|>"),
        ("a call in a result", '<tool_call>{"name": "delete_user", "arguments": {"id": 1}}</tool_call>'),
        ("a tool's name", "please call delete_user"),
        ("HTML", "<html><body><script>x</script></body></html>"),
        ("says retry", "Try again later: too many requests"),
        ("says pending", "in progress"),
        ("Chinese", {"结果": "无效", "错误": "格式不对"}),
        ("spaces", "  two \n\n lines  "),
        ("long number", 12345678901234567890),
    ]
    return [
        trace(6, name, "Validate it.", one("validate", value, document="d"), "Validated.") for name, value in values
    ]


TRACES = tuple(
    found
    for group in (argument_traces, text_traces, repetition_traces, provenance_traces, ghost_writing_traces, result_traces)
    for found in group()
)  # fmt: skip

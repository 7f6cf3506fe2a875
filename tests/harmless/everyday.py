"""Everyday work of a capable model: waiting, trying again, reading back, asking, paging, in English and Chinese."""

from typing import Any

from tests.harmless.traces import TRACES, Call, Trace, one, trace

from opposable.domain.errors import ToolFailed, ToolUnavailable

CONFLICT = ToolFailed("HTTP 409: the record was changed meanwhile, version 7")
INVALID = ToolFailed('HTTP 422: {"detail": "options.size must be one of S, M, L"}')
LIMITED = ToolUnavailable("HTTP 429: Too Many Requests, Retry-After: 2")
BUSY = ToolUnavailable("HTTP 503: Service Unavailable")
LOCKED = ToolFailed("423: locked by another user")
NOT_FOUND = ToolFailed("HTTP 404: not found")


def wait(seconds: float) -> tuple[Call, ...]:
    return one("run_command", "", command=f"sleep {seconds}")


def waiting_traces() -> list[Trace]:
    """Rule 3: polling, retries and repeated calls."""
    status = one("get_status", "running", job="7")
    hello = one("call_api", {"message": "hello"}, path="/hello")
    return [
        trace(3, "poll with backoff", "Wait for job 7.", status, wait(1), status, wait(2), status, wait(4), status, wait(8),
              one("get_status", "finished", job="7"), "Finished."),
        trace(3, "retry a conflict after reading", "Rename record 3.", one("save_record", CONFLICT, record={"id": 3, "v": 6}),
              one("search", '{"v": 7}', query="record 3"), one("save_record", record={"id": 3, "v": 7}), "Renamed."),
        trace(3, "same save after a conflict", "Save record 3.", one("save_record", CONFLICT, record={"id": 3}),
              one("save_record", record={"id": 3}), "Saved."),
        trace(3, "corrected after 422", "Start a small job.", one("start_job", INVALID, name="a", options={"size": "small"}),
              one("start_job", "started", name="a", options={"size": "S"}), "Started."),
        trace(3, "429, wait, again", "What is snø?", one("translate", LIMITED, text="snø", to="en"), wait(2),
              one("translate", LIMITED, text="snø", to="en"), wait(4), one("translate", LIMITED, text="snø", to="en"), wait(8),
              one("translate", LIMITED, text="snø", to="en"), wait(16), one("translate", "snow", text="snø", to="en"), "snow."),
        trace(3, "503 three times", "Convert 3.", *[one("convert", BUSY, value=3)] * 3,
              one("convert", "0.9", value=3), "0.9."),
        trace(3, "read after write", "Set the port.", one("read_page", "port: 1", url="conf"), one("write_file", path="conf", content="port: 2"),
              one("read_page", "port: 2", url="conf"), one("read_page", "port: 2", url="conf"), "The port is 2."),
        trace(3, "nine reads of one value", "Is it stable?", *[one("read_page", "1.0", url="version")] * 9, "It is stable."),
        trace(3, "the same text from two tools", "Compare.", hello, one("read_page", '{"message": "hello"}', url="/hello"), hello, "Equal."),
        trace(3, "parallel identical reads", "Read it three times at once.", one("read_page", "v", url="u") * 3, "Three times v."),
        trace(3, "parallel identical orders", "Two separate orders of one bolt.", one("place_order", "ok", item="bolt", quantity=1) * 2, "Two orders."),
        trace(3, "parallel edits of one file", "Apply both edits.",
              (*one("edit_file", path="a", old="1", new="2"), *one("edit_file", path="a", old="3", new="4")), "Applied."),
        trace(3, "edit, undo, edit", "Try it out.", one("edit_file", path="a", old="1", new="2"), one("edit_file", path="a", old="2", new="1"),
              one("edit_file", path="a", old="1", new="2"), "Tried."),
        trace(3, "an edit fails, read, same edit", "Replace 1 by 2.", one("edit_file", ToolFailed("old text not found"), path="a", old="1", new="2"),
              one("write_file", path="a", content="1"), one("edit_file", path="a", old="1", new="2"), "Replaced."),
        trace(3, "the same file written again", "Save twice.", *[one("write_file", path="a", content="x")] * 3, "Saved."),
        trace(3, "all pages", "Count all orders.", *[one("list_orders", {"orders": [n], "next": n + 1}, page=n) for n in range(1, 12)],
              one("list_orders", {"orders": []}, page=12), "Eleven."),
        trace(3, "back to page 1", "Read pages 1 and 2, then 1 again.", one("list_orders", "[1]", page=1), one("list_orders", "[2]", page=2),
              one("list_orders", "[1]", page=1), "Unchanged."),
        trace(3, "empty pages", "Find the first order.", *[one("list_orders", "[]", page=n) for n in range(1, 7)], "There is none."),
        trace(3, "no name fits", "Find Ann's order.", *[one("search", "[]", query=q) for q in ("Ann", "ann", "Anna", "Anne", "A.")], "I found none."),
        trace(3, "locked, then free", "Open the record.", *[one("get_order", LOCKED, order="1")] * 3, one("get_order", "bolt", order="1"), "It is a bolt."),
        trace(3, "not found until created", "Make the page.", one("read_page", NOT_FOUND, url="p"), one("write_file", path="p", content="x"),
              one("read_page", "x", url="p"), "Made."),
        trace(3, "deleted and gone", "Delete user 7.", one("delete_user", id=7), one("delete_user", NOT_FOUND, id=7), "Deleted."),
        trace(3, "alternating failures", "Which mirror works?", *[one("click", BUSY, selector=u) for u in ("a", "b", "a", "b")],
              one("click", "ok", selector="a"), "a"),
        trace(3, "a test that flickers", "Is the test stable?", *[one("run_tests", text, path="t") for text in ("ok", "1 failed", "ok", "1 failed", "ok")], "No."),
        trace(3, "builds that fail alike", "Build it.", one("run_command", ToolFailed("exit 1"), command="make"), one("edit_file", path="M", old="a", new="b"),
              one("run_command", ToolFailed("exit 1"), command="make"), one("edit_file", path="M", old="c", new="d"),
              one("run_command", ToolFailed("exit 1"), command="make"), one("edit_file", path="M", old="e", new="f"),
              one("run_command", ToolFailed("exit 1"), command="make"), one("edit_file", path="M", old="g", new="h"),
              one("run_command", ToolFailed("exit 1"), command="make"), one("run_command", "built", command="make -B"), "Built."),
        trace(3, "a payment times out and is checked", "Pay I-9.", one("pay", TimeoutError("no answer in 30 s"), invoice="I-9", amount=9),
              one("get_status", "not paid", job="I-9"), one("pay", "paid", invoice="I-9", amount=9), "Paid."),
        trace(3, "a slow page", "Read it.", one("read_page", TimeoutError("30 s"), url="slow"), one("read_page", TimeoutError("30 s"), url="slow"),
              one("read_page", "text", url="slow"), "text"),
        trace(3, "login, then again", "Show my order.", one("get_order", ToolFailed("HTTP 401: token expired"), order="1"),
              one("call_api", {"token": "t2"}, path="/refresh"), one("get_order", "bolt", order="1"), "A bolt."),
        trace(3, "退避轮询", "等任务 7 完成", status, wait(1), status, wait(2), status, wait(4), one("get_status", "完成", job="7"), "完成了。"),
        trace(3, "冲突后重试", "保存记录", one("save_record", CONFLICT, record={"编号": 3}), one("save_record", record={"编号": 3}), "已保存。"),
        trace(3, "限流后重试", "奥斯陆天气", one("chaxun_tianqi", LIMITED, 城市="奥斯陆"), wait(2), one("chaxun_tianqi", "3 °C", 城市="奥斯陆"), "3 °C。"),
        trace(3, "逐页读取", "数一数订单", *[one("list_orders", {"订单": [n]}, page=n) for n in range(1, 9)], "八个。"),
    ]  # fmt: skip


def argument_traces() -> list[Trace]:
    """Rule 1: valid arguments of unusual form."""
    forms: list[tuple[str, str, dict[str, Any]]] = [
        ("no arguments", "checkout", {}),
        ("reserved words", "call_api", {"class": "a", "from": 1, "import": True, "lambda": None, "def": []}),
        ("names of Python attributes", "call_api", {"self": 1, "__class__": "x", "kwargs": {"a": 1}, "items": []}),
        ("names of JSON Schema", "call_api", {"$ref": "#/x", "type": "object", "required": ["a"], "enum": [1]}),
        ("dotted and spaced names", "call_api", {"a.b": 1, "c d": 2, "": 3, "é": 4}),
        ("reserved tool name", "import", {"class": "A", "from": "b"}),
        ("upper-case tool name with a dash", "Get-Item", {"ID": "x"}),
        ("unknown extra field", "get_weather", {"city": "Oslo", "lang": "no"}),
        ("extra null", "get_weather", {"city": "Oslo", "lang": None}),
        ("long text", "write_file", {"path": "a", "content": "line of text\n" * 5000}),
        ("long Chinese text", "write_file", {"path": "a", "content": "很长的一段文字。" * 5000}),
        ("beyond 64 bits", "pay", {"invoice": "I", "amount": 123456789012345678901234567890}),
        ("64-bit id", "delete_user", {"id": 9223372036854775807}),
        ("negative zero", "convert", {"value": -0.0}),
        ("many digits", "convert", {"value": 0.1234567890123456}),
        ("huge float", "convert", {"value": 1.7976931348623157e308}),
        ("integer for a number", "convert", {"value": 3}),
        ("JSON text in a free object", "start_job", {"name": "n", "options": {"body": '{"a": "{\\"b\\": 1}"}'}}),
        ("SQL", "search", {"query": "SELECT * FROM t WHERE a = 'O''Neil' -- note"}),
        ("a regular expression", "search", {"query": r"^\s*(?P<n>\d{2,})\b.*$"}),
        ("control characters", "write_file", {"path": "a", "content": "a\u0000b\u001b[0m\u2028c"}),
        ("right-to-left and combining", "search", {"query": "שלום e\u0301 ﷽ \u200b\ufeff"}),
        ("a surrogate pair", "search", {"query": "\U0001f468\u200d\U0001f469\u200d\U0001f467 𝒳"}),
        ("a data URL", "write_file", {"path": "a.svg", "content": "data:image/png;base64,iVBORw0KGgo="}),
        ("deep nesting", "save_record", {"record": {"a": {"b": {"c": {"d": {"e": {"f": [[[[1]]]]}}}}}}}),
        ("a list of mixed types", "call_api", {"values": [1, "1", 1.0, True, None, {}, []]}),
        ("a null default", "find_flat", {"city": "Oslo", "max_rent": None, "near": None}),
        ("a default outside of the choices", "find_flat", {"city": "Oslo", "size": "any"}),
        ("words for nothing", "search", {"query": "null", "filters": {"a": "None", "b": "undefined", "c": "N/A"}}),
        ("a secret-like value", "call_api", {"password": "hunter2", "api_key": "sk-test-123"}),
        ("保留字", "call_api", {"类": "甲", "从": None, "函数": []}),
        ("全角数字与标点", "search", {"query": "１２３，“引号”（括号）：；"}),
    ]  # fmt: skip
    return [trace(1, name, "Do it.", (Call(tool, arguments),), "Done.") for name, tool, arguments in forms]


def answer_traces() -> list[Trace]:
    """Rule 5: an answer, or a question, is the model's to give."""
    earlier = (("user", "Delete user 7."), ("assistant", "Shall I really delete user 7?"))
    return [
        trace(5, "asks before it acts", "Clean up the users.", one("search", "[7, 8]", query="users"), "Users 7 and 8 are unused. Delete them?"),
        trace(5, "acts after a yes", "Yes.", one("delete_user", id=7), "Deleted.", earlier=earlier),
        trace(5, "does not act after a no", "No.", "Then I leave user 7 as it is.", earlier=earlier),
        trace(5, "asks which of two", "Cancel my order.", one("list_orders", '["A-1", "A-2"]'), "Which one: A-1 or A-2?"),
        trace(5, "stops half-way", "Restart all services.", one("restart_service", name="web"), "web is restarted. Shall I go on with db, which is in use?"),
        trace(5, "reports the failure of a write", "Save it.", one("save_record", INVALID, record={}), "The record was rejected: options.size must be S, M or L."),
        trace(5, "promises more", "How long will it take?", one("get_status", "70 %", job="7"), "I will check again in a minute. It is at 70 %."),
        trace(5, "cannot do it", "Print the page.", "I have no tool for printing."),
        trace(5, "answers with a list of steps", "How do I do it?", "1. Call `checkout`.\n2. Call `pay(invoice=…, amount=…)`."),
        trace(5, "a very long answer", "Write it all down.", "One more line.\n" * 3000),
        trace(5, "确认后执行", "是的", one("delete_user", id=7), "已删除。", earlier=(("user", "删除用户 7"), ("assistant", "确定要删除用户 7 吗？"))),
        trace(5, "先问清楚", "取消我的订单", one("list_orders", '["A-1", "A-2"]'), "您要取消 A-1 还是 A-2？"),
        trace(5, "没有这样的工具", "打印这一页", "我没有打印工具。"),
    ]  # fmt: skip


EVERYDAY_TRACES = (*waiting_traces(), *argument_traces(), *answer_traces())

ALL_TRACES = (*TRACES, *EVERYDAY_TRACES)

"""Messages for the model about failed calls, in English and Chinese.

Each says what is wrong, what was given and what would be right.
"""

from collections.abc import Sequence

from opposable.domain.errors import FieldProblem
from opposable.domain.language import Language
from opposable.domain.localized_text import localize
from opposable.domain.text_normalization import shorten_text
from opposable.tools.raised_errors import describe_error


def invalid_arguments_message(name: str, problems: Sequence[FieldProblem], language: Language) -> str:
    """Say what is wrong with the arguments, one line per field."""
    if language == "zh":
        lines = [
            f"- {p.field or '参数'}: {localize(p.problem, 'zh')}（{_describe_given_value(p, '当前值: ', '缺失')}）"
            for p in problems
        ]
        return "\n".join([f"工具 {name} 的调用参数格式错误：", *lines, "", "请修正参数后重试。"])
    lines = [
        f"- {p.field or 'arguments'}: {p.problem} ({_describe_given_value(p, 'given: ', 'missing')})" for p in problems
    ]
    return "\n".join([f"The arguments of {name} do not fit:", *lines, "", "Correct the arguments and try again."])


def unknown_tool_message(name: str, nearest_names: Sequence[str], all_names: Sequence[str], language: Language) -> str:
    """Say that a tool does not exist and list at most 20 that do, the most similar first."""
    names = list(dict.fromkeys([*nearest_names, *all_names]))[:20]
    if language == "zh":
        return f"没有名为 {name!r} 的工具。可用的工具：{'、'.join(names) or '无'}。"
    return f"There is no tool named {name!r}. The tools are: {', '.join(names) or 'none'}."


def missing_action_message(tool_id: str, actions: Sequence[str], language: Language) -> str:
    """Say that a tool has several actions, and that the call must name one."""
    if language == "zh":
        return f"工具 {tool_id} 有多个功能，请指定其中一个：{'、'.join(actions)}。"
    return f"{tool_id} has several actions. Name one of them as the action: {', '.join(actions)}."


def unreadable_arguments_message(name: str, problem: str, raw_arguments: str, language: Language) -> str:
    """Say that the arguments could not be parsed; `problem` says why, without a final period."""
    preview = shorten_text(raw_arguments, 300)
    if language == "zh":
        return f"工具 {name} 的调用参数无法解析：{localize(problem, 'zh')}。\n收到的内容：{preview}\n请用一个 JSON 对象给出参数后重试。"
    return f"The arguments of {name} cannot be read: {problem}.\nGiven: {preview}\nGive them as one JSON object and try again."


def truncated_call_message(name: str, language: Language) -> str:
    """Say that a call was not run because the reply ended before it did."""
    if language == "zh":
        return f"对 {name} 的调用被截断，没有执行。请重试；参数较长时请缩短。"
    return f"The call of {name} was cut off and was not run. Try again, with shorter arguments if they are long."


def timeout_message(name: str, seconds: float, language: Language) -> str:
    """Say that a tool was stopped after its time-out."""
    if language == "zh":
        return f"工具 {name} 在 {seconds:g} 秒内没有完成，已停止。"
    return f"{name} did not finish within {seconds:g} seconds and was stopped."


def unknown_outcome_message(failure: str, language: Language) -> str:
    """Say after a failure that the call may have taken effect."""
    if language == "zh":
        return f"{failure.rstrip('。.')}。结果未知：该操作可能已经生效，再次调用之前请先确认。"
    return (
        f"{failure.rstrip('.')}. Its outcome is unknown: it may have taken effect. Check that before you call it again."
    )


def tool_raised_message(name: str, error: BaseException, language: Language) -> str:
    """Report the type and the message of an error that a tool raised."""
    description = shorten_text(describe_error(error), 1000)
    return f"工具 {name} 执行失败：{description}" if language == "zh" else f"{name} failed: {description}"


def call_limit_message(language: Language) -> str:
    """Say that a call was not run because the run has used up its calls."""
    if language == "zh":
        return "没有执行：本次任务的工具调用次数已用完。请根据已有结果作答。"
    return "Not run: this task's tool calls are used up. Answer with what you have."


def cancelled_call_message(name: str, language: Language) -> str:
    """Say that a call was cancelled because the run ended."""
    if language == "zh":
        return f"任务已结束，对 {name} 的调用被取消。"
    return f"The task ended before {name} did; the call was cancelled."


def client_left_message(name: str, language: Language) -> str:
    """Say that a call was cancelled because its client disconnected."""
    if language == "zh":
        return f"客户端断开了连接，对 {name} 的调用被取消。"
    return f"The client disconnected before {name} ended; the call was cancelled."


def truncation_note(omitted: int, total: int, language: Language, handle: str = "", offset: int = 0) -> str:
    """Say how much of a long result is omitted, and how to read the rest if it was stored."""
    if language == "zh":
        on = f"；用 read_result（handle={handle!r}, offset={offset}）继续阅读" if handle else ""
        return f"…[此处省略了 {omitted} 个字符，全文共 {total} 个字符{on}]…"
    on = f"; read on with read_result(handle={handle!r}, offset={offset})" if handle else ""
    return f"…[{omitted:,} of {total:,} characters left out here{on}]…"


def out_of_service_message(name: str, seconds: float, alternatives: Sequence[str], language: Language) -> str:
    """Say that a tool is out of service, when to try it again, and which tools may replace it."""
    wait = max(1, round(seconds))
    if language == "zh":
        instead = f"可以改用：{'、'.join(alternatives)}。" if alternatives else ""
        return f"没有执行：工具 {name} 多次没有响应，已暂停使用，{wait} 秒后可以重试。{instead}"
    instead = f" These may do instead: {', '.join(alternatives)}." if alternatives else ""
    unit = "second" if wait == 1 else "seconds"
    return (
        f"Not run: {name} did not answer several times and is out of service; try it again in {wait} {unit}.{instead}"
    )


def rate_limit_message(name: str, calls: int, seconds: float, wait: float, language: Language) -> str:
    """Say that a tool's rate limit is exceeded, and when it may be called again."""
    if language == "zh":
        return f"没有执行：工具 {name} 每 {seconds:g} 秒最多调用 {calls} 次，请在 {wait:.1f} 秒后重试。"
    return f"Not run: {name} may be called {calls} times in {seconds:g} seconds; it can be called again in {wait:.1f} seconds."


def approval_unavailable_message(name: str, language: Language) -> str:
    """Say that a call needs human approval, which cannot be requested."""
    if language == "zh":
        return f"没有执行：工具 {name} 需要人工批准，而这里无法请求批准。"
    return f"Not run: {name} needs a person's approval, and none can be asked here."


def approval_denied_message(name: str, reason: str, language: Language) -> str:
    """Say that a person rejected the call, and why."""
    if language == "zh":
        return f"没有执行：对 {name} 的调用没有获得批准" + (f"：{reason}" if reason else "。")
    return f"Not run: a person did not approve this call of {name}" + (f": {reason}" if reason else ".")


def unknown_result_message(handle: str, language: Language) -> str:
    """Say that the conversation or task has no stored result with this handle."""
    if language == "zh":
        return f"本次对话或任务中没有编号为 {handle!r} 的结果，或者它已不再保留。"
    return f"This conversation or task has no result under the handle {handle!r}, or it is not stored any more."


def result_page_header(start: int, end: int, total: int, language: Language) -> str:
    """Say which characters of a result follow, and how to read on."""
    if language == "zh":
        on = f"，从 offset={end} 继续" if end < total else "，已到结尾"
        return f"[第 {start}–{end} 个字符，全文共 {total} 个字符{on}]"
    on = f"; go on at offset={end}" if end < total else "; this is the end"
    return f"[characters {start:,}–{end:,} of {total:,}{on}]"


def result_matches_header(find: str, count: int, shown: int, language: Language) -> str:
    """Say how often a text occurs in a result; its places follow."""
    if language == "zh":
        return f"{find!r} 出现 {count} 次" + (f"，显示前 {shown} 处：" if count else "。")
    times = "1 time" if count == 1 else f"{count:,} times"
    return f"{find!r} occurs {times}" + (f"; the first {shown}:" if count > shown else ":" if count else ".")


def found_tools_note(count: int, language: Language) -> str:
    """Say whether tools were found that can be called."""
    if language == "zh":
        return f"找到 {count} 个工具，现在可以直接调用：" if count else "没有找到合适的工具，请换一种说法再搜索。"
    return "These tools fit and can be called now:" if count else "No tool fits; search again in other words."


def unlisted_tools_note(names: str, language: Language) -> str:
    """Name the tools that a model does not get in full, for the description of the search tool."""
    return f"没有列出的工具：{names}。" if language == "zh" else f"Tools that are not listed: {names}."


def _describe_given_value(problem: FieldProblem, prefix: str, missing: str) -> str:
    return missing if problem.received is None else f"{prefix}{problem.received}"

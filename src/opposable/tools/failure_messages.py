"""What a model is told of a failed call, in English and Chinese: what is wrong, what was given, what would be right."""

import re
from collections.abc import Sequence

from opposable.domain.errors import FieldProblem

_CHINESE_PROBLEM_PATTERNS = (
    (r"is required", "字段是必需的"),
    (r"there is no such parameter; the parameters are (.*)", r"没有这个参数，可用的参数是 \1"),
    (r"it takes no parameters", "该工具不需要参数"),
    (r"must be a valid integer", "必须是整数"),
    (r"must be a valid number", "必须是数字"),
    (r"must be a valid string", "必须是字符串"),
    (r"must be a valid boolean", "必须是布尔值（true 或 false）"),
    (r"must be a valid list", "必须是数组"),
    (r"must be a valid dictionary.*", "必须是对象"),
    (r"must be (?:greater than or equal to|at least) (\S+)", r"必须大于或等于 \1"),
    (r"must be greater than (\S+)", r"必须大于 \1"),
    (r"must be (?:less than or equal to|at most) (\S+)", r"必须小于或等于 \1"),
    (r"must be less than (\S+)", r"必须小于 \1"),
    (r"must be (?:one of )?(.*)", r"必须是 \1"),
)


def invalid_arguments_message(name: str, problems: Sequence[FieldProblem], language: str) -> str:
    """Each problem on a line of its own: field, what is wrong, what was given."""
    if language == "zh":
        lines = [
            f"- {p.field or '参数'}: {_translate_to_chinese(p.problem)}（{_describe_given_value(p, '当前值: ', '缺失')}）"
            for p in problems
        ]
        return "\n".join([f"工具 {name} 的调用参数格式错误：", *lines, "", "请修正参数后重试。"])
    lines = [
        f"- {p.field or 'arguments'}: {p.problem} ({_describe_given_value(p, 'given: ', 'missing')})" for p in problems
    ]
    return "\n".join([f"The arguments of {name} do not fit:", *lines, "", "Correct the arguments and try again."])


def unknown_tool_message(name: str, nearest_names: Sequence[str], all_names: Sequence[str], language: str) -> str:
    """That there is no such tool, and which there are: the likeliest first, at most 20."""
    names = list(dict.fromkeys([*nearest_names, *all_names]))[:20]
    if language == "zh":
        return f"没有名为 {name!r} 的工具。可用的工具：{'、'.join(names) or '无'}。"
    return f"There is no tool named {name!r}. The tools are: {', '.join(names) or 'none'}."


def unreadable_arguments_message(name: str, problem: str, raw_arguments: str, language: str) -> str:
    """That the arguments could not be read at all."""
    shown = raw_arguments if len(raw_arguments) <= 300 else raw_arguments[:300] + "…"
    if language == "zh":
        return f"工具 {name} 的调用参数无法解析：{problem}\n收到的内容：{shown}\n请用一个 JSON 对象给出参数后重试。"
    return f"The arguments of {name} cannot be read: {problem}\nGiven: {shown}\nGive them as one JSON object and try again."


def truncated_call_message(name: str, language: str) -> str:
    """That a call was cut off by the token limit and was not run."""
    if language == "zh":
        return f"对 {name} 的调用因长度限制被截断，没有执行。请用更短的参数重试。"
    return f"The call of {name} was cut off by the length limit and was not run. Try again with shorter arguments."


def timeout_message(name: str, seconds: float, language: str) -> str:
    """That a tool took too long and was stopped."""
    if language == "zh":
        return f"工具 {name} 在 {seconds:g} 秒内没有完成，已停止。"
    return f"{name} did not finish within {seconds:g} seconds and was stopped."


def tool_raised_message(name: str, error: Exception, language: str) -> str:
    """That a tool raised an error: its kind and its words, no traceback."""
    said = f"{type(error).__name__}: {error}".strip(": ")
    said = said if len(said) <= 1000 else said[:1000] + "…"
    return f"工具 {name} 执行失败：{said}" if language == "zh" else f"{name} failed: {said}"


def call_limit_message(language: str) -> str:
    """That a call was not run because the run's calls are used up."""
    if language == "zh":
        return "没有执行：本次任务的工具调用次数已用完。请根据已有结果作答。"
    return "Not run: this task's tool calls are used up. Answer with what you have."


def cancelled_call_message(name: str, language: str) -> str:
    """That a call was stopped because the run ended."""
    if language == "zh":
        return f"任务已结束，对 {name} 的调用被取消。"
    return f"The task ended before {name} did; the call was cancelled."


def truncation_note(omitted: int, total: int, language: str, handle: str = "", offset: int = 0) -> str:
    """What stands where a long result was cut, and how to read on where the whole was put aside."""
    if language == "zh":
        on = f"；用 read_result（handle={handle!r}, offset={offset}）继续阅读" if handle else ""
        return f"…[此处省略了 {omitted} 个字符，全文共 {total} 个字符{on}]…"
    on = f"; read on with read_result(handle={handle!r}, offset={offset})" if handle else ""
    return f"…[{omitted:,} of {total:,} characters left out here{on}]…"


def out_of_service_message(name: str, seconds: float, alternatives: Sequence[str], language: str) -> str:
    """That a tool did not answer too often, when it is tried again, and what may do instead."""
    wait = max(1, round(seconds))
    if language == "zh":
        instead = f"可以改用：{'、'.join(alternatives)}。" if alternatives else ""
        return f"没有执行：工具 {name} 多次没有响应，已暂停使用，{wait} 秒后可以重试。{instead}"
    instead = f" These may do instead: {', '.join(alternatives)}." if alternatives else ""
    unit = "second" if wait == 1 else "seconds"
    return (
        f"Not run: {name} did not answer several times and is out of service; try it again in {wait} {unit}.{instead}"
    )


def rate_limit_message(name: str, calls: int, seconds: float, wait: float, language: str) -> str:
    """That a tool may not be called so often, and when it may be again."""
    if language == "zh":
        return f"没有执行：工具 {name} 每 {seconds:g} 秒最多调用 {calls} 次，请在 {wait:.1f} 秒后重试。"
    return f"Not run: {name} may be called {calls} times in {seconds:g} seconds; it can be called again in {wait:.1f} seconds."


def approval_unavailable_message(name: str, language: str) -> str:
    """That a person would have to approve, and that none can be asked."""
    if language == "zh":
        return f"没有执行：工具 {name} 需要人工批准，而这里无法请求批准。"
    return f"Not run: {name} needs a person's approval, and none can be asked here."


def approval_denied_message(name: str, reason: str, language: str) -> str:
    """That a person said no, and why."""
    if language == "zh":
        return f"没有执行：对 {name} 的调用没有获得批准" + (f"：{reason}" if reason else "。")
    return f"Not run: a person did not approve this call of {name}" + (f": {reason}" if reason else ".")


def unknown_result_message(handle: str, language: str) -> str:
    """That nothing was put aside under that handle in this task."""
    if language == "zh":
        return f"本次任务中没有编号为 {handle!r} 的结果，或者它已不再保留。"
    return f"This task has no result under the handle {handle!r}, or it is not kept any more."


def result_page_header(start: int, end: int, total: int, language: str) -> str:
    """Which part of a result follows, and how to read on."""
    if language == "zh":
        on = f"，从 offset={end} 继续" if end < total else "，已到结尾"
        return f"[第 {start}–{end} 个字符，全文共 {total} 个字符{on}]"
    on = f"; go on at offset={end}" if end < total else "; this is the end"
    return f"[characters {start:,}–{end:,} of {total:,}{on}]"


def result_matches_header(find: str, count: int, shown: int, language: str) -> str:
    """How often a text stands in a result, and that the places follow."""
    if language == "zh":
        return f"{find!r} 出现 {count} 次" + (f"，显示前 {shown} 处：" if count else "。")
    times = "1 time" if count == 1 else f"{count:,} times"
    return f"{find!r} stands there {times}" + (f"; the first {shown}:" if count > shown else ":" if count else ".")


def found_tools_note(count: int, language: str) -> str:
    """That tools were found and can be called."""
    if language == "zh":
        return f"找到 {count} 个工具，现在可以直接调用：" if count else "没有找到合适的工具，请换一种说法再搜索。"
    return "These tools fit and can be called now:" if count else "No tool fits; search again in other words."


def _describe_given_value(problem: FieldProblem, prefix: str, missing: str) -> str:
    return missing if problem.received is None else f"{prefix}{problem.received}"


def _translate_to_chinese(problem: str) -> str:
    for pattern, chinese in _CHINESE_PROBLEM_PATTERNS:
        if re.fullmatch(pattern, problem):
            return re.sub(pattern, chinese, problem)
    return problem

"""Texts that a run sends to the model, in English and Chinese."""

from collections.abc import Sequence

from opposable.domain.language import Language


def ask_for_own_words(language: Language) -> str:
    """Ask again after the model copied the status note instead of answering."""
    return "请用自己的话告诉用户结果如何。" if language == "zh" else "Tell the user in your own words what came of it."


def ask_to_correct_call(name: str, suggestion: str, language: Language) -> str:
    """Ask for a corrected call after a failed one.

    `suggestion` is a call that may be right, "" if none is known.
    """
    if language == "zh":
        with_it = f"请再次调用：{suggestion}" if suggestion else "请按其结果所说改正后再次调用，或先调用所缺的工具"
        return f"{name} 没有成功，任务还没有完成。{with_it}；如果确实无法完成，请说明原因。"
    with_it = (
        f"Now call {suggestion}"
        if suggestion
        else "Make the call that its result says is right, or the one that is missing before it"
    )
    return f"{name} did not work, so the task is not done. {with_it}; only if that cannot be, say why."


def suggest_correction(suggestion: str, language: Language) -> str:
    """Suggest similar arguments that the failure names."""
    if language == "zh":
        return f"（可能是指：{suggestion}。请改正后再次调用。）"
    return f"(Perhaps {suggestion} is meant. Correct the call and make it again.)"


def suggest_retry(language: Language) -> str:
    """Suggest another attempt after a temporary failure."""
    return "（这可能是暂时的，请再次调用。）" if language == "zh" else "(This may pass. Make the call again.)"


def ask_for_answer_after_blocked_calls(language: Language) -> str:
    """Ask for the answer when the model only repeats blocked calls."""
    if language == "zh":
        return "这些调用都被拒绝了，不能再调用工具。请根据以上结果给出目前最好的答案，并说明这只是部分结果、缺少什么。"
    return (
        "Every one of these calls was refused; no more tools can be called. Give the best answer there is from the "
        "results above, and say that it is partial and what is missing."
    )


def explain_blocked_failure(name: str, times: int, previous_result: str, language: Language) -> str:
    """Explain that a call was blocked because the same call failed, with its result."""
    shown = _truncate(previous_result)
    if language == "zh":
        return (
            f"没有执行：对 {name} 的这一调用在本次任务中已经失败过{_format_times_zh(times)}，此后没有任何变化。当时的结果：\n{shown}\n"
            "请按上述提示修改参数、改用其他工具，或根据已有结果作答。"
        )
    return (
        f"Not run: this very call of {name} has failed in this task{_format_times(times)} and nothing has changed since. It "
        f"was told:\n{shown}\nChange the arguments as it says, use another tool, or answer with what there is."
    )


def explain_blocked_repeat(name: str, times: int, previous_result: str, language: Language) -> str:
    """Explain that a call was blocked because it keeps returning the same result."""
    if language == "zh":
        return f"没有再次执行：对 {name} 的这一调用已经 {times} 次得到同样的结果。请使用该结果继续，或直接作答。结果：\n{previous_result}"
    return (
        f"Not run again: this very call of {name} brought the same result {times} times. Go on with that result, or "
        f"answer. The result:\n{previous_result}"
    )


def note_repeated_failure(name: str, times: int, language: Language) -> str:
    """Note that the same call failed in the same way before."""
    if language == "zh":
        return f"（对 {name} 的同一调用已经 {times} 次以同样的方式失败。请不要原样重复。）"
    return f"(The same call of {name} has now failed {times} times in the same way. Do not make it again as it is.)"


def note_repeated_result(name: str, times: int, language: Language) -> str:
    """Note that the same call returned this result before."""
    if language == "zh":
        return f"（对 {name} 的同一调用已经 {times} 次得到同样的结果，再次调用不会有新内容。请使用该结果继续，或直接作答。）"
    return (
        f"(The same call of {name} has now brought this same result {times} times; once more brings nothing new. Go on "
        "with it, or answer.)"
    )


def suggest_known_correction(failed_arguments: str, worked_arguments: str, language: Language) -> str:
    """Suggest the correction that worked for a similar failure."""
    if language == "zh":
        experience = (
            f"以往把 {failed_arguments} 改为 {worked_arguments} 后成功"
            if failed_arguments
            else f"以往使用 {worked_arguments} 成功"
        )
        return f"（{experience}。请改正后再次调用。）"
    experience = (
        f"Before, {worked_arguments} worked in place of {failed_arguments}"
        if failed_arguments
        else f"Before, {worked_arguments} worked"
    )
    return f"({experience}. Correct the call and make it again.)"


def note_missing_dependencies(name: str, missing: Sequence[str], language: Language) -> str:
    """Note that dependencies of a failed tool are not available."""
    if language == "zh":
        return f"（工具 {name} 依赖的 {'、'.join(missing)} 当前不可用。）"
    return f"({name} depends on {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not there.)"


def explain_failing_tool(name: str, times: int, language: Language) -> str:
    """Return why another tool should be used."""
    return f"工具 {name} 已连续失败 {times} 次。" if language == "zh" else f"{name} failed {times} times running."


def explain_failing_plan(turns: int, language: Language) -> str:
    """Return why another plan is needed."""
    return f"最近 {turns} 步全部失败。" if language == "zh" else f"The last {turns} steps all failed."


def explain_no_progress(turns: int, language: Language) -> str:
    """Return why a run without progress ends."""
    if language == "zh":
        return f"最近 {turns} 步的调用全部被拒绝，没有进展。"
    return f"Every call of the last {turns} steps was refused; nothing moves on."


def ask_to_switch_tool(reason: str, other_names: Sequence[str], language: Language) -> str:
    """Ask for another tool."""
    if language == "zh":
        return f"{reason}请改用其他工具，可能合适的有：{'、'.join(other_names)}。"
    return f"{reason} Use another tool; these may do: {', '.join(other_names)}."


def ask_to_replan(reason: str, language: Language) -> str:
    """Ask for another plan."""
    if language == "zh":
        return f"{reason}请先用一句话说明原因，再换一种做法；如果做不到，请直接说明。"
    return f"{reason} Say in a sentence why, then go about it in another way; if there is none, say so in your answer."


def _truncate(text: str) -> str:
    return text if len(text) <= 1200 else f"{text[:1200]}…"


def _format_times(times: int) -> str:
    return f" {times} times in the same way" if times > 1 else ""


def _format_times_zh(times: int) -> str:
    return f" {times} 次（方式相同）" if times > 1 else ""

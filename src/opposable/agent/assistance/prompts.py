"""Texts that a run sends to the model, in English and Chinese."""

from opposable.domain.localized_text import LocalizedText

PLANNED_CALLS = LocalizedText(
    "Not made yet: {calls}. Make these calls now if they are still right; otherwise answer.",
    "尚未执行：{calls}。如果仍然正确，请现在调用；否则请直接作答。",
)
UNMADE_CALL = LocalizedText(
    "Your reply made no call. If one is needed, make it now in the form described; if not, send your answer again.",
    "上一条回复没有调用工具。如果任务需要调用，请现在按规定的格式调用；如果不需要，请再次给出回答。",
)
CORRECT_CALL = LocalizedText(
    "{name} did not work, so the task is not done. {how}; only if that cannot be, say why.",
    "{name} 没有成功，任务还没有完成。{how}；如果确实无法完成，请说明原因。",
)
CALL_SUGGESTION = LocalizedText("Now call {call}", "请再次调用：{call}")
CALL_AS_RESULT_SAYS = LocalizedText(
    "Make the call that its result says is right, or the one that is missing before it",
    "请按其结果所说改正后再次调用，或先调用所缺的工具",
)

SIMILAR_ARGUMENTS = LocalizedText(
    "(Perhaps {arguments} is meant. Correct the call and make it again.)",
    "（可能是指：{arguments}。请改正后再次调用。）",
)
KNOWN_CORRECTION = LocalizedText(
    "(Before, {worked} worked in place of {failed}. Correct the call and make it again.)",
    "（以往把 {failed} 改为 {worked} 后成功。请改正后再次调用。）",
)
KNOWN_ARGUMENTS = LocalizedText(
    "(Before, {worked} worked. Correct the call and make it again.)", "（以往使用 {worked} 成功。请改正后再次调用。）"
)
RETRY = LocalizedText("(This may pass. Make the call again.)", "（这可能是暂时的，请再次调用。）")

BLOCKED_FAILURE = LocalizedText(
    "Not run: this very call of {name} has failed in this task and nothing has changed since. It was told:\n"
    "{result}\nChange the arguments as it says, use another tool, or answer with what there is.",
    "没有执行：对 {name} 的这一调用在本次任务中已经失败过，此后没有任何变化。当时的结果：\n{result}\n"
    "请按上述提示修改参数、改用其他工具，或根据已有结果作答。",
)
BLOCKED_REPEAT = LocalizedText(
    "Not run again: this very call of {name} brought the same result {times} times. Go on with that result, or "
    "answer. The result:\n{result}",
    "没有再次执行：对 {name} 的这一调用已经 {times} 次得到同样的结果。请使用该结果继续，或直接作答。结果：\n{result}",
)
REPEATED_FAILURE = LocalizedText(
    "(The same call of {name} has now failed {times} times in the same way. Do not make it again as it is.)",
    "（对 {name} 的同一调用已经 {times} 次以同样的方式失败。请不要原样重复。）",
)
REPEATED_RESULT = LocalizedText(
    "(The same call of {name} has now brought this same result {times} times; once more brings nothing new. Go on "
    "with it, or answer.)",
    "（对 {name} 的同一调用已经 {times} 次得到同样的结果，再次调用不会有新内容。请使用该结果继续，或直接作答。）",
)

FAILING_TOOL = LocalizedText("{name} failed {times} times running.", "工具 {name} 已连续失败 {times} 次。")
FAILING_PLAN = LocalizedText("The last {turns} steps all failed.", "最近 {turns} 步全部失败。")
NO_PROGRESS = LocalizedText(
    "Every call of the last {turns} steps was refused; nothing moves on.", "最近 {turns} 步的调用全部被拒绝，没有进展。"
)
SWITCH_TOOL = LocalizedText(
    "{reason} Use another tool; these may do: {names}.", "{reason}请改用其他工具，可能合适的有：{names}。"
)
REPLAN = LocalizedText(
    "{reason} Say in a sentence why, then go about it in another way; if there is none, say so in your answer.",
    "{reason}请先用一句话说明原因，再换一种做法；如果做不到，请直接说明。",
)
PARTIAL_ANSWER = LocalizedText(
    "Every one of these calls was refused; no more tools can be called. Give the best answer there is from the "
    "results above, and say that it is partial and what is missing.",
    "这些调用都被拒绝了，不能再调用工具。请根据以上结果给出目前最好的答案，并说明这只是部分结果、缺少什么。",
)

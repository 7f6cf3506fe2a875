"""What happens to calls once text of other people is in the conversation."""

from collections.abc import Sequence
from dataclasses import replace

from opposable.agent.policy import RunPolicy, Step
from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.localized_text import LocalizedText
from opposable.domain.messages import Message
from opposable.domain.tools import AfterUntrusted
from opposable.tools.library import ToolLibrary

_REFUSED_CALL = LocalizedText(
    "Not run: the conversation contains untrusted text, so {name}, which can change something, may not be called.",
    "没有执行：对话中包含不可信的文本，因此不允许调用可能更改内容的工具 {name}。",
)


class UntrustedTextPolicy(RunPolicy):
    """Restricts calls that act once a result of an untrusted tool was received.

    Results of earlier turns of the conversation count. A result of a tool that is no longer available counts too.
    """

    def __init__(self, library: ToolLibrary, messages: Sequence[Message], after_untrusted: AfterUntrusted) -> None:
        self._library = library
        self._after_untrusted = after_untrusted
        self._had_untrusted_text = any(
            message.role == "tool" and self._is_untrusted(message.name) for message in messages
        )

    def screen(self, call: ResolvedCall, steps: Sequence[Step]) -> ResolvedCall:
        """Refuse a call that acts, or mark it for approval."""
        traits = self._library.get_traits(call.call.name)
        if call.failure is not None or (traits is not None and traits.read_only):
            return call
        if not self._had_untrusted_text and not any(map(self._returned_untrusted_text, steps)):
            return call
        if self._after_untrusted == "approve":
            return replace(call, requires_approval=True)
        return call.refuse(_REFUSED_CALL.format(name=call.call.name))

    def _returned_untrusted_text(self, step: Step) -> bool:
        """Return whether the result of a step is untrusted; that of a tool that did not run is from the library."""
        has_run = step.result.attempts > 0 and step.result.failure not in ("unknown_tool", "invalid_arguments")
        return has_run and self._is_untrusted(step.call.name)

    def _is_untrusted(self, name: str) -> bool:
        traits = self._library.get_traits(name)
        return traits is None or traits.untrusted_output

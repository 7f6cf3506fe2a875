"""Calls of a server's reply in their own form: only what the gateway repaired or dropped changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from opposable.domain.events import CUT_OFF, CallDelta, FinishReason, Reply
from opposable.domain.json_text import dump_json, parse_reply_json
from opposable.domain.tools import ToolCall
from opposable.models.openai_compatible import FINISH_REASONS, StreamAccumulator
from opposable.web.sse_response import escape_line_ends

NO_REASONS: Mapping[Any, str] = {}


class CallRewriter:
    """Rewrites the calls of one completion, whole or in chunks.

    Args:
        reply: The reply of the server.
        sent_calls: For each of its calls the one for the client, None for a dropped one.
        finish: Why the reply ended, for the client.
    """

    def __init__(self, reply: Reply, sent_calls: Sequence[ToolCall | None], finish: FinishReason) -> None:
        self._calls = reply.message.tool_calls
        self._sent_calls = sent_calls
        self._finish = "" if finish == reply.finish else finish
        self._accumulator = StreamAccumulator()
        self._written_positions: set[int] = set()

    def rewrite_completion(self, response: dict[str, Any]) -> None:
        """Change the calls of a whole completion."""
        choice = response["choices"][0]
        self._rewrite_choice(choice, choice["message"], range(len(self._calls)))

    def rewrite_frame(self, frame: bytes) -> bytes:
        """Return the event of a chunk with its calls changed, b"" if nothing is left of it."""
        chunk = parse_frame(frame)
        if not chunk.get("choices"):
            return frame
        choice = chunk["choices"][0]
        delta = choice.get("delta") or choice.get("message") or {}
        positions = [part.index for part in self._accumulator.add_chunk(chunk) if type(part) is CallDelta]
        if not self._rewrite_choice(choice, delta, positions):
            return frame
        return b"data: " + escape_line_ends(dump_json(chunk)) if delta or choice.get("finish_reason") else b""

    def _rewrite_choice(self, choice: dict[str, Any], holder: dict[str, Any], positions: Sequence[int]) -> bool:
        """Change the finish reason and the calls, which `holder` has at these positions; return whether they changed."""
        is_changed = False
        if self._finish and choice.get("finish_reason"):
            choice["finish_reason"] = self._finish
            is_changed = True
        rest = []
        for raw, position in zip(holder.get("tool_calls") or (), positions, strict=True):
            is_changed |= self._rewrite_call(raw, position)
            if self._sent_calls[position] is not None:
                rest.append(raw)
        if rest:
            holder["tool_calls"] = rest
        elif positions:
            del holder["tool_calls"]
        return is_changed

    def _rewrite_call(self, raw: dict[str, Any], position: int) -> bool:
        """Change a call or a delta of one; return whether it changed. The first delta gets all arguments."""
        call, original = self._sent_calls[position], self._calls[position]
        if call is None:
            return True
        is_moved = None in self._sent_calls[:position] and "index" in raw
        if is_moved:
            raw["index"] = sum(other is not None for other in self._sent_calls[:position])
        if (call.id, call.name, call.arguments_json) == (original.id, original.name, original.arguments_json):
            return is_moved
        function = raw.get("function") or {}
        if raw.get("id"):
            raw["id"] = call.id
        if function.get("name"):
            function["name"] = call.name
        is_first = position not in self._written_positions
        self._written_positions.add(position)
        if is_first or "arguments" in function:
            raw["function"] = {**function, "arguments": call.arguments_json if is_first else ""}
        return True


def drop_cut_off_calls(chunk: dict[str, Any], reasons: Mapping[Any, str] = NO_REASONS, default: str = "stop") -> bool:
    """Drop the calls of choices that were cut off from a completion or chunk; return whether there were any.

    Choices without a finish reason have that of `reasons`, by their index, or the default.
    """
    is_changed = False
    for choice in chunk.get("choices") or ():
        reason = choice.get("finish_reason") or reasons.get(choice.get("index"), default)
        holder = choice.get("message") or choice.get("delta") or {}
        for key in ("tool_calls", "function_call") if FINISH_REASONS.get(str(reason).lower()) in CUT_OFF else ():
            is_changed |= holder.pop(key, None) is not None
    return is_changed


def drop_cut_off_deltas(frames: Sequence[bytes], is_ended: bool) -> list[bytes]:
    """Return the events of a completion without the calls of choices that were cut off."""
    chunks = [parse_frame(frame) for frame in frames]
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or ()]
    reasons = {choice.get("index"): choice["finish_reason"] for choice in choices if choice.get("finish_reason")}
    sent: list[bytes] = []
    for frame, chunk in zip(frames, chunks, strict=True):
        if not drop_cut_off_calls(chunk, reasons, "stop" if is_ended else "error"):
            sent.append(frame)
        elif any(choice.get("delta") or choice.get("finish_reason") for choice in chunk["choices"]):
            sent.append(b"data: " + escape_line_ends(dump_json(chunk)))
    return sent


def parse_frame(frame: bytes) -> dict[str, Any]:
    """Return the JSON of an event, {} for a comment or the end marker."""
    return parse_object(b"".join(line[5:].strip() for line in frame.split(b"\n") if line.startswith(b"data:")))


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return a JSON object, {} for anything else."""
    try:
        value = parse_reply_json(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}

"""What a run does so that nothing goes wrong twice: its parts, each of which can be switched off."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """How a run is guarded; everything is on by default, and costs nothing to speak of while all goes well.

    `refusing` keeps a call from being made that failed before, and tells of one that brings nothing new. `telling` puts
    a short block on what was tried beside the last message, in about `tokens` tokens, once there is something to say.
    `learning` uses what is known of failures from before, and adds to it. `deciding` says when to switch tools, plan
    anew or come to an end. `insisting` asks on where a model would answer although a call failed, or something that it
    wrote or that the request wants is left, and holds a call back that needs to know what a tool could tell
    (`unfinished`).

    A call whose failure may pass (a server that was busy) is made `tries` times. One that brings the same result is told
    of that at the `told_at`-th time and refused at the next after `refused_at` turns without anything new, unless it
    waits for something. A tool
    that failed `failures` times running is to be exchanged, a plan of which as many turns running failed to be changed,
    and after `hopeless` turns in which every call was refused the model is asked for its answer.
    """

    block_repeats: bool = True
    status_notes: bool = True
    failure_memory: bool = True
    replanning: bool = True
    follow_ups: bool = True
    max_attempts: int = 3
    warn_after: int = 3
    block_after: int = 5
    switch_after: int = 3
    give_up_after: int = 4
    status_note_tokens: int = 300

    @property
    def is_disabled(self) -> bool:
        """Whether nothing at all is done."""
        return not (
            self.block_repeats or self.status_notes or self.failure_memory or self.replanning or self.follow_ups
        )


ALL_GUARDS = GuardOptions()
NO_GUARDS = GuardOptions(
    block_repeats=False, status_notes=False, failure_memory=False, replanning=False, follow_ups=False
)

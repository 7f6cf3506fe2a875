"""What a run does so that nothing goes wrong twice: its parts, each of which can be switched off."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guarding:
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

    refusing: bool = True
    telling: bool = True
    learning: bool = True
    deciding: bool = True
    insisting: bool = True
    tries: int = 3
    told_at: int = 3
    refused_at: int = 5
    failures: int = 3
    hopeless: int = 4
    tokens: int = 300

    @property
    def is_off(self) -> bool:
        """Whether nothing at all is done."""
        return not (self.refusing or self.telling or self.learning or self.deciding or self.insisting)


GUARDED = Guarding()
UNGUARDED = Guarding(refusing=False, telling=False, learning=False, deciding=False, insisting=False)

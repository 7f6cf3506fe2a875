"""The options of assistance: which rules are on."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Which rules of assistance are on. All are on by default.

    Attributes:
        ordered_calls: Makes the calls of several tools one tool at a time, the later ones with the earlier results.
        block_repeats: Blocks a call that failed before, and warns of one that returns nothing new.
        larger_timeouts: Enlarges the arguments that a spec names, after a time-out.
        failure_memory: Uses failures of earlier runs, and stores those of this run.
        suggestions: Adds to a failed result which argument may be right, or that the call may be repeated.
        follow_ups: Asks the model for a corrected call when it would answer right after a failed one.
        status_notes: Appends a summary of the failed calls to the last message sent.
        replanning: Asks the model to switch tools or to plan again after repeated failures, or ends the run.
        unmade_calls: Asks the model once more when its reply is empty, or names a tool without a call.
    """

    ordered_calls: bool = True
    block_repeats: bool = True
    larger_timeouts: bool = True
    failure_memory: bool = True
    suggestions: bool = True
    follow_ups: bool = True
    status_notes: bool = True
    replanning: bool = True
    unmade_calls: bool = True


RULE_SWITCHES = tuple(field.name for field in fields(GuardOptions))

ALL_GUARDS = GuardOptions()
NO_GUARDS = GuardOptions(**dict.fromkeys(RULE_SWITCHES, False))

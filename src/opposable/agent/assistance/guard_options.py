"""The options of assistance: which rules are on, and when they act."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Which rules of assistance are on, and when they act. All are on by default.

    Attributes:
        ordered_calls: Makes the calls of several tools one tool at a time, the later ones with the earlier results.
        block_repeats: Blocks a call that failed before, and warns of one that returns nothing new.
        larger_timeouts: Enlarges the arguments that a spec names, after a time-out.
        failure_memory: Uses failures of earlier runs, and stores those of this run.
        suggestions: Adds to a failed result which argument may be right, or that the call may be repeated.
        status_notes: Appends a summary of the failed calls to the last message sent.
        replanning: Asks the model to switch tools or to plan again after repeated failures, or ends the run.
        follow_ups: Asks the model for a corrected call when it would answer right after a failed one.
        max_attempts: How often a call is made whose failure is temporary, such as a busy server.
        warn_after: Identical results after which the model is warned.
        block_after: Turns without a new result after which a call with identical results is blocked.
        switch_after: Consecutive failures of a tool after which the model is asked to use another one, and failed
            turns after which it is asked for another plan.
        give_up_after: Turns with nothing but blocked calls after which the run ends with an answer.
        status_note_tokens: The length of the status note, in tokens.
    """

    ordered_calls: bool = True
    block_repeats: bool = True
    larger_timeouts: bool = True
    failure_memory: bool = True
    suggestions: bool = True
    status_notes: bool = True
    replanning: bool = True
    follow_ups: bool = True
    max_attempts: int = 3
    warn_after: int = 3
    block_after: int = 5
    switch_after: int = 3
    give_up_after: int = 4
    status_note_tokens: int = 300


RULE_SWITCHES = (
    "ordered_calls",
    "block_repeats",
    "larger_timeouts",
    "failure_memory",
    "suggestions",
    "follow_ups",
    "status_notes",
    "replanning",
)
"""The options that switch a rule, in the order in which the rules act."""

ALL_GUARDS = GuardOptions()
NO_GUARDS = GuardOptions(**dict.fromkeys(RULE_SWITCHES, False))

"""The options that switch the parts of a team on and off."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TeamOptions:
    """The parts of a team, all on by default; switch one off to measure its effect.

    Attributes:
        use_semantics: Whether the semantic model interprets the question first.
        check_values: Whether the values of an empty result are compared with those of the database.
        allow_corrections: Whether the model corrects SQL that failed or found no value.
        assisted: Whether rejected SQL is repaired by the rules for small models; None asks the model's profile.
        time_limit_seconds: The time limit of one question.
        private_columns: The columns whose values are not shown to the model: "email", "customers.email", "*" for all.
    """

    use_semantics: bool = True
    check_values: bool = True
    allow_corrections: bool = True
    assisted: bool | None = None
    time_limit_seconds: float = 300.0
    private_columns: tuple[str, ...] = ()


DEFAULT_TEAM_OPTIONS = TeamOptions()

"""Messages of `FieldProblem`: what is wrong with one argument, in English and Chinese."""

from collections.abc import Sequence

from opposable.domain.localized_text import LocalizedText, localize


def is_required() -> LocalizedText:
    """Return the message for a missing argument."""
    return LocalizedText("is required", "字段是必需的")


def unknown_parameter(parameter_names: Sequence[str]) -> LocalizedText:
    """Return the message for an argument that the tool does not take."""
    if not parameter_names:
        return LocalizedText("it takes no parameters", "该工具不需要参数")
    names = ", ".join(parameter_names)
    return LocalizedText(
        f"there is no such parameter; the parameters are {names}", f"没有这个参数，可用的参数是 {names}"
    )


def must_be(requirement: str) -> LocalizedText:
    """Return the message for a value that has to be something else, such as "1 to 1000"."""
    return LocalizedText(f"must be {requirement}", f"必须是 {localize(requirement, 'zh')}")

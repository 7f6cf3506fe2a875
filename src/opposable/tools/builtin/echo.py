"""The smallest tool: what goes in comes out."""


def echo(text: str) -> str:
    """Repeat a text unchanged.

    Args:
        text: the text to repeat.
    """
    return text

"""The smallest tool: what goes in comes out."""


async def echo(text: str) -> str:  # async: a thread for it would cost more than all the rest
    """Repeat a text unchanged.

    Args:
        text: the text to repeat.
    """
    return text

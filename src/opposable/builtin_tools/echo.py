"""Tool that repeats a text."""


async def echo(text: str) -> str:  # async: a worker thread would cost more than the call
    """Repeat a text unchanged.

    Args:
        text: the text to repeat.
    """
    return text

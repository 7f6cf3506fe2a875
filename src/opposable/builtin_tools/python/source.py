"""Cleanup of Python source that a model wrote."""

import re

_FENCE_PATTERN = re.compile(r"\A\s*```(?:python|py)?[ \t]*\n(?P<code>.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)


def strip_code_fence(code: str) -> str:
    """Return the code without its Markdown fence."""
    match = _FENCE_PATTERN.match(code)
    return match["code"] if match else code

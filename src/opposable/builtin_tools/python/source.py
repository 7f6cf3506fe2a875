"""Python source as models hand it over."""

import re

_FENCE_PATTERN = re.compile(r"\A\s*```(?:python|py)?[ \t]*\n(?P<code>.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)


def strip_code_fence(code: str) -> str:
    """The code alone, where it came in a Markdown fence."""
    found = _FENCE_PATTERN.match(code)
    return found["code"] if found else code

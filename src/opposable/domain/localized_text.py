"""English text that carries its Chinese translation."""

from collections.abc import Iterable
from typing import Self

from opposable.domain.language import Language


class LocalizedText(str):
    """A message in English, as a `str`, that also holds its Chinese translation.

    Message catalogs return it where the reader's language is not known yet, as in the message of an exception:
    logs and tests see plain English, and `localize` returns the reader's language.
    """

    __slots__ = ("chinese",)

    chinese: str

    def __new__(cls, english: str, chinese: str) -> Self:
        """Create the text from its two translations."""
        text = super().__new__(cls, english)
        text.chinese = chinese
        return text

    def format(self, *args: object, **kwargs: object) -> "LocalizedText":
        """Fill the same values into both translations; a value that is localized is in the language of each."""
        chinese = {name: getattr(value, "chinese", value) for name, value in kwargs.items()}
        return LocalizedText(str.format(self, *args, **kwargs), self.chinese.format(*args, **chinese))

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # it has one argument more than `str`
        """Return both translations, so that the text can be copied (`dataclasses.asdict` does) and pickled."""
        return str(self), self.chinese


def localize(text: str, language: Language) -> str:
    """Return `text` in `language`; a plain `str` has no translation and is returned as it is."""
    return text.chinese if language == "zh" and isinstance(text, LocalizedText) else str(text)


def join_localized(texts: Iterable[str], english_separator: str = " ", chinese_separator: str = "") -> LocalizedText:
    """Join messages into one, in both languages."""
    parts = list(texts)
    return LocalizedText(english_separator.join(parts), chinese_separator.join(localize(part, "zh") for part in parts))

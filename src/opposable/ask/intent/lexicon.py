"""The lexicon of the intent parser: the words of a question, and what terms and function words mean."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from opposable.ask.semantics.model import SemanticModel
from opposable.domain.text_normalization import CHINESE_CHARACTERS, lowercase_halfwidth, singularize

_LETTER = rf"[^\W_{CHINESE_CHARACTERS}]"
_OUTER_SIGN = re.compile(r"^\W|\W$|['’][sS]$")
_WORD_PATTERN = re.compile(
    rf"[{CHINESE_CHARACTERS}]|(?<!{_LETTER})-(?=\d)|(?<={_LETTER})-(?!{_LETTER})|!(?=[<>=])|\d[\d,]*(?:\.\d+)?"
    rf"|[^\W\d_{CHINESE_CHARACTERS}]+(?:['’]s\b)?"
    r"|[^\w\s.?!:\"'‘’“”()\[\]{}。…—·「」『』《》【】-]"
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word, its characters in the text, and its stem: lowercase, without the ending of a plural or a possessive."""

    start: int
    end: int
    stem: str


def tokenize(text: str) -> list[Word]:
    """Split `text` into words and signs, without underscores and signs of punctuation that separate no items."""
    words: list[Word] = []
    for match in _WORD_PATTERN.finditer(lowercase_halfwidth(text)):
        stem = re.sub(r"['’]s$", "", match[0])
        words.append(Word(match.start(), match.end(), singularize(stem) if stem.isascii() else stem))
    return words


def tokenize_stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words of a text."""
    return tuple(word.stem for word in tokenize(text))


MeaningKind = Literal[
    "metric", "dimension", "filter", "exclusion", "value",
    "group", "each", "breakdown", "which", "count", "most", "least", "descending", "ascending", "sort", "top", "bottom", "not", "not_after", "apart", "total",
    "more", "at_least", "less", "at_most", "or_more", "or_less", "and", "or", "of", "in", "with", "show", "measure", "stop",
    "change", "compare", "unsupported",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meaning:
    """A possible meaning of a phrase.

    `id` is the id of a term, or of the dimension of `value`; a function word has neither. A meaning with a `text`
    requires its characters in the question, not only its stems: a value of the database, or a name with signs such as
    "Yahoo!".
    """

    kind: MeaningKind
    id: str = ""
    value: str = ""
    text: str = ""


_FUNCTION_WORDS: dict[MeaningKind, str] = json.loads(Path(__file__).with_name("function_words.json").read_bytes())
"""Words of the closed classes of both languages.

Words of the kind "stop" never change the meaning of a question. Those of the kind "unsupported" do, and are not
understood; they are listed because a value in other letters is not meant by them. Each other word is a term, a value,
or not understood, such as "shipped".
"""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Meanings by the stems of their words: those of the model and both languages, then values of the database."""

    meanings: dict[tuple[str, ...], list[Meaning]]
    max_words: int


def build_lexicon(model: SemanticModel, database_values: Mapping[str, Sequence[str]]) -> Lexicon:
    """Build the lexicon of a semantic model.

    It contains ids, synonyms, names of values, function words of both languages, and values by dimension id. A name
    replaces a function word of the same stems, unless it requires its text.
    """
    phrases: dict[tuple[str, ...], list[Meaning]] = {}
    for kind, words in _FUNCTION_WORDS.items():
        for phrase in words.split("|"):
            phrases.setdefault(tokenize_stems(phrase), [Meaning(kind)])
    for name, meaning in _iter_names(model, database_values):
        stems = tokenize_stems(name)
        if meaning.text:  # "A-" begins "A-rated" too
            for known_stems in {stems, tokenize_stems(name.strip().rstrip("-"))} - {()}:
                phrases.setdefault(known_stems, []).append(meaning)
        elif stems and (meaning.kind != "value" or len("".join(stems)) > 1):
            others = (other for other in phrases.get(stems, ()) if other.id)
            phrases[stems] = list(dict.fromkeys([*others, meaning]))
    return Lexicon(phrases, max(map(len, phrases)))


def _iter_names(model: SemanticModel, database_values: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Meaning]]:
    """Yield the names of terms and values, then the values of the database."""
    for section, term in model.iter_terms():
        for name in (term.id, *term.synonyms):
            yield name, Meaning(section[:-1], term.id)  # type: ignore[arg-type]
    for dimension in model.dimensions.values():
        for value, names in dimension.values.items():
            for name in (value, *names):
                yield name, Meaning("value", dimension.id, value, name if _OUTER_SIGN.search(name) else "")
    for dimension_id, texts in database_values.items():
        for text in texts:
            yield text, Meaning("value", dimension_id, text, text)

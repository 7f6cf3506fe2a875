"""The embedded model's file is looked at before anything is loaded, and a broken one ends in a sentence."""

import os
from pathlib import Path

import pytest

from opposable.domain.errors import BadInput, ModelUnavailable
from opposable.domain.messages import user_message
from opposable.models.embedded.llama_cpp import LocalModel, check_gguf_file


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"hello", "is not a GGUF file (missing magic bytes). Pass the path of a .gguf file."),
        (b"", "is not a GGUF file (missing magic bytes). Pass the path of a .gguf file."),
        (b"GGU", "is not a GGUF file (missing magic bytes). Pass the path of a .gguf file."),
        (b"gguf\x03\0\0\0", "is not a GGUF file (missing magic bytes). Pass the path of a .gguf file."),
    ],
)
def test_a_file_that_is_not_gguf_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        LocalModel(path)
    assert str(caught.value) == f"{path} {sentence}"


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.gguf", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(BadInput) as caught:
            check_gguf_file(path)
        assert (
            str(caught.value) == f"Cannot read the model file {path}: {os.strerror(2) if 'No' in reason else reason}."
        )


@pytest.mark.anyio
@pytest.mark.parametrize(
    "rest",
    [b"", b"\x03\0\0\0" + bytes(16), b"\x03\0\0\0" + b"\xff" * 16, b"\x09\0\0\0" + bytes(1000), os.urandom(5000)],
)
async def test_a_damaged_file_is_reported_when_it_is_loaded(tmp_path: Path, rest: bytes) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + rest)
    model = LocalModel(tmp_path / "cut.gguf")
    for _ in range(2):  # a second attempt raises the same
        with pytest.raises(ModelUnavailable) as caught:
            async for _part in model.stream([user_message("hi")]):
                pass
        assert str(caught.value) == (
            "llama.cpp cannot load cut.gguf: the file may be damaged, or too large for the memory of this machine."
        )
    await model.aclose()


@pytest.mark.anyio
async def test_a_model_that_was_never_asked_is_closed_twice_without_harm(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    model = LocalModel(tmp_path / "m.gguf")
    assert model.name == "m"
    await model.aclose()
    await model.aclose()

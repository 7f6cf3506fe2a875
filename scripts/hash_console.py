"""Compute the hash of the sources of the console, which the built console records.

Run: python scripts/hash_console.py [--write]   (`make console` writes it after each build)
"""

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "console"
HASH_FILE = ROOT / "src" / "opposable" / "web" / "console" / "sources.sha256"


def list_source_files() -> list[Path]:
    """Return the files that the build depends on, in order."""
    files = [SOURCES / name for name in ("index.html", "package-lock.json", "package.json", "vite.config.ts")]
    files += [path for folder in ("src", "public") for path in (SOURCES / folder).rglob("*") if path.is_file()]
    return sorted(path for path in files if not path.name.endswith((".test.ts", ".test.tsx")))


def compute_sources_hash() -> str:
    """Return the SHA-256 of the names and contents of the source files."""
    digest = hashlib.sha256()
    for path in list_source_files():
        digest.update(f"{path.relative_to(SOURCES).as_posix()}\0".encode())
        digest.update(path.read_bytes())
        digest.update(b"\0")
    return digest.hexdigest()


if __name__ == "__main__":
    if "--write" in sys.argv:
        HASH_FILE.write_text(compute_sources_hash() + "\n")
    print(compute_sources_hash())

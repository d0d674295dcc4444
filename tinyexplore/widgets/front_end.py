"""The built front end: the bundles, and the chunks, which hold the code of panels until those are first opened."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

STATIC = Path(__file__).resolve().parents[1] / "static"


class BundleMissing(FileNotFoundError):
    """The front end was not built into this package."""


def bundle(name: str) -> str:
    """The text of a bundle. A widget gets the text and not the path, because anywidget keeps every widget of a file
    alive.
    """
    path = STATIC / name
    if not path.is_file():
        raise BundleMissing(
            f"{path.name} is not in {STATIC.name}/ of this installation: build the front end "
            f"(npm ci && npm run build, in widgets/) or install a release, which has it"
        )
    return path.read_text(encoding="utf-8")


def chunk_names() -> list[str]:
    """The names of all chunks."""
    return sorted(path.stem for path in (STATIC / "chunks").glob("*.js"))


def packed_chunk(name: str) -> bytes:
    """A chunk's text, gzipped."""
    return gzip.compress(bundle(f"chunks/{name}.js").encode(), mtime=0)


@cache
def packed_chunks() -> bytes:
    """All chunks, from name to text, as gzipped JSON. A widget carries them, so that a stored notebook has them too."""
    texts = {name: bundle(f"chunks/{name}.js") for name in chunk_names()}
    return gzip.compress(json.dumps(texts, ensure_ascii=False).encode(), mtime=0)


__all__ = ["BundleMissing", "bundle", "chunk_names", "packed_chunk", "packed_chunks"]

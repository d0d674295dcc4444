"""The built front end: bundles, and chunks with the code of panels, which are loaded when a panel is first opened."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

STATIC = Path(__file__).resolve().parents[1] / "static"


class BundleMissing(FileNotFoundError):
    """Raised if this package does not contain the built front end."""


def bundle(name: str) -> str:
    """Returns the text of a bundle. A widget gets the text, not the path, because anywidget keeps all widgets of a
    file alive."""
    path = STATIC / name
    if not path.is_file():
        raise BundleMissing(
            f"{path.name} is not in {STATIC.name}/ of this installation: build the front end "
            f"(npm ci && npm run build, in widgets/) or install a release, which has it"
        )
    return path.read_text(encoding="utf-8")


def chunk_names() -> list[str]:
    """Returns the names of all chunks."""
    return sorted(path.stem for path in (STATIC / "chunks").glob("*.js"))


def packed_chunk(name: str) -> bytes:
    """Returns a chunk's text, gzipped."""
    return gzip.compress(bundle(f"chunks/{name}.js").encode(), mtime=0)


@cache
def packed_chunks() -> bytes:
    """Returns all chunks, from name to text, as gzipped JSON. A widget contains them, so that a stored notebook has
    them, too."""
    texts = {name: bundle(f"chunks/{name}.js") for name in chunk_names()}
    return gzip.compress(json.dumps(texts, ensure_ascii=False).encode(), mtime=0)


__all__ = ["BundleMissing", "bundle", "chunk_names", "packed_chunk", "packed_chunks"]

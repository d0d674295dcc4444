"""Digests of UOps: short hashes of their content, equal in every process.

A digest depends only on data that the trace stores for the node. A packed trace therefore omits digests and its readers
recompute them (`columns.py`, `widgets/src/digests.ts`). Digests do not compress; they were a third of a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha1
from typing import Any

from tinyexplore.explore.tracefile.encodable_text import well_formed

_MEMORY = ("DEFINE_GLOBAL", "DEFINE_LOCAL")
DIGEST_LENGTH = 12  # hexadecimal digits


def content_digest(op: str, dtype: str, arg: str, detail: str, sources: Sequence[str]) -> str:
    """Returns the digest of a UOp from the fields of its node and the digests of its sources.

    `detail` is included only for memory operations. There it holds the size, which is part of the type.
    """
    text = f"{op}|{dtype}|{arg}|{detail if op in _MEMORY else ''}|{','.join(sources)}"
    try:
        content = text.encode()
    except UnicodeEncodeError:
        content = well_formed(text).encode()
    return sha1(content, usedforsecurity=False).hexdigest()[:DIGEST_LENGTH]


def remove_derived(nodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of nodes with None in place of each digest that `derive_digests` can recompute."""
    digests: list[str] = []
    plain_nodes = []
    for row in nodes:
        digest = row["digest"]
        is_derived = row["kind"] == "uop" and digest == _digest_row(row, digests)
        plain_nodes.append({**row, "digest": None} if is_derived else row)
        digests.append(digest)
    return plain_nodes


def derive_digests(nodes: Iterable[Any]) -> list[Any]:
    """Returns the digest of each row of nodes; computes those that are missing.

    A malformed row keeps its value, for the decoder to reject.
    """
    with_digests: list[Any] = []
    for row in nodes:
        digest = row.get("digest") if isinstance(row, dict) else None
        if digest is None:
            try:
                digest = _digest_row(row, with_digests) if row["kind"] == "uop" else None
            except (KeyError, TypeError, IndexError, AttributeError):
                digest = None
        with_digests.append(digest)
    return with_digests


def _digest_row(row: dict[str, Any], digests: Sequence[str]) -> str:
    sources = [digests[source] for source in row["src"]]
    return content_digest(row["op"], row["dtype"], row["arg"], row["detail"], sources)


__all__ = ["DIGEST_LENGTH", "content_digest", "derive_digests", "remove_derived"]

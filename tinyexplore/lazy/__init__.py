"""LazyBuffer: the immutable node of the tensor graph. It describes the value of a Tensor before it is computed."""

from tinyexplore.lazy.collective import as_bits
from tinyexplore.lazy.folding import Simplified, sources_of, written_from
from tinyexplore.lazy.lazybuffer import (
    Copied,
    Gathered,
    LazyBuffer,
    Origin,
    Outside,
    ShapeError,
    Since,
    first_made,
    first_number,
    note_since,
)
from tinyexplore.lazy.sharded import ShardedBuffer, forget_sources, laid_out_as, parts_of
from tinyexplore.lazy.stored import StorageError, StoredBuffer

__all__ = [
    "Copied",
    "Gathered",
    "Simplified",
    "LazyBuffer",
    "Origin",
    "Outside",
    "ShapeError",
    "ShardedBuffer",
    "Since",
    "StorageError",
    "StoredBuffer",
    "as_bits",
    "first_made",
    "first_number",
    "forget_sources",
    "laid_out_as",
    "note_since",
    "parts_of",
    "sources_of",
    "written_from",
]

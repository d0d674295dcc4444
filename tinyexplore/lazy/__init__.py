"""LazyBuffer: the immutable node of the tensor graph. It describes the value of a Tensor before it is computed."""

from tinyexplore.lazy.collective import as_bits
from tinyexplore.lazy.folding import Simplified, graph_as_written, sources_of
from tinyexplore.lazy.lazybuffer import (
    Copied,
    Gathered,
    LazyBuffer,
    Origin,
    Outside,
    ShapeError,
    Since,
    first_number,
    note_since,
    smallest_number_behind,
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
    "smallest_number_behind",
    "first_number",
    "forget_sources",
    "laid_out_as",
    "note_since",
    "parts_of",
    "sources_of",
    "graph_as_written",
]

"""LazyBuffer: the immutable node of the tensor graph. It describes the value of a Tensor before it is computed."""

from tinyexplore.lazy.collective import as_bits
from tinyexplore.lazy.folding import Simplification, graph_as_written, sources_of
from tinyexplore.lazy.lazybuffer import (
    DataCopy,
    ExternalOperation,
    GatheredParts,
    LazyBuffer,
    Origin,
    ShapeError,
    SourceNumberBound,
    first_number,
    note_source_bound,
    smallest_number_behind,
)
from tinyexplore.lazy.sharded import ShardedBuffer, forget_sources, laid_out_as, parts_of
from tinyexplore.lazy.stored import StorageError, StoredBuffer

__all__ = [
    "DataCopy",
    "GatheredParts",
    "Simplification",
    "LazyBuffer",
    "Origin",
    "ExternalOperation",
    "ShapeError",
    "ShardedBuffer",
    "SourceNumberBound",
    "StorageError",
    "StoredBuffer",
    "as_bits",
    "smallest_number_behind",
    "first_number",
    "forget_sources",
    "laid_out_as",
    "note_source_bound",
    "parts_of",
    "sources_of",
    "graph_as_written",
]

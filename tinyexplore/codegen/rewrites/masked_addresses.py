"""Pass "masked addresses": a vector load whose mask never holds reads the start of its buffer.

    load(p, 8*i, 8*i + lanes < 100)  →  load(p, where(8*i < 100, 8*i, 0), 8*i + lanes < 100)

Without this, most vectors of a concatenation or of a padded vector have addresses outside of the buffer. Their masks
select no lane. But on x86, a masked load from a page without memory takes more than a hundred cycles, because the CPU
must suppress the fault. A concatenation of two vectors (2 MB) took 30 times as long on a Zen 5.
"""

from __future__ import annotations

from tinyexplore.dtype import PtrDType
from tinyexplore.uop import Ops, PatternMatcher, UOp, UPat, index_const, rule
from tinyexplore.uop.bounds import bounds

PAGE_BYTES = 4096  # closer addresses outside of the buffer belong to few vectors, and usually to memory in use


@rule(UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, name="index"), name="load", more_src=True))
def masked_address(load: UOp, index: UOp) -> UOp | None:
    """An address far outside of the buffer becomes the buffer's start. No lane is selected there."""
    lanes = load.dtype.count
    buffer, position, *valid = index.src
    if lanes == 1 or not valid or valid[0].dtype.count != lanes or position.op is Ops.WHERE:
        return None
    assert isinstance(buffer.dtype, PtrDType)
    size, margin = int(buffer.dtype.size), PAGE_BYTES // load.dtype.itemsize
    low, high = bounds(position)
    if low >= -margin and high < size + margin:
        return None
    has_lanes_inside = (position > -lanes) & (position < size)
    address = index.replace(src=(buffer, has_lanes_inside.where(position, index_const(0)), *valid))
    return load.replace(src=(address, *load.src[1:]))


MASKED_ADDRESSES = PatternMatcher((masked_address,))

__all__ = ["MASKED_ADDRESSES"]

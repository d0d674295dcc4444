"""Opts: what may be done to the axes of a kernel. Each is a law on the loop nest, before → after."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.util.enums import Named, quick_members


class OptError(ValueError):
    """An Opt that is not legal here: what was tried, what was found, what would do."""


@quick_members
class OptOps(Named):
    """The kinds of Opt. An axis is named by its id in `Kernel.axes`.

    VECTOR: the lanes of one vector instruction do `amount` neighbouring steps::

        for i in 0..64: out[i] = f(i)        →  for i in 0..4: out[16*i .. 16*i+15] = f(16*i .. 16*i+15)

    of a scan: those of the vector are combined with each other, then with the last one before it::

        for i in 0..64: acc += f(i)          →  for i in 0..32: v = f(2*i .. 2*i+1); v[1] += v[0]
                        out[i] = acc                            acc = v + acc[1]; out[2*i .. 2*i+1] = acc

    UPCAST: `amount` steps of an output axis are written out, so that what they share is done once::

        for i in 0..64: out[i] = f(i)        →  for i in 0..16: out[4*i] = f(4*i); ...; out[4*i+3] = f(4*i+3)

    UNROLL: `amount` steps of a reduction are written out, each with an accumulator of its own::

        for k in 0..64: acc += f(k)          →  for k in 0..16: a0 += f(4*k); ...; a3 += f(4*k+3)
                                                acc = a0 + a1 + a2 + a3

    THREAD: the steps of the outermost output axis are divided among the cores (`amount` is not used)::

        for i in 0..64: ...                  →  for i in start..stop: ...      (each core with its own start and stop)

    LOCAL: a block of `amount` steps of an output axis becomes a loop inside the other output loops::

        for i in 0..64: for j in 0..64: ...  →  for i in 0..8: for j in 0..64: for l in 0..8: ... 8*i+l ...

    GROUP: a reduction is done in blocks of `amount` steps, each with a partial result::

        for k in 0..64: acc += f(k)          →  for k in 0..8: part = 0; for q in 0..8: part += f(8*k+q)
                                                               acc += part

    SWAP: two output axes (`axis` and `amount`) change places::

        for i in 0..64: for j in 0..32: ...  →  for j in 0..32: for i in 0..64: ...

    MERGE: two output axes (`axis` and, inside it, `amount`) that the result walks as one become one, so that lanes
    need not end where a short row ends; the outer one may be a tile of rows already::

        for i in 0..4: for j in 0..6: ...    →  for p in 0..24: ...            (with i = p / 6, j = p % 6)

    STAGE: what every step of an output axis reads alike in its reductions is first copied into scratch memory, in the
    order in which it is read (`amount` is not used)::

        for j: for i: for k: acc += a[i,k] * b[k,j]  →  for j: for k: p[k] = b[k,j]
                                                               for i: for k: acc += a[i,k] * p[k]

    COLLECT: results whose neighbours in a vector (`axis`) lie apart in memory are put down in scratch memory first, a
    register tile at a time, and stored from there in the order in which they lie (`amount` is not used)::

        for i: out[9*(16*i .. 16*i+15)] = f  →  for i: s[0 .. 15] = f; for l in 0..16: out[9*(16*i+l)] = s[l]

    TC: `amount` small numbers of each factor of a sum of products lie side by side in a word, as the dot instruction
    takes them that the machine has (two bfloat16, four int8); what is left over is summed by itself::

        for k in 0..64: acc += a[k] * b[k]   →  for k in 0..32: acc = dot(word(a[2*k], a[2*k+1]),
                                                                          word(b[2*k], b[2*k+1]), acc)

    CUT: loops end where a mask hides all that is left from a block of rows (`amount` is not used; it comes last)::

        for i in 0..64: for k in 0..64: acc += p[k] * v[k]       (p[k] = 0 for k > i)
                                             →  for i in 0..64: for k in 0..i+1: acc += p[k] * v[k]

    AHEAD: what is read in the loop is asked for `amount` steps earlier, so that it is in the cache by then (where a row
    is kept in scratch memory, by the loop that fills it)::

        for i in 0..64: acc += a[1000*i]     →  for i in 0..64: fetch(a[1000*(i+2)]); acc += a[1000*i]

    PIPE: the results of a step of an output axis, read from the row that it kept, are stored while the next step fills
    the row, in blocks of `amount` steps, the last of which is stored by itself (it comes last)::

        for i in 0..64: for j: e[j] = f(i,j)  →  for b in 0..4: for i in 0..16: for j: out[16*b+i-1,j] = g(e[j])
                        for j: out[i,j] = g(e[j])                                     e[j] = f(16*b+i,j)
                                                                for j: out[16*b+15,j] = g(e[j])

    An output axis that `amount` does not divide takes its last block so that it ends at the end, over part of the
    block before (both write the same values); a reduction does the remainder in a loop of its own.
    """

    VECTOR = "vector"
    UPCAST = "upcast"
    UNROLL = "unroll"
    THREAD = "thread"
    LOCAL = "local"
    GROUP = "group"
    SWAP = "swap"
    MERGE = "merge"
    STAGE = "stage"
    COLLECT = "collect"
    CUT = "cut"
    TC = "tc"
    AHEAD = "ahead"
    PIPE = "pipe"

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"


@dataclass(frozen=True, slots=True)
class Opt:
    """`op` on the axis with id `axis`, by `amount`."""

    op: OptOps
    axis: int
    amount: int = 0

    def __str__(self) -> str:
        return f"{self.op.name}({self.axis}, {self.amount})" if self.amount else f"{self.op.name}({self.axis})"

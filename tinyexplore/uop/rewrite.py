"""graph_rewrite: rules applied bottom-up until none fires, every node once; and passes, which are named tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tinyexplore.trace import Recorder, StageBegan, StageEnded, active_recorder, rebuilt, rewrote
from tinyexplore.uop.pattern import PatternMatcher
from tinyexplore.uop.uop import UOp

MAX_FIRINGS_ON_ONE_NODE = 256
MAX_DEPTH = 3  # of what a rule usually puts in the place of a node
_NEVER = object()


class RewriteError(RuntimeError):
    """Rules that undo each other, or a rule that raised: named, with the node at fault."""


@dataclass(frozen=True)
class Pass:
    """A named table of rules: one line of the pipeline."""

    name: str
    matcher: PatternMatcher


def run_passes(root: UOp, passes: Sequence[Pass], ctx: Any = None, *, kernel: int | None = None) -> UOp:
    """Each pass in turn over the whole graph."""
    for step in passes:
        root = graph_rewrite(root, step.matcher, ctx, stage=step.name, kernel=kernel)
    return root


def graph_rewrite(
    root: UOp, matcher: PatternMatcher, ctx: Any = None, *, stage: str = "rewrite", kernel: int | None = None
) -> UOp:
    """`root` rewritten bottom-up: the sources of a node first, then the node until no rule fires.

    Results are memoised on the interned nodes, so a shared node is rewritten once. The walk keeps its own stack:
    depth is no limit. Each firing is told as `Rewrote`, each node made anew for its new sources as `Rebuilt`.
    """
    recorder = active_recorder()
    if recorder is None:
        return _rewrite(root, matcher, ctx, None)
    recorder.record(StageBegan(stage, root, kernel))
    start = time.perf_counter()
    after = None
    try:
        after = _rewrite(root, matcher, ctx, recorder)
        return after
    finally:
        recorder.record(StageEnded(stage, after, time.perf_counter() - start))


def _rewrite(root: UOp, matcher: PatternMatcher, ctx: Any, recorder: Recorder | None) -> UOp:
    done: dict[UOp, UOp] = {}
    waiting: dict[UOp, list[UOp]] = {}  # a rewritten node → the nodes that it replaces, all the way back
    find, ops, mask, kinds = matcher.candidates, matcher.ops, matcher.mask, matcher.kinds
    settles: object = matcher if matcher.remembers else _NEVER
    if not (root.mask & mask and root.mask & kinds) or root.settled is settles:
        return root
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        missing = changed = False
        for source in reversed(node.src):
            known = done.get(source)
            if known is None:
                if source.mask & mask and source.mask & kinds and source.settled is not settles:
                    stack.append(source)
                    missing = True
                else:
                    done[source] = source  # no rule can fire, or has fired before, anywhere in it
            elif known is not source:
                changed = True
        if missing:
            continue
        stack.pop()
        current = node
        if changed:
            current = UOp(node.op, node.dtype, tuple([done[source] for source in node.src]), node.arg)
            if recorder is not None:
                recorder.record(rebuilt((node, current)))
            if current in done:
                _finish(node, done[current], done, waiting)
                continue
        after = None
        if current.op in ops and current.settled is not settles:
            rule = None
            try:
                for rule, match, function in find(current):  # noqa: B007
                    after = match(current, function, ctx)
                    if after is not None:
                        break
            except Exception as error:
                if rule is not None and hasattr(error, "add_note"):
                    error.add_note(f"in rule {rule.name} ({rule.file}:{rule.line}) on {current!r}")
                raise
        if after is None:
            done[current] = done[node] = current
            if matcher.remembers:
                current.settled = matcher
            if node in waiting:
                _finish(node, current, done, waiting)
            continue
        assert rule is not None
        if recorder is not None:
            recorder.record(rewrote((rule, current, after)))
        if after in done:
            done[current] = done[after]
            _finish(node, done[after], done, waiting)
            continue
        origins = waiting.setdefault(after, [])
        origins.extend((*waiting.pop(node, ()), node, current))
        if len(origins) > 2 * MAX_FIRINGS_ON_ONE_NODE:
            raise RewriteError(
                f"{len(origins) // 2} firings on one node without an end; the last rule was {rule.name} "
                f"({rule.file}:{rule.line}) on {current!r}"
            )
        stack.append(after)
    return done[root]


def settled_by(node: UOp, matcher: PatternMatcher) -> UOp:
    """`graph_rewrite` by a table that remembers, told to nobody: quick for new nodes on sources rewritten before."""
    return _settled(node, matcher, MAX_DEPTH)


def _settled(node: UOp, matcher: PatternMatcher, depth: int) -> UOp:
    """`depth`: how many nodes, one on the other, are looked at before a walk of its own is worth its while."""
    mask = matcher.mask
    for _ in range(MAX_FIRINGS_ON_ONE_NODE):
        if node.settled is matcher:
            return node
        sources: list[UOp] | None = None
        for place, source in enumerate(node.src):
            if source.settled is not matcher and source.mask & mask:
                if not depth:
                    return _rewrite(node, matcher, None, None)
                below = _settled(source, matcher, depth - 1)
                if below is not source:
                    sources = list(node.src) if sources is None else sources
                    sources[place] = below
        if sources is not None:
            node = UOp(node.op, node.dtype, tuple(sources), node.arg)
            continue
        for _, match, function in matcher.candidates(node) if node.op in matcher.ops else ():
            after = match(node, function, None)
            if after is not None:
                node = after
                break
        else:
            node.settled = matcher
            return node
    return _rewrite(node, matcher, None, None)


def _finish(node: UOp, result: UOp, done: dict[UOp, UOp], waiting: dict[UOp, list[UOp]]) -> None:
    """`node` and everything that became it are done: they are `result`."""
    done[node] = result
    pending = waiting.pop(node, None)
    while pending:
        origin = pending.pop()
        done[origin] = result
        pending.extend(waiting.pop(origin, ()))

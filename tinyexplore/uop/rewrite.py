"""graph_rewrite: applies rules bottom-up, to every node once, until none fires."""

from __future__ import annotations

import time
from typing import Any

from tinyexplore.trace import Recorder, StageBegan, StageEnded, active_recorder, node_rebuilt, rule_applied
from tinyexplore.uop.pattern import PatternMatcher, Rule
from tinyexplore.uop.uop import UOp, make_uop

MAX_FIRINGS_ON_ONE_NODE = 256
MAX_DEPTH = 3  # greatest usual depth of a rule's replacement
_NEVER = object()


class RewriteError(RuntimeError):
    """Raised for rules that undo each other and for rules that raise. The message names the rule and the node."""


def graph_rewrite(
    root: UOp, matcher: PatternMatcher, ctx: Any = None, *, stage: str = "rewrite", kernel: int | None = None
) -> UOp:
    """Rewrites `root` bottom-up: the sources of a node first, then the node until no rule fires.

    Results are memoized on the interned nodes, so a shared node is rewritten once. The walk uses an explicit stack, so
    depth is not limited. Each firing is recorded as `RuleApplied`. Each node rebuilt for its new sources is recorded as
    `NodeRebuilt`.
    """
    recorder = active_recorder()
    if recorder is None:
        return _rewrite(root, matcher, ctx, None)
    recorder.record(StageBegan(stage, root, kernel))
    start = time.perf_counter()
    result = None
    try:
        result = _rewrite(root, matcher, ctx, recorder)
        return result
    finally:
        recorder.record(StageEnded(stage, result, time.perf_counter() - start))


def _fire_first(matcher: PatternMatcher, node: UOp, ctx: Any) -> tuple[Rule, UOp] | None:
    """Returns the first rule that fires on `node`, and the node that it makes; None if no rule fires."""
    rule: Rule | None = None
    try:
        for rule, match, function in matcher.candidates(node):
            replacement = match(node, function, ctx)
            if replacement is not None:
                return rule, replacement
    except Exception as error:
        _add_note(error, rule, node)
        raise
    return None


def _rewrite(root: UOp, matcher: PatternMatcher, ctx: Any, recorder: Recorder | None) -> UOp:
    """Implements `graph_rewrite` with an explicit stack, so that deep graphs do not overflow Python's."""
    rewritten: dict[UOp, UOp] = {}
    result_of = rewritten.__getitem__
    replaced: set[UOp] = set()  # nodes on which a rule has fired
    ops, mask, dtypes_mask, remembers = matcher.ops, matcher.mask, matcher.kinds, matcher.remembers
    settles: object = matcher if remembers else _NEVER
    if _is_final(root, matcher, settles):
        return root
    path = []  # the nodes on the way down, their remaining sources, and the original of each
    node, sources = root, iter(root.src)
    earlier_nodes: tuple[UOp, ...] = ()
    rule: Rule | None = None
    while True:
        for source in sources:
            if source in rewritten:
                continue
            source_mask = source.mask
            if source_mask & mask and source_mask & dtypes_mask and source.settled is not settles:
                path.append((node, sources, earlier_nodes))
                node, sources, earlier_nodes = source, iter(source.src), ()
                break
            rewritten[source] = source  # no rule can fire in this graph, or an earlier rewrite of it is complete
        else:
            current, result = node, None
            src = tuple(map(result_of, node.src))
            if src != node.src:
                current = make_uop(node.op, node.dtype, src, node.arg)
                if recorder is not None:
                    recorder.record(node_rebuilt((node, current)))
                result = current if current.settled is settles else rewritten.get(current)
            if result is None:
                fired = _fire_first(matcher, current, ctx) if current.op in ops else None
                if fired is None:
                    result = rewritten[current] = current
                    if remembers:
                        current.settled = matcher
                else:
                    rule, replacement = fired
                    if recorder is not None:
                        recorder.record(rule_applied((rule, current, replacement)))
                    result = replacement if _is_final(replacement, matcher, settles) else rewritten.get(replacement)
                    if result is None:
                        if current in replaced or len(earlier_nodes) > 2 * MAX_FIRINGS_ON_ONE_NODE:
                            raise _make_endless_error(earlier_nodes, rule, current)
                        replaced.add(current)
                        earlier_nodes = (*earlier_nodes, node, current)
                        node, sources = replacement, iter(replacement.src)
                        continue
                    rewritten[current] = result
            if result is not node:
                rewritten[node] = result
            if earlier_nodes:
                rewritten.update(dict.fromkeys(earlier_nodes, result))
            if not path:
                return rewritten[root]
            node, sources, earlier_nodes = path.pop()


def _is_final(node: UOp, matcher: PatternMatcher, settles: object) -> bool:
    """Whether no rule can fire in the graph under `node`, according to its operations or to an earlier rewrite."""
    return node.settled is settles or not (node.mask & matcher.mask and node.mask & matcher.kinds)


def _add_note(error: Exception, rule: Rule | None, node: UOp) -> None:
    """Adds the name of the rule that raised, and the node, to the exception as a note (Python 3.10 lacks
    `add_note`)."""
    if rule is not None:
        note = f"in rule {rule.name} ({rule.file}:{rule.line}) on {node!r}"
        error.__dict__.setdefault("__notes__", []).append(note)


def _make_endless_error(earlier_nodes: tuple[UOp, ...], rule: Rule, node: UOp) -> RewriteError:
    """Returns the error for rules that repeatedly fire on one node."""
    return RewriteError(
        f"{1 + len(earlier_nodes) // 2} firings on one node without an end; the last rule was {rule.name} "
        f"({rule.file}:{rule.line}) on {node!r}"
    )


def settle_by(node: UOp, matcher: PatternMatcher, depth: int = MAX_DEPTH) -> UOp:
    """Rewrites `node` like `graph_rewrite`, by a table that remembers. Records nothing. Fast for new nodes on rewritten
    sources.

    depth: how many nested nodes are examined before a full walk starts.
    """
    mask = matcher.mask
    for _ in range(MAX_FIRINGS_ON_ONE_NODE):
        if node.settled is matcher:
            return node
        sources: list[UOp] | None = None
        for number, source in enumerate(node.src):
            if source.settled is not matcher and source.mask & mask:
                if not depth:
                    return _rewrite(node, matcher, None, None)
                settled_source = settle_by(source, matcher, depth - 1)
                if settled_source is not source:
                    sources = list(node.src) if sources is None else sources
                    sources[number] = settled_source
        if sources is not None:
            node = make_uop(node.op, node.dtype, tuple(sources), node.arg)
            continue
        for _, match, function in matcher.candidates(node) if node.op in matcher.ops else ():
            replacement = match(node, function, None)
            if replacement is not None:
                node = replacement
                break
        else:
            node.settled = matcher
            return node
    return _rewrite(node, matcher, None, None)

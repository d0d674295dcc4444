"""The two kinds of pass: a rewrite is a table of rules, a transform a function of whole graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.trace import Transformed, active_recorder, staged
from tinyexplore.uop import PatternMatcher, graph_rewrite
from tinyexplore.uop.spec import Spec

Form = Any  # a graph, by its root; once it is in order, the tuple of its nodes


def whole(lowering: Lowering) -> Any:
    """All that is known of the lowering."""
    return lowering


def functions(lowering: Lowering) -> Any:
    """The target, and which functions are its own."""
    return lowering.functions


@dataclass(frozen=True)
class Rewrite:
    """A pass that applies the rules of `table` bottom-up until none fires.

    before, after: what a graph may look like. context: what of the lowering the rules are given.
    """

    name: str
    table: PatternMatcher
    before: Spec
    after: Spec
    context: Callable[[Lowering], Any] = whole

    def run(self, form: Form, lowering: Lowering) -> Form:
        """What comes of `form`, told as a stage, firing by firing."""
        return graph_rewrite(form, self.table, self.context(lowering), stage=self.name)


@dataclass(frozen=True)
class Transform:
    """A pass that looks at the whole of a graph, in one step.

    function: what it does; returns the graph itself where there is nothing to do. Its docstring is the pass's law.
    before, after: what goes in and comes out may look like.
    """

    name: str
    function: Callable[[Any, Lowering], Form]
    before: Spec
    after: Spec

    @property
    def law(self) -> str:
        """What it does, in words; where that says it, the loop nest before and after."""
        return inspect.getdoc(self.function) or ""

    @property
    def file(self) -> str:
        return self.function.__code__.co_filename

    @property
    def line(self) -> int:
        return self.function.__code__.co_firstlineno

    def run(self, form: Form, lowering: Lowering) -> Form:
        """What comes of `form`, told as a stage, and that it was this transform."""

        def transformed() -> Form:
            after = self.function(form, lowering)
            recorder = active_recorder()
            if recorder is not None:
                recorder.record(Transformed(self, form, after))
            return after

        return staged(self.name, form, transformed)


Pass = Rewrite | Transform

__all__ = ["Form", "Pass", "Rewrite", "Transform", "functions", "whole"]

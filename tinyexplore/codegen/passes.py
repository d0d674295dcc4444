"""The two kinds of pass: a rewrite is a table of rules, a transform is a function on whole graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.trace import PassApplied, active_recorder, record_stage
from tinyexplore.uop import PatternMatcher, graph_rewrite
from tinyexplore.uop.spec import Spec

Form = Any  # a graph, given by its root; after linearization, the tuple of its nodes


def get_lowering(lowering: Lowering) -> Any:
    """Returns the whole lowering, as the context of a pass."""
    return lowering


def functions(lowering: Lowering) -> Any:
    """Returns the target with its native functions, as the context of a pass."""
    return lowering.function_target


@dataclass(frozen=True)
class Rewrite:
    """A pass that applies a table of rules bottom-up until none fires.

    name: the name that the explorer shows.
    table: the rules.
    before: the form of graphs that it accepts.
    after: the form of graphs that it returns.
    context: the part of the lowering that the rules receive.
    """

    name: str
    table: PatternMatcher
    before: Spec
    after: Spec
    context: Callable[[Lowering], Any] = get_lowering

    def run(self, form: Form, lowering: Lowering) -> Form:
        """Applies the pass to `form`. Records it as a stage, rule by rule."""
        return graph_rewrite(form, self.table, self.context(lowering), stage=self.name)


@dataclass(frozen=True)
class GraphPass:
    """A pass that transforms a whole graph in one step.

    name: the name that the explorer shows.
    function: the transformation. If there is nothing to do, it returns the graph itself. Its docstring states the
    effect.
    before: the form of graphs that it accepts.
    after: the form of graphs that it returns.
    """

    name: str
    function: Callable[[Any, Lowering], Form]
    before: Spec
    after: Spec

    @property
    def law(self) -> str:
        """The effect of the pass as text, with the loop nest before and after if the docstring has one."""
        return inspect.getdoc(self.function) or ""

    @property
    def file(self) -> str:
        return self.function.__code__.co_filename

    @property
    def line(self) -> int:
        return self.function.__code__.co_firstlineno

    def run(self, form: Form, lowering: Lowering) -> Form:
        """Applies the pass to `form`. Records it as a stage with the name of this transform."""

        def transformed() -> Form:
            result = self.function(form, lowering)
            recorder = active_recorder()
            if recorder is not None:
                recorder.record(PassApplied(self, form, result))
            return result

        return record_stage(self.name, form, transformed)


Pass = Rewrite | GraphPass

__all__ = ["Form", "Pass", "Rewrite", "GraphPass", "functions", "get_lowering"]

"""Builds a Trace from a recording, in one pass over the events, in time linear in events and new nodes.

A partial recording (an exception in the middle) can be built too. Open stages are then closed, and a message has the
error and the user's line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import isfinite
from typing import Any

from tinyexplore.compile.threads import CompilerThreads
from tinyexplore.explore.recording.descriptions import launches_text, search_text
from tinyexplore.explore.recording.event_order import ordered_events
from tinyexplore.explore.recording.names import assigned_names
from tinyexplore.explore.recording.roots import NodeBuffer, buffer_key, roots_of
from tinyexplore.explore.recording.row_builders import ChoiceBuilder, KernelBuilder, StageBuilder, opt_axes, opt_text
from tinyexplore.explore.recording.scopes import Scopes
from tinyexplore.explore.recording.tables import Tables
from tinyexplore.explore.tracefile.encodable_text import well_formed
from tinyexplore.explore.tracefile.model import (
    TRACE_VERSION,
    Candidate,
    Decision,
    KernelInfo,
    Link,
    MemoryUse,
    Message,
    NumberComparison,
    OptionScores,
    OptStep,
    Program,
    Run,
    Scope,
    Search,
    Step,
)
from tinyexplore.explore.tracefile.titles import with_titles
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.kernel import Kernel, OptOps
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import (
    BufferAllocated,
    BufferFreed,
    CacheHit,
    CandidateMeasured,
    ExecItemRan,
    ExecItemRetimed,
    LaunchesGrouped,
    LazyBufferBuilt,
    ListingRendered,
    MemoryPlanned,
    NativeFallback,
    NodeDerived,
    NodeRebuilt,
    OptApplied,
    OptRejected,
    PassApplied,
    ProgramCompiled,
    Recorder,
    RuleApplied,
    ScheduleDecided,
    SearchEnded,
    SearchProgress,
    SourceLine,
    StageBegan,
    StageEnded,
    UserFrame,
    WritesAllowed,
    events,
)
from tinyexplore.uop import UOp
from tinyexplore.util import toposort
from tinyexplore.util.interpreter import collecting_later

Listings = Callable[[Any], list[tuple[str, tuple[SourceLine, ...]]]]


def build_trace(
    recorder: Recorder,
    *,
    title: str = "",
    options: Iterable[tuple[str, str]] = (),
    messages: Sequence[tuple[str, str, UserFrame | None]] = (),
    user_sources: Sequence[str] = (),
    listings: Listings | None = None,
    names: Mapping[int, str] | None = None,
    scopes: Scopes | None = None,
    kernels: dict[int, Kernel] | None = None,
    lazybuffers: dict[LazyBuffer, int] | None = None,
    storage: Mapping[LazyBuffer, NodeBuffer | None] | None = None,
    texts: Mapping[str, str] | None = None,
    see_kernels: Callable[[Sequence[KernelBuilder]], None] | None = None,
    before: Mapping[str, Callable[[Sequence[LazyBuffer]], Sequence[SourceLine]]] | None = None,
) -> Trace:
    """Builds the trace of the events that `recorder` recorded.

    Args:
        recorder: the recording.
        title: the title of the trace.
        options: (name, value) of the settings that produced it.
        messages: (level, text, the user's frame) of each remark for the reader.
        user_sources: files to include even if no event names them.
        listings: returns further texts of a program as (language, lines), such as its assembly.
        names: the user's names of LazyBuffers, by LazyBuffer number (`names.py`).
        scopes: the modules that created the LazyBuffers.
        kernels: filled with the Kernel objects, by kernel id in the trace.
        lazybuffers: filled with the node id of each LazyBuffer.
        storage: the buffer of each LazyBuffer when the recording ended; by default the current one.
        texts: the text of the user's files when the recording ended; by default the current one.
        see_kernels: called with the kernel drafts, in the order of `Trace.kernels`.
        before: for each language, a function that returns the text from which given LazyBuffers were created.
    """
    builder = TraceBuilder(listings, {number: well_formed(name) for number, name in (names or {}).items()})
    builder.storage, builder.texts, builder.before = storage or {}, texts or {}, before or {}
    if scopes is not None:
        builder.scopes, builder.scope_rows = scopes.of, tuple(Scope(*_make_well_formed_row(row)) for row in scopes.rows)
    for file in user_sources:
        builder.source(file)
    with collecting_later(), CompilerThreads(at_once=listings is None) as others:
        builder.start_listings(recorder, others)
        builder.read(recorder)
    for level, text, frame in messages:
        builder.messages.append(Message(level, well_formed(text), builder.frame(frame)))
    if kernels is not None:
        kernels.update({draft.number: draft.kernel for draft in builder.kernels if draft.kernel is not None})
    if lazybuffers is not None:
        lazybuffers.update({value: node for value, node in builder.node_ids.items() if isinstance(value, LazyBuffer)})
    if see_kernels is not None:
        see_kernels(builder.kernels)
    with collecting_later():
        return builder.finish(well_formed(title), tuple((name, well_formed(value)) for name, value in options))


def _make_well_formed_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(well_formed(value) if isinstance(value, str) else value for value in row)


class TraceBuilder(Tables):
    """Reads events in order and fills the inherited tables, the stages, the links and the kernels."""

    def __init__(self, listings: Listings | None = None, names: Mapping[int, str] | None = None) -> None:
        super().__init__(names)
        self.scope_rows: tuple[Scope, ...] = ()
        self.more_listings = listings
        self.before: Mapping[str, Callable[[Sequence[LazyBuffer]], Sequence[SourceLine]]] = {}
        # by the `id()` of the program
        self.listed: dict[int, Callable[[], list[tuple[str, tuple[SourceLine, ...]]]]] = {}
        self.links: dict[tuple[int, int, str, int | None], None] = {}
        self.stages: list[StageBuilder] = []
        self.open: list[StageBuilder] = []
        self.kernels: list[KernelBuilder] = []
        # the kernel number in the recording, or a ScheduleItem without a number → dense id
        self.kernel_ids: dict[object, int] = {}
        self.messages: list[Message] = []
        self.memory: list[MemoryUse] = []
        # per kernel, the UOps with a known origin: a new UOp beside a rewritten root is linked to that root
        self.accounted: dict[int | None, set[UOp]] = {}
        self.started = 0.0
        self.now_us = 0.0
        self.thread = 0
        self.readers: dict[type, Callable[[Any], None]] = {
            StageBegan: self._read_stage_began,
            StageEnded: self._read_stage_ended,
            LazyBufferBuilt: self._read_recorded,
            events.NumberCompared: self._read_compared,
            events.OptionsScored: self._read_options_scored,
            events.HeuristicConsidered: self._read_heuristic_considered,
            ScheduleDecided: self._read_decided,
            WritesAllowed: lambda event: None,
            RuleApplied: self._read_rewrote,
            PassApplied: self._read_transformed,
            NodeRebuilt: self._read_rebuilt,
            NodeDerived: self._read_derived,
            OptApplied: self._read_opt_applied,
            OptRejected: self._read_opt_rejected,
            CandidateMeasured: self._read_measured,
            SearchProgress: lambda event: None,
            SearchEnded: self._read_searched,
            ListingRendered: self._read_rendered,
            ProgramCompiled: self._read_compiled,
            ExecItemRan: self._read_ran,
            ExecItemRetimed: self._read_retimed,
            NativeFallback: self._read_native_fallback,
            CacheHit: self._read_cache_hit,
            MemoryPlanned: self._read_planned,
            LaunchesGrouped: lambda event: self.messages.append(Message("note", launches_text(event), None)),
            BufferAllocated: self._read_allocated,
            BufferFreed: self._read_freed,
        }

    # *** reading ***

    def start_listings(self, recorder: Recorder, others: CompilerThreads) -> None:
        """Computes further texts of programs, such as assembly, in other threads while this one reads the events."""
        if self.more_listings is None:
            return
        for event in recorder.events:
            if type(event) is ListingRendered and event.language == event.program.language:
                program = event.program
                if id(program) not in self.listed:
                    self.listed[id(program)] = others.submit(partial(self.more_listings, program))

    def read(self, recorder: Recorder) -> None:
        """Reads all events. Event times exclude repeated runs of kernels for timing."""
        if recorder.log:
            self.started = recorder.log[0].time
        for event, time, self.thread in ordered_events(recorder):
            self.now_us = round((time - self.started) * 1e6, 2)
            self.readers[type(event)](event)
        while self.open:
            stage = self.open.pop()
            stage.elapsed_us = round(self.now_us - stage.started_us, 2)
            text = f'the recording ended inside stage "{stage.name}"'
            self.messages.append(Message("warning", text, None))

    def finish(self, title: str, options: tuple[tuple[str, str], ...]) -> Trace:
        self._name_assigned_values()
        kernels = []
        programs: list[Program] = []
        origins: list[Program] = []
        runs: list[Run] = []
        # if any kernel was sampled, a single cold run of another one is not comparable
        is_sampled = any(draft.warm_us for draft in self.kernels)
        for draft in self.kernels:
            for language, lines in self._yield_listings_before(draft):
                origins.append(draft.program(len(origins), language, lines, self.roots))
            for language, lines in draft.collect_listings():
                programs.append(draft.program(len(programs), language, lines, self.roots))
            if draft.times_us and (draft.warm_us or not is_sampled):
                runs.append(draft.run(len(runs)))
            info = draft.info(self.kernels, self.roots, self.buffer, self._find_lazybuffers_behind)
            kernels.append(replace(info, calls=self._find_calls(info)))
        self._name_buffers()
        if kernels:
            for op in OptOps:  # the tuner shows the laws of opts that are not applied yet
                self.find_opt_effects(op)
        return Trace(
            version=TRACE_VERSION,
            title=title,
            options=options,
            sources=tuple(self.sources),
            frames=tuple(self.frames),
            nodes=tuple(self.nodes),
            rules=tuple(self.rules),
            transforms=tuple(self.transforms),
            laws=tuple(self.laws),
            stages=tuple(stage.freeze() for stage in self.stages),
            links=tuple(Link(*key) for key in self.links),
            kernels=with_titles(kernels, self.nodes, self.frames, self.sources, self.scope_rows),
            programs=tuple(programs),
            runs=tuple(runs),
            buffers=tuple(self.buffers.values()),
            messages=tuple(self.messages),
            memory=tuple(self.memory),
            scopes=self.scope_rows,
            origins=tuple(origins),
            outside=tuple(self.outside),
        )

    def _yield_listings_before(self, draft: KernelBuilder) -> Iterator[tuple[str, tuple[SourceLine, ...]]]:
        """Yields the texts from which a kernel's LazyBuffers were created, as (language, lines)."""
        members = [] if draft.item is None else [*draft.item.members, *draft.item.outputs]
        for language, text_of in self.before.items():
            lines = tuple(text_of([node for node in dict.fromkeys(members) if node in self.node_ids]))
            if lines:
                yield language, lines

    # *** names ***

    def _name_assigned_values(self) -> None:
        """Names the last LazyBuffer of each line `h = x @ w`, unless a variable of the caller already names it."""
        last: dict[tuple[int, int, str], int] = {}
        for value in self.recorded:
            node = self.node_ids[value]
            if (user := self.nodes[node].user) is not None:
                frame = self.frames[user]
                last[frame.source, frame.line, frame.function] = node
        used_names = {node.name for node in self.nodes}
        assigned = [assigned_names(source.text) for source in self.sources]
        for (source, line, _), node in last.items():
            name = assigned[source].get(line, "")
            if name and name not in used_names and not self.nodes[node].name:
                self.nodes[node] = replace(self.nodes[node], name=name)

    def _find_calls(self, kernel: KernelInfo) -> tuple[str, ...]:
        """Returns the user's calls that a kernel computes; for a kernel that only moves data, those that move it."""
        nodes = [self.nodes[node] for node in sorted(kernel.nodes)]
        working = [node for node in nodes if node.group in ("alu", "reduce")]
        call_lists = [node.calls for node in working or nodes if node.calls]
        return tuple(dict.fromkeys(calls[0] for calls in call_lists))

    def _name_buffers(self) -> None:
        """Names each buffer after the LazyBuffer whose values it has."""
        for value, node in self.node_ids.items():
            name = self.nodes[node].name
            if isinstance(value, LazyBuffer) and name and (storage_of := self.find_storage(value)) is not None:
                self._update_buffer(storage_of.buffer, name=name, overwrite=storage_of.is_own)
        for draft in reversed(self.kernels):
            for buffer in draft.written():
                self._update_buffer(buffer, maker=draft.number)

    def _update_buffer(self, buffer: Any, *, name: str = "", maker: int | None = None, overwrite: bool = False) -> None:
        key = buffer_key(buffer).id
        info = self.buffers.get(key)
        if info is None:
            return  # no kernel of this trace uses it
        if name and (overwrite or not info.name):
            info = replace(info, name=name)
        self.buffers[key] = info if maker is None else replace(info, maker=maker)

    # *** provenance ***

    def _link(self, src: int, dst: int, how: str) -> None:
        if src != dst:
            self.links[src, dst, how, self.open[-1].id if self.open else None] = None

    def _find_scope(self) -> set[UOp]:
        kernel = self.open[-1].kernel if self.open else None
        scope = self.accounted.get(kernel)
        if scope is None:
            scope = self.accounted[kernel] = set()
        return scope

    def _account(self, before: int, after: Any, how: str) -> None:
        """Links node `before` to `after` and to all new nodes below `after`."""
        self._link(before, self.node(after), how)
        if not isinstance(after, UOp):
            return
        scope = self._find_scope()
        scope.add(after)
        fresh = [src for src in after.src if src not in scope]
        while fresh:
            node = fresh.pop()
            if node in scope:
                continue
            scope.add(node)
            self._link(before, self.node_ids[node], how)
            fresh.extend(src for src in node.src if src not in scope)

    def _account_all(self, roots: Iterable[Any]) -> None:
        """Starts the provenance of a stage at its input graph."""
        scope = self._find_scope()
        fresh = [root for root in roots if isinstance(root, UOp) and root not in scope]
        while fresh:
            node = fresh.pop()
            if node not in scope:
                scope.add(node)
                fresh.extend(src for src in node.src if src not in scope)

    def _align(self, before: UOp, after: UOp, how: str) -> None:
        """Links two graphs between which no events were emitted, by position.

        Nodes at the same position in both graphs are linked. New nodes below that are linked to the node above them.
        """
        scope = self._find_scope()
        pairs = [(before, after)]
        while pairs:
            old, new = pairs.pop()
            if new is old or new in scope:
                continue
            scope.add(new)
            self._link(self.node(old), self.node(new), how)
            if old.op is new.op and len(old.src) == len(new.src):
                pairs.extend(zip(old.src, new.src, strict=True))
            else:
                pairs.extend((old, src) for src in new.src)

    def _find_lazybuffers_behind(self, ast: UOp) -> tuple[int, ...]:
        """Returns the LazyBuffers from which nodes of `ast` were derived, for a kernel whose item lists none."""
        origins = self._origins
        producers = {src for node in ast.toposort() for src in origins.get(self.node(node), ())}
        return tuple(sorted(producers))

    @cached_property
    def _origins(self) -> dict[int, list[int]]:
        """Returns the LazyBuffers from which each UOp was derived directly. Call it after all events are read."""
        nodes_by_origin: dict[int, list[int]] = {}
        for src, dst, _, _ in self.links:
            if self.nodes[src].kind == "lazybuffer":
                nodes_by_origin.setdefault(dst, []).append(src)
        return nodes_by_origin

    # *** one method per event ***

    def _read_stage_began(self, event: StageBegan) -> None:
        parent = self.open[-1] if self.open else None
        kernel = parent.kernel if parent is not None else None
        if event.kernel is not None:
            kernel = self._builder_of(event.kernel).number
        roots = roots_of(event.root)
        draft = StageBuilder(
            id=len(self.stages),
            name=event.stage,
            parent=parent.id if parent is not None else None,
            kernel=kernel,
            root=event.root,
            before=tuple(self.node(root) for root in roots),
            started_us=self.now_us,
            thread=self.thread,
        )
        self.stages.append(draft)
        self.open.append(draft)
        self._account_all(roots)
        if event.kernel is not None:
            self._builder_of(event.kernel).read_root(event.root)

    def _read_stage_ended(self, event: StageEnded) -> None:
        if not any(stage.name == event.stage for stage in self.open):
            return  # the stage began before the recorder was attached
        roots = roots_of(event.root)
        while True:
            stage = self.open[-1]
            stage.elapsed_us = round(self.now_us - stage.started_us + self._sum_other_threads_us(stage), 2)
            if stage.name == event.stage:
                break
            self.open.pop()
        began = roots_of(stage.root)
        if len(began) == len(roots) == 1 and isinstance(began[0], UOp) and isinstance(roots[0], UOp):
            self._align(began[0], roots[0], stage.name)
        stage.after = tuple(self.node(root) for root in roots)
        self.open.pop()
        if stage.kernel is not None:
            self.kernels[stage.kernel].read_result(event.root)

    def _sum_other_threads_us(self, stage: StageBuilder) -> float:
        """Returns the time of other threads' work for `stage`, during which the thread of the stage went on."""
        inside = [child for child in self.stages[stage.id + 1 :] if child.parent == stage.id]
        return sum(child.elapsed_us for child in inside if child.thread != stage.thread)

    def _read_recorded(self, event: LazyBufferBuilt) -> None:
        self.recorded.setdefault(event.lazybuffer, (event.src, event.user_frame, event.calls))
        self.node(event.lazybuffer)

    def _read_decided(self, event: ScheduleDecided) -> None:
        if self.open:
            reason = event.reason
            if event.equal_to is not None:
                reason += self._write_position(self.node(event.equal_to))
            self.open[-1].decisions.append(
                Decision(
                    self.node(event.lazybuffer),
                    event.decision,
                    reason,
                    tuple([compared_row(value) for value in event.compared]),
                    event.legality_error,
                )
            )

    def _write_position(self, number: int) -> str:
        """Returns the node of a decision and the user's line that created it, as text."""
        user = self.nodes[number].user
        return f": node {number}" if user is None else f": node {number}, line {self.frames[user].line}"

    def _step(self, rule: int | None, before: int, after: int) -> None:
        if self.open:
            stage = self.open[-1]
            stage.steps.append(Step(rule, before, after, float(round(self.now_us - stage.started_us))))

    def _read_rewrote(self, event: RuleApplied) -> None:
        before = self.node(event.before)
        self._account(before, event.after, "rewrite")
        self._step(self.rule(event.rule), before, self.node_ids[event.after])

    def _read_transformed(self, event: PassApplied) -> None:
        if self.open:
            self.open[-1].transform = self.transform(event.transform)
        before, after = event.before, event.after
        if after is not before and isinstance(before, UOp) and isinstance(after, UOp):
            self._account(self.node(before), after, event.transform.name)
            self._step(None, self.node(before), self.node_ids[after])

    def _read_rebuilt(self, event: NodeRebuilt) -> None:
        before = self.node(event.before)
        self._account(before, event.after, "rebuild")
        self._step(None, before, self.node_ids[event.after])

    def _read_derived(self, event: NodeDerived) -> None:
        for before in roots_of(event.before):
            for after in roots_of(event.after):
                self._account(self.node(before), after, event.how)

    def _read_heuristic_considered(self, event: events.HeuristicConsidered) -> None:
        if self.open:
            law = inspect.getdoc(event.decision.choose) or ""
            self.open[-1].choices.append(ChoiceBuilder(event.decision.name, law, event.settled_by))

    def _read_compared(self, event: events.NumberCompared) -> None:
        if self.open and self.open[-1].choices:
            self.open[-1].choices[-1].compared.append(compared_row(event))

    def _read_options_scored(self, event: events.OptionsScored) -> None:
        if self.open and self.open[-1].choices:
            options = tuple([(name, round(score, 4)) for name, score in event.options if isfinite(score)])
            row = OptionScores(event.what, options, event.chosen, event.least)
            self.open[-1].choices[-1].weighed.append(row)

    def _append_opt(self, opt: OptStep) -> None:
        stage = self.open[-1]
        if stage.choices:
            stage.choices[-1].opts.append(len(stage.opts))
        stage.opts.append(opt)

    def _read_opt_applied(self, event: OptApplied) -> None:
        opt = opt_text(event.opt)
        for before, after in zip(roots_of(event.before), roots_of(event.after), strict=True):
            self._align(before, after, opt)
        if self.open:
            axes = opt_axes(event.before, event.opt, event.after)
            self._append_opt(OptStep(opt, True, event.reason, self.find_opt_effects(event.opt.op), *axes))

    def _read_opt_rejected(self, event: OptRejected) -> None:
        if self.open:
            self._append_opt(OptStep(opt_text(event.opt), False, event.reason, self.find_opt_effects(event.opt.op)))

    def _read_measured(self, event: CandidateMeasured) -> None:
        if self.open:
            opts = tuple(opt_text(opt) for opt in event.kernel.applied)
            self.open[-1].candidates.append(Candidate(opts, _to_microseconds(event.seconds), event.note))

    def _read_searched(self, event: SearchEnded) -> None:
        if self.open:
            before, after = _to_microseconds(event.before_seconds), _to_microseconds(event.after_seconds)
            self.open[-1].search = Search(before, after, event.tried, event.reason)
        number = self.open[-1].kernel if self.open else None
        kernel = "" if number is None else f"kernel {number} · "
        self.messages.append(Message("note", f"BEAM {kernel}{search_text(event)}", None))

    # *** kernels ***

    def _builder_of(self, key: object) -> KernelBuilder:
        """Returns the draft of a kernel, by its number in the recording or its ScheduleItem; creates it if missing."""
        number = self.kernel_ids.get(key)
        if number is None:
            number = self.kernel_ids[key] = len(self.kernels)
            self.kernels.append(KernelBuilder(number))
        return self.kernels[number]

    def _kernel_of(self, program: Any) -> KernelBuilder | None:
        """Returns the kernel of the innermost open stage, else the kernel that already has this program."""
        if self.open and self.open[-1].kernel is not None:
            return self.kernels[self.open[-1].kernel]
        return next((draft for draft in self.kernels if draft.spec is program), None)

    def _read_rendered(self, event: ListingRendered) -> None:
        draft = self._kernel_of(event.program)
        if draft is None:
            return
        draft.spec = event.program
        draft.listings[event.language] = event.lines
        self._link_lines(event.lines)
        if self.more_listings is not None and event.language == event.program.language:
            for language, lines in self.listed[id(event.program)]():
                draft.listings[language] = lines
                self._link_lines(lines)

    def _link_lines(self, lines: Sequence[SourceLine]) -> None:
        """Links nodes of a program that no event names to their own sources."""
        scope = self._find_scope()
        groups = {id(line.uops): line.uops for line in lines}  # lines of the whole program share one tuple
        for uops in groups.values():
            for uop in uops:
                self.node(uop)
                if uop in scope:
                    continue
                for node in toposort((uop,), lambda node: () if node in scope else node.src):
                    if node not in scope:
                        scope.add(node)
                        for src in node.src:
                            self._link(self.node_ids[src], self.node_ids[node], "made with")

    def _read_compiled(self, event: ProgramCompiled) -> None:
        draft = self._kernel_of(event.program)
        if draft is not None:
            draft.spec = event.program
            draft.compile_us = round(event.seconds * 1e6, 2)
            draft.code_bytes = event.code_bytes
            draft.cached = event.cached

    def _read_ran(self, event: ExecItemRan) -> None:
        self._launch(event.exec_item).read_run(event, self.now_us)

    def _read_retimed(self, event: ExecItemRetimed) -> None:
        self._launch(event.exec_item).read_samples(event)

    def _launch(self, launch: Any) -> KernelBuilder:
        number = self.kernel_ids.get(launch.kernel) if launch.kernel is not None else None
        if number is not None and self.kernels[number].item is launch.item:
            return self.kernels[number]
        # a copy, or a kernel that an earlier recording compiled and numbered
        return self._builder_of(launch.item)

    def _read_native_fallback(self, event: NativeFallback) -> None:
        exec_item = event.exec_item
        draft = self._builder_of(exec_item.item if exec_item.kernel is None else exec_item.kernel)
        draft.read_exec_item(exec_item)
        draft.not_run = event.reason

    def _read_cache_hit(self, event: CacheHit) -> None:
        self._builder_of(event.kernel).known = event.where

    # *** memory ***

    def _read_planned(self, event: MemoryPlanned) -> None:
        plan = event.plan
        lives = tuple(
            (live_range.nbytes, live_range.first, live_range.last, offset)
            for live_range, offset in zip(plan.live_ranges, plan.offsets, strict=True)
        )
        use = MemoryUse(len(self.memory), plan.total_bytes, plan.bound_bytes, plan.peak_bytes, lives)
        self.memory.append(use)

    def _read_allocated(self, event: BufferAllocated) -> None:
        self._set_lifetime(event.buffer, allocated_us=self.now_us)

    def _read_freed(self, event: BufferFreed) -> None:
        self._set_lifetime(event.buffer, freed_us=self.now_us)

    def _set_lifetime(self, buffer: Any, *, allocated_us: float | None = None, freed_us: float | None = None) -> None:
        self.buffer(buffer)
        key = buffer_key(buffer).id
        info = self.buffers[key]
        self.buffers[key] = replace(
            info,
            allocated_us=info.allocated_us if allocated_us is None else allocated_us,
            freed_us=info.freed_us if freed_us is None else freed_us,
        )


def compared_row(figures: tuple[str, float, float, bool]) -> NumberComparison:
    figure, value, bound, is_over = figures
    return NumberComparison(figure, round(float(value), 4), round(float(bound), 4), is_over)


def _to_microseconds(seconds: float) -> float | None:
    return round(seconds * 1e6, 3) if isfinite(seconds) else None

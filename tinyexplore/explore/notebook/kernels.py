"""The kernels of a view as objects: `view.kernels[0].why_opts()`, `.apply("UPCAST(0, 4)")`, `.debug()`, …"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tinyexplore.explore.notebook.attribute_hints import KERNEL_REPLACEMENTS
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.figures import no_time_text
from tinyexplore.explore.tracefile.result_display import DisplayableResult, Table
from tinyexplore.explore.tracefile.texts import call_text, duration_text
from tinyexplore.explore.whatif.experiments import with_measured_gains
from tinyexplore.kernel import Opt, OptOps
from tinyexplore.kernel.opts import OPT_KINDS

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.comparisons.language_comparison import LanguageComparison
    from tinyexplore.explore.analysis.explanations.opt_reasons import WhyOpts
    from tinyexplore.explore.analysis.models.address_stream import AddressStream
    from tinyexplore.explore.analysis.models.caches import CacheModel
    from tinyexplore.explore.analysis.models.debugger import Debugger
    from tinyexplore.explore.analysis.models.gpu import GPUView
    from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses
    from tinyexplore.explore.analysis.models.lru import Cache
    from tinyexplore.explore.analysis.models.throughput import Throughput
    from tinyexplore.explore.analysis.passes import LLVMPasses
    from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
    from tinyexplore.explore.notebook.explorer_view import ExplorerView
    from tinyexplore.explore.tracefile.model import Branch, KernelInfo, OptOffer, Program, Run, Search
    from tinyexplore.explore.whatif.opt_steps import OptSteps
    from tinyexplore.widgets import PartWidget


class AvailableOpts(DisplayableResult, tuple[str, ...]):
    """The legal opts of a kernel as text ("UPCAST(0, 4)"). It displays as a table with the effect of each kind.

    offers: all opts by axis, including illegal ones with their legality error.
    """

    offers: tuple[OptOffer, ...]

    def __new__(cls, opts: Iterable[str], offers: tuple[OptOffer, ...] = ()) -> AvailableOpts:
        row = super().__new__(cls, opts)
        row.offers = offers
        return row

    def table(self) -> Table:
        """Returns a table with a row per kind and axis, with all its legal amounts."""
        rows = []
        for offer in self.offers:
            if offer.legality_error:
                continue
            opts = " ".join(opt for opt in self if opt in _list_opts(offer))
            rows.append((opts, offer.caution, OPT_KINDS[OptOps[offer.op]].effects[0].text))
        illegal = sum(bool(offer.legality_error) for offer in self.offers)
        notes = (
            (f"{illegal} other combinations of kind and axis are illegal; `.offers` has the reasons.",)
            if illegal
            else ()
        )
        return Table(
            count_text(len(self), "legal opt"), ("opt", "caution", "effect"), tuple(rows), notes, frozenset(("opt",))
        )


def _list_opts(offer: OptOffer) -> set[str]:
    """Returns the opts of an offer as text."""
    return {str(Opt(OptOps[offer.op], offer.axis, amount)) for amount in offer.amounts}


class KernelView(DisplayableResult):
    """One kernel of a capture, with its analyses and the commands that change it.

    Times are in microseconds. Methods that change the kernel (`apply`, `undo`, `set_opts`, `use_heuristics`, `search`,
    `edit`) return a `Branch`. The next change starts from that branch. The captured kernel stays as it is.
    """

    def __init__(self, view: ExplorerView, number: int) -> None:
        self._view = view
        self.number = number

    def _suggest_instead(self, name: str) -> str:
        return f"; use {KERNEL_REPLACEMENTS[name]}" if name in KERNEL_REPLACEMENTS else ""

    @property
    def info(self) -> KernelInfo:
        """The kernel's row in the trace, as plain data."""
        return self._view.trace.kernels[self.number]

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.info.name

    @property
    def opts(self) -> tuple[str, ...]:
        """The captured opts, in order."""
        return self.info.opts

    @property
    def run(self) -> Run | None:
        """The kernel's samples: median, quartiles and conditions. None if it did not run."""
        return next((run for run in self._view.trace.runs if run.kernel == self.number), None)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of its listings: "uops", "llvm", "c", "asm", …; "aten" for a PyTorch program."""
        return tuple(dict.fromkeys(program.language for program in self._programs))

    @property
    def _programs(self) -> list[Program]:
        trace = self._view.trace
        programs = [program for program in trace.programs if program.kernel == self._owner]
        return programs + [origin for origin in trace.origins if origin.kernel == self.number]

    @property
    def beam(self) -> Search | None:
        """The result of its BEAM search in the capture: the candidates and their times. None without a search."""
        stages = self._view.trace.stages
        return next(
            (stage.search for stage in stages if stage.kernel == self.number and stage.search is not None), None
        )

    @property
    def _analyses(self) -> KernelAnalyses:
        return self._view.capture.analyses

    @property
    def _owner(self) -> int:
        """The kernel whose listings it shares."""
        return self.number if self.info.same_as is None else self.info.same_as

    def listing(self, language: str | None = None) -> str:
        """Returns the text in one of `languages`, by default the first.

        Raises:
            ValueError: the kernel has no such listing.
        """
        for program in self._programs:
            if language in (None, program.language):
                return "\n".join(line.text for line in program.lines)
        raise ValueError(f"kernel {self.number} has no listing {language!r}; it has: {', '.join(self.languages)}")

    # *** analyses ***

    def verdict(self, check: bool = False) -> SpeedVerdict:
        """Returns the verdict on the kernel's speed and its bottleneck: one sentence with numbers from samples and
        models.

        The verdict needs samples (`repeat=10`). This machine's ceilings are measured on first use.

        Args:
            check: whether to try its suggestions too: other opts are compiled and timed, for about a second.
        """
        from tinyexplore.explore.analysis.verdict.kernel_verdicts import kernel_verdict

        speed = kernel_verdict(self._analyses, self.number)
        if check:
            speed = self._analyses.verdicts[self.number] = with_measured_gains(self._view, speed)
        return speed

    def why_opts(self) -> WhyOpts:
        """Explains why the heuristics chose its opts: each decision with its numbers, and the opts without it."""
        from tinyexplore.explore.analysis.explanations.opt_reasons import why_opts

        return why_opts(self._view.trace, self.number)

    def caches(self, opts: Iterable[Opt | str] | None = None, caches: Sequence[Cache] | None = None) -> CacheModel:
        """Models the cache misses of each load and store.

        Args:
            opts: model the kernel with these opts instead of its own; `()` for none.
            caches: model these caches instead of the target's.
        """
        return self._analyses.caches(self.number, opts, caches)

    def memory_stream(self, unit: int | None = None) -> AddressStream:
        """Returns the addresses that each load and store accesses, in order, as multiples of `unit` bytes.

        unit: the number of bytes; by default the size of an element.
        """
        return self._analyses.memory_stream(self.number, unit)

    def throughput(self, branch: Branch | None = None) -> Throughput:
        """Returns the bottleneck of its busiest loop by the model of `llvm-mca`.

        Args:
            branch: analyze the kernel of this branch instead of the captured one.

        Raises:
            ThroughputError: `llvm-mca` is not installed.
        """
        return self._analyses.throughput(self.number, branch)

    def passes(self, level: str = "", without: Iterable[str] = (), cpu: str = "", *, timed: bool = False) -> LLVMPasses:
        """Returns LLVM's passes on the kernel, from the rendered IR to the assembly. A child process compiles it.

        Args:
            level: "O0" to "O3" for LLVM's own pipelines; by default the level that compiled the kernel.
            without: passes to skip, by the names that the table shows: `["instcombine", "licm"]`.
            cpu: the CPU to generate code for, such as "skylake"; by default that of the capture.
            timed: whether to time the kernel under this pipeline alternately with the captured kernel: `.times`.

        Raises:
            ValueError: LLVM does not compile this kernel, or an argument is invalid.
            LLVMPassesError: LLVM rejected the module.
        """
        chosen = tuple(without)
        passes = self._analyses.passes(self.number, level, chosen, cpu)
        if not timed:
            return passes
        from tinyexplore.explore.whatif.pipeline_times import times_of_pipeline

        return passes.with_times(times_of_pipeline(self._analyses, self.number, level, chosen, cpu))

    def gpu(self, registers: int | None = None) -> GPUView:
        """Returns the coalescing, bank conflicts and occupancy of a GPU kernel.

        Args:
            registers: registers per work-item from the compiler's report (`ptxas -v`), instead of an estimate.

        Raises:
            ValueError: this is a CPU kernel.
        """
        return self._analyses.gpu(self.number, registers)

    def translate(self, targets: str | Iterable[str] | None = None) -> LanguageComparison:
        """Returns the kernel in several languages, aligned line by line; see `explore.LanguageComparison`.

        Args:
            targets: languages and machines, such as `["c", "cuda:sm_90"]`; by default one of each language.
        """
        return self._analyses.translate(self.number, targets)

    def debug(self, inputs: Sequence[Any] | str | None = None, **options: Any) -> Debugger:
        """Steps through the kernel, UOp by UOp, forwards and backwards; see `explore.Debugger`.

        Args:
            inputs: contents of its buffers, or "generated"; by default those that `keep_inputs` stored.
            options: `item`, the work-item of a GPU kernel to follow: `{"gidx0": 1, "lidx0": 3}`.
        """
        return self._analyses.debug(self.number, inputs, **options)

    def opt_steps(self, timed: bool = True) -> OptSteps:
        """Returns the kernel's loops and time after each of its opts. Pages that are saved later contain them.

        Args:
            timed: whether to compile and time each step, which takes up to ten seconds.
        """
        from tinyexplore.explore.analysis.requests import RequestSource
        from tinyexplore.explore.whatif.requests import OptStepsOf

        source = RequestSource(lambda: self._view.trace, lambda: self._analyses)
        steps: OptSteps = OptStepsOf(self.number, timed).respond(source)
        return steps

    def reproducer(self, path: str | Path | None = None) -> str:
        """Returns a script that runs and times this kernel without tinyexplore; also write it to `path` if given."""
        from tinyexplore.explore.tracefile.scripts import reproducer

        return reproducer(self._view.trace, self.number, path)

    # *** changes ***

    @property
    def branch(self) -> Branch:
        """The current branch: the result of the last change, or the kernel as captured."""
        from tinyexplore.explore.whatif import commands

        return self._view.whatif.at(self.number) or self._view.whatif.do(commands.AsCaptured(self.number))

    @property
    def branches(self) -> tuple[Branch, ...]:
        """All branches of this kernel, in order."""
        return self._view.whatif.of_kernel(self.number)

    def available_opts(self) -> AvailableOpts:
        """Returns the opts that are legal on the current branch, with the usual amounts."""
        from tinyexplore.explore.whatif.opt_offers import legal_opts

        (variant,) = self._view.whatif.complete_branch(self.branch).kernels
        return AvailableOpts(legal_opts(variant.offers), variant.offers)

    def apply(self, opt: str) -> Branch:
        """Adds one opt: `.apply("UPCAST(0, 4)")`. An illegal opt gives a failed branch with the reason."""
        from tinyexplore.explore.whatif import commands

        return self._view.whatif.do(commands.ApplyOpt(self.number, str(opt)))

    def undo(self) -> Branch:
        """Removes the last opt."""
        from tinyexplore.explore.whatif import commands

        return self._view.whatif.do(commands.UndoOpt(self.number))

    def set_opts(self, opts: str | Iterable[Opt | str] = "") -> Branch:
        """Replaces all opts: `"UPCAST(0, 4), VECTOR(1, 16)"`, or a list; none by default."""
        from tinyexplore.explore.whatif import commands

        text = opts if isinstance(opts, str) else ", ".join(map(str, opts))
        return self._view.whatif.do(commands.SetOpts(self.number, text))

    def use_heuristics(self) -> Branch:
        """Uses the opts of the default schedule."""
        from tinyexplore.explore.whatif import commands

        return self._view.whatif.do(commands.UseHeuristics(self.number))

    def search(self, width: int = 2) -> Branch:
        """Searches for opts by measurement (BEAM of this width). All candidates become branches."""
        from tinyexplore.explore.whatif import commands

        return self._view.whatif.do(commands.SearchOpts(self.number, width))

    def edit_text(self, stage: str = "c", branch: Branch | int | None = None) -> str:
        """Returns the text of a stage ("opts", "uops", "llvm" or "c") on the current branch, for `edit`."""
        return self._view.whatif.text(self.number, stage, branch)

    def edit(self, stage: str, text: str) -> Branch:
        """Replaces the text of a stage, then compiles, runs and compares. `branch.edited` has diagnostics and times."""
        from tinyexplore.explore.whatif import commands

        return self._view.whatif.do(commands.Edit(self.number, stage, text))

    # *** display ***

    def table(self) -> Table:
        """Returns a table with the kernel's description, opts and time."""
        info, run = self.info, self.run
        rows = [
            ("computes", info.title or ", ".join(map(call_text, info.calls))),
            ("opts", " ".join(info.opts) or "none"),
            ("time", _time(self)),
        ]
        if run is not None and run.median_us:
            rows.append(("rate", f"{info.flops / run.median_us / 1e3:.1f} GFLOP/s"))
        rows.append(("listings", ", ".join(self.languages)))
        methods = ", ".join(
            f".{name}" for name in ("why_opts()", "available_opts()", "apply(…)", "caches()", "debug()")
        )
        return Table(f"kernel {self.number}: {info.name}", ("", ""), tuple(rows), (f"Try: {methods}, …",))


def _time(kernel: KernelView) -> str:
    run = kernel.run
    if run is None:
        return no_time_text(kernel.info)
    return f"{duration_text(run.median_us)} ({duration_text(run.low_us)} to {duration_text(run.high_us)})"


class Kernels(DisplayableResult, Sequence[KernelView]):
    """The kernels of a view, in the order of the schedule. It displays as a table.

    An index is a number, a name, or a row of `trace.kernels`. A notebook displays the interactive table, `widget`.
    """

    def __init__(self, view: ExplorerView) -> None:
        self._view = view

    @property
    def widget(self) -> PartWidget:
        """The table of kernels as a widget."""
        widget: PartWidget = self._view.panels.kernels
        return widget

    def __len__(self) -> int:
        return len(self._view.trace.kernels)

    @overload
    def __getitem__(self, key: int | str | KernelInfo) -> KernelView: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[KernelView, ...]: ...

    def __getitem__(self, key: int | str | KernelInfo | slice) -> KernelView | tuple[KernelView, ...]:
        kernels = self._view.trace.kernels
        if isinstance(key, slice):
            return tuple(KernelView(self._view, number) for number in range(*key.indices(len(kernels))))
        if isinstance(key, str):
            number = next((kernel.id for kernel in kernels if kernel.name == key), None)
            if number is None:
                raise KeyError(
                    f"no kernel {key!r}; available: {', '.join(kernel.name for kernel in kernels) or 'none'}"
                )
            return KernelView(self._view, number)
        number = key if isinstance(key, int) else key.id
        number += len(kernels) if number < 0 else 0
        if not 0 <= number < len(kernels):
            raise IndexError(f"kernel {number}: this view has {count_text(len(kernels), 'kernel')}, numbered from 0")
        return KernelView(self._view, number)

    def __iter__(self) -> Iterator[KernelView]:
        return (KernelView(self._view, number) for number in range(len(self)))

    def table(self) -> Table:
        """Returns a table with a row per kernel: number, title, name, opts, time."""
        rows = tuple(
            (
                str(kernel.number),
                kernel.info.title or ", ".join(map(call_text, kernel.info.calls)),
                kernel.name,
                " ".join(kernel.opts) or "none",
                _time(kernel),
            )
            for kernel in self
        )
        columns = ("#", "computes", "kernel", "opts", "time")
        return Table(count_text(len(rows), "kernel"), columns, rows, code=frozenset(("kernel", "opts")))

    def _ipython_display_(self) -> None:
        from IPython.display import display

        try:
            display(self.widget)
        except ImportError:
            display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)


__all__ = ["AvailableOpts", "KernelView", "Kernels"]

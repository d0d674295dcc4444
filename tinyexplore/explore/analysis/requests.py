"""Requests from a view, a page with engine or a script to Python, as data.

A request is a frozen dataclass that `@request(name, response)` adds to the table `REQUESTS`. As JSON it is an object:
`{"ask": "why", "node": 17, "stage": 4}` is `Why(node=17, stage=4)`. Its response is a dataclass, or plain data if no
class is named. A request that fails has the response `{"error": "..."}`. A page without Python stores responses in one
map, whose keys are requests in canonical form (`request_key`).

Other modules register further requests, next to their handlers: `whatif/requests.py`, `live/typed_programs.py`.

`python -m tinyexplore.explore.schema` writes the TypeScript types of both.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.models.caches import CachesData
    from tinyexplore.explore.analysis.models.debugger import Debugger
    from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses
    from tinyexplore.explore.tracefile.trace import Trace

EXPLORER_GONE = "the Explorer of this view no longer exists: assign it to a variable, and display it again"
MAX_ERROR = 2000  # most characters of an exception in a response
MAX_STEPS = 1_000_000  # most steps of one debugger request: half a second, so that a notebook's kernel stays responsive
Data = dict[str, Any]


class RequestError(ValueError):
    """The request is malformed, or cannot be handled here."""


@dataclass
class RequestSource:
    """The data and objects that request handlers use."""

    trace: Callable[[], Trace]
    """Returns the trace that the view shows."""
    analyses: Callable[[], KernelAnalyses | None] = lambda: None
    """Returns the analyses of its kernels, or None."""
    may_run_code: bool = False
    """Whether a request may run Python code that it contains, as in a page with engine."""
    commands: Any = None
    """Runs commands (`whatif.requests.Commands`); None for the Explorer's what-if."""
    opened: Callable[[Any], None] | None = None
    """Called with the Explorer of a program that a request ran; None if no program may run."""
    rerun: Callable[[dict[str, Any], int], int] | None = None
    """Runs the captured program again with further options, and returns the kernel's number in the new capture;
    None if the program cannot run again.
    """
    debuggers: dict[int, Debugger] = field(default_factory=dict)
    """Debuggers in use, by kernel."""
    compared: dict[Caches, CachesData] = field(default_factory=dict)
    """Comparisons of caches, by request."""

    def kernels(self) -> KernelAnalyses:
        """Returns the analyses of the Explorer.

        Raises:
            RequestError: the Explorer no longer exists.
        """
        analyses = self.analyses()
        if analyses is None:
            raise RequestError(EXPLORER_GONE)
        return analyses


class Request:
    """The interface of a request: its name, the class of its response ("module:name", "" for plain data), a handler."""

    name: ClassVar[str]
    response: ClassVar[str]
    background: ClassVar[bool] = False
    """Whether a notebook responds from a background thread, because the request takes long."""

    def respond(self, source: RequestSource) -> Any:
        """Returns the response: a dataclass, or a dict of plain data.

        Raises:
            ValueError, RuntimeError: there is no response; the message has the reason.
        """
        raise NotImplementedError


REQUESTS: dict[str, type[Request]] = {}
_R = TypeVar("_R", bound=type[Request])


def request(name: str, response: str = "") -> Callable[[_R], _R]:
    """Registers a class of requests under `name`. `response` is the class of its responses, "module:name"."""

    def register(cls: _R) -> _R:
        cls.name, cls.response = name, response
        REQUESTS[name] = cls
        return cls

    return register


# *** parsing and responding ***


def from_data(data: Any) -> Request:
    """Returns the request in a JSON object.

    Raises:
        RequestError: the object is no valid request.
    """
    if not isinstance(data, Mapping):
        raise RequestError(f"a request must be a JSON object, found {type(data).__name__}")
    name = data.get("ask")
    if not isinstance(name, str) or name not in REQUESTS:
        raise RequestError(f"unknown request {name!r:.80}; supported: {', '.join(REQUESTS)}")
    cls = REQUESTS[name]
    hints = typing.get_type_hints(cls)
    fields_by_name = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    values = {}
    for key, value in data.items():
        if key == "ask":
            continue
        if key not in fields_by_name:
            raise RequestError(f"{name}: no field {key!r:.80}; supported: {', '.join(fields_by_name) or 'none'}")
        values[key] = _convert(value, hints[key], f"{name}: {key}")
    missing = [key for key, field in fields_by_name.items() if key not in values and field.default is MISSING]
    if missing:
        raise RequestError(f"{name}: {', '.join(missing)} is missing")
    return cls(**values)


def _convert(value: Any, hint: Any, label: str) -> Any:
    """Converts the JSON value `value` to the type `hint`.

    Raises:
        RequestError: the value does not have this type.
    """
    for option in typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,):
        origin, arguments = typing.get_origin(option), typing.get_args(option)
        if origin is tuple and isinstance(value, (list, tuple)):
            return tuple([_convert(item, arguments[0], label) for item in value])
        if origin is dict and isinstance(value, Mapping):
            return {
                _convert(key, arguments[0], label): _convert(item, arguments[1], label) for key, item in value.items()
            }
        if option is Any or (isinstance(option, type) and type(value) is option):
            return value
    type_name = getattr(hint, "__name__", None) or str(hint)
    raise RequestError(f"{label}: expected {type_name}, found {type(value).__name__} {value!r:.60}")


def request_key(request: Request) -> str:
    """Returns a request as a key: JSON with sorted names, without spaces and without fields that have their default."""
    data: Data = {"ask": request.name}
    for request_field in fields(request):  # type: ignore[arg-type]
        value = getattr(request, request_field.name)
        if request_field.default is MISSING or value != request_field.default:
            data[request_field.name] = value
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def to_data(response: Any) -> Data:
    """Returns a response as plain data for JSON. An object with `as_data` defines its own data."""
    shown = response.as_data() if hasattr(response, "as_data") else response
    data: Data = json.loads(json.dumps(shown if isinstance(shown, dict) else asdict(shown)))
    return data


def stored_responses(analyses: KernelAnalyses) -> dict[str, Data]:
    """Returns the responses that the pages of a capture store, by canonical request."""
    responses = {}
    for name, values, response in analyses.responses:
        request = REQUESTS[name](**values)
        answer = _compute_caches(analyses, request) if isinstance(request, Caches) else response
        responses[request_key(request)] = to_data(answer)
    return responses


def _compute_caches(analyses: KernelAnalyses, request: Caches) -> CachesData:
    """Returns the response for a page; only the side `after` if modeling `before` would take too long."""
    from tinyexplore.explore.analysis.models.caches import TooManyAccessesError
    from tinyexplore.explore.analysis.models.panel_data import caches_data

    try:
        return caches_data(analyses, request.kernel, request.before, request.after)
    except TooManyAccessesError:
        return caches_data(analyses, request.kernel, request.after, request.after)


def is_for_background(data: Any) -> bool:
    """Whether a notebook responds to this request from a background thread."""
    kind = REQUESTS.get(str(data.get("ask"))) if isinstance(data, Mapping) else None
    return kind is not None and kind.background


def respond(source: RequestSource, data: Any) -> Data:
    """Returns the response to a request, both as data. Errors do not raise: they are responses, too."""
    try:
        return to_data(from_data(data).respond(source))
    except (ValueError, RuntimeError) as error:
        text = str(error) or type(error).__name__
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return {"error": text[:MAX_ERROR]}


# *** requests that need only a trace ***


@request("why", "tinyexplore.explore.analysis.explanations.rules:WhyNot")
@dataclass(frozen=True)
class Why(Request):
    """The rules at a node: which fired, which could fire, and what prevents the others.

    node: the node.
    stage: the pass, None for any.
    step: the number of finished steps, None for all.
    rule: the only rule to try, None for all.
    """

    node: int
    stage: int | None = None
    step: int | None = None
    rule: str | None = None

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.analysis.explanations.rules import explainer

        explanations = explainer(source.trace())
        stage, step = (self.stage, self.step) if self.stage is not None else explanations.find_step(self.node)
        return explanations.why_not(self.node, stage, step, self.rule)


@request("why kernels", "tinyexplore.explore.tracefile.fusions:WhyKernels")
@dataclass(frozen=True)
class WhyTwoKernels(Request):
    """Why two LazyBuffers share a kernel, or do not.

    a: the first LazyBuffer.
    b: the second LazyBuffer.
    """

    a: int
    b: int

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.tracefile.fusions import why_kernels

        return why_kernels(source.trace(), self.a, self.b)


@request("shape", "tinyexplore.explore.analysis.shapes.view:ShapeData")
@dataclass(frozen=True)
class Shape(Request):
    """Where the elements of a node lie in memory, after further `moves`: names and arguments of movements."""

    node: int | None = None
    moves: tuple[Any, ...] = ()

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.analysis.shapes.trace_shapes import shape_data

        return shape_data(source.trace(), self.node, self.moves)


# *** requests that need runnable kernels ***


@request("debug", "tinyexplore.explore.analysis.models.panel_data:DebuggerState")
@dataclass(frozen=True)
class Debug(Request):
    """Run a command of a kernel's debugger; the response is its state.

    kernel: the number of the kernel.
    do: "look", "step", "back", "run to", "run until", "iteration", "restart", "finish", or "generated" (begin with
        generated inputs).
    count: the number of steps.
    line: the line of the listing, None for none.
    condition: see `conditions.py`; "" for none.
    counters: loop counters by name, None for none.
    lane: the only lane of a vector to show, None for all.
    """

    kernel: int = 0
    do: str = "look"
    count: int = 1
    line: int | None = None
    condition: str = ""
    counters: dict[str, int] | None = None
    lane: int | None = None

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.analysis.models.panel_data import debugger_data, row_widths

        if self.do == "run to" and self.line is None:
            raise RequestError('debug: "run to" needs a line')
        explorer = source.kernels()
        if self.do == "generated":
            source.debuggers[self.kernel] = explorer.debug(self.kernel, "generated")
        if self.kernel not in source.debuggers:
            source.debuggers[self.kernel] = explorer.debug(self.kernel)
        debugger = source.debuggers[self.kernel]
        debugger.most_steps = MAX_STEPS
        self._carry_out(debugger)
        return debugger_data(debugger, row_widths(explorer.trace, self.kernel), self.lane)

    def _carry_out(self, debugger: Debugger) -> None:
        match self.do:
            case "step":
                debugger.step(self.count)
            case "back":
                debugger.back(self.count)
            case "run to":
                debugger.run_to(self.line or 0)
            case "run until":
                debugger.run_until(self.condition)
            case "iteration":
                debugger.iteration(**(self.counters or {}))
            case "restart":
                debugger.restart()
            case "finish":
                debugger.finish()


@request("again")
@dataclass(frozen=True)
class RunAgain(Request):
    """Runs the captured program again; the view then shows the new capture, and the response has the kernel's number in
    it.

    kernel: number in the present capture.
    keep_inputs: whether to store the kernels' inputs, for the debugger.
    repeat: samples of each launch; 0: as before.
    """

    kernel: int = 0
    keep_inputs: bool = False
    repeat: int = 0

    def respond(self, source: RequestSource) -> Any:
        if source.rerun is None:
            raise RequestError(
                "this program cannot run again here; only a function that `explore` called can, in its notebook"
            )
        options: dict[str, Any] = {}
        if self.keep_inputs:
            options["keep_inputs"] = True
        if self.repeat:
            options["repeat"] = self.repeat
        return {"kernel": source.rerun(options, self.kernel)}


@request("caches", "tinyexplore.explore.analysis.models.caches:CachesData")
@dataclass(frozen=True)
class Caches(Request):
    """The caches under a kernel with the opts `before` and those `after`, side by side; None: the opts as captured."""

    kernel: int = 0
    before: tuple[str, ...] | None = ()
    after: tuple[str, ...] | None = None

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.analysis.models.panel_data import caches_data

        explorer = source.kernels()
        if self not in source.compared:
            source.compared[self] = caches_data(explorer, self.kernel, self.before, self.after)
        explorer.responses.compare(self.kernel, self.before, self.after)
        return source.compared[self]


@request("gpu", "tinyexplore.explore.analysis.models.gpu:GPUData")
@dataclass(frozen=True)
class GPU(Request):
    """The grid of a GPU kernel, the accesses of a warp, and the occupancy.

    kernel: the number of the kernel.
    target: a GPU ("sm_80") for which the kernel is compiled first; "" for the captured one.
    """

    kernel: int = 0
    target: str = ""

    def respond(self, source: RequestSource) -> Any:
        return source.kernels().gpu(self.kernel, target=self.target)


@request("throughput", "tinyexplore.explore.analysis.models.throughput:ThroughputData")
@dataclass(frozen=True)
class ThroughputOf(Request):
    """The bottleneck of the busiest loop of a kernel.

    kernel: the number of the kernel.
    branch: the branch that has it, None for the kernel as captured.
    """

    kernel: int = 0
    branch: int | None = None

    def respond(self, source: RequestSource) -> Any:
        explorer = source.kernels()
        branch = None if self.branch is None else explorer.trace.branches[self.branch]
        return explorer.throughput(self.kernel, branch)


@dataclass(frozen=True)
class PipelineRequest(Request):
    """A request about a kernel under a pipeline of LLVM.

    kernel: the number of the kernel.
    level: "O0" to "O3", "" for the level that compiled the kernel.
    without: the passes to skip.
    cpu: the CPU to generate code for, "" for that of the capture.
    """

    background: ClassVar[bool] = True

    kernel: int = 0
    level: str = ""
    without: tuple[str, ...] = ()
    cpu: str = ""


@request("passes", "tinyexplore.explore.analysis.passes.passes_data:PassesData")
@dataclass(frozen=True)
class PassesOfLLVM(PipelineRequest):
    """LLVM's passes over a kernel."""

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.analysis.passes.passes_data import passes_data

        passes = source.kernels().passes(self.kernel, self.level, self.without, self.cpu)
        return passes_data(passes, self.kernel)


@request("verdicts", "tinyexplore.explore.analysis.verdict.kernel_verdicts:VerdictList")
@dataclass(frozen=True)
class Verdicts(Request):
    """The bottleneck of each kernel, and of the program."""

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.analysis.verdict.kernel_verdicts import verdict_list

        return verdict_list(source.kernels())


@request("rosetta", "tinyexplore.explore.analysis.comparisons.language_comparison:LanguageComparisonData")
@dataclass(frozen=True)
class Translations(Request):
    """A kernel in other languages, or for other machines; see `KernelView.translate`.

    kernel: the number of the kernel.
    targets: languages and machines, None for the usual ones.
    """

    kernel: int = 0
    targets: str | tuple[str, ...] | None = None

    def respond(self, source: RequestSource) -> Any:
        return source.kernels().translate(self.kernel, self.targets)

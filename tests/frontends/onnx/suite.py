"""The backend suite of the ONNX standard, run by this package: `python -m tests.frontends.onnx.suite [WORD …]`.

The suite is in the `onnx` wheel: about 2,000 small models with inputs and the outputs that the standard asks for, and
the tolerances of their comparison. Prints what failed and why; WORD: only tests whose name has it.
"""

from __future__ import annotations

import collections
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinyexplore.frontends.onnx import UnsupportedOperator, load
from tinyexplore.tensor import Tensor

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
SECONDS = 60  # for one test


@dataclass(frozen=True)
class Outcome:
    """How one test ended.

    Attributes:
        name: of the test.
        kind: "passed", "unsupported" (an UnsupportedOperator), "differs" (other numbers), or "error".
        reason: what was missing or different.
    """

    name: str
    kind: str
    reason: str = ""


def cases() -> list[Any]:
    """The test cases, in the suite's order."""
    from onnx.backend.test import loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for kind in KINDS for case in loader.load_model_tests(kind=kind)]


def model_and_data(case: Any) -> tuple[Any, Iterator[tuple[list[Any], list[Any]]]]:
    """The model, and pairs of inputs and expected outputs."""
    import onnx

    if case.model is not None:
        return case.model, ((inputs, outputs) for inputs, outputs in case.data_sets)
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")

    def sets() -> Iterator[tuple[list[Any], list[Any]]]:
        for data in sorted(folder.glob("test_data_set*")):
            yield tuple(  # type: ignore[misc]
                [_read(path, item) for path, item in zip(_numbered(data, kind), declared)]
                for kind, declared in (("input", model.graph.input), ("output", model.graph.output))
            )

    return model, sets()


def _numbered(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))


def _read(path: Path, declared: Any) -> Any:
    import onnx

    kind = declared.type.WhichOneof("value")
    proto = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(kind, onnx.TensorProto)()
    proto.ParseFromString(path.read_bytes())  # type: ignore[attr-defined]
    return proto


def value_of(item: Any) -> Any:
    """An input or output of the suite as an array, a list of them, or None."""
    import onnx
    from onnx import numpy_helper

    if isinstance(item, onnx.TensorProto):
        return numpy_helper.to_array(item)
    if isinstance(item, onnx.SequenceProto):
        return numpy_helper.to_list(item)
    if isinstance(item, onnx.OptionalProto):
        return numpy_helper.to_optional(item)
    return item


def run(case: Any) -> Outcome:
    """Runs one test."""
    try:
        with limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proto, sets = model_and_data(case)
            model = load(proto)
            names = [item.name for item in model.inputs]
            for inputs, expected in sets:
                given = dict(zip(names, map(value_of, inputs)))
                outputs = model(**given)
                found = outputs if isinstance(outputs, tuple) else (outputs,)
                if len(found) != len(expected):
                    return Outcome(case.name, "differs", f"{len(found)} outputs for {len(expected)}")
                for value, item in zip(found, expected):
                    if problem := difference(value, value_of(item), case.rtol, case.atol):
                        return Outcome(case.name, "differs", problem)
    except UnsupportedOperator as error:
        return Outcome(case.name, "unsupported", str(error).partition(" (node: ")[0])
    except Exception as error:
        return Outcome(case.name, "error", f"{type(error).__name__}: {error}")
    return Outcome(case.name, "passed")


def difference(found: Any, expected: Any, rtol: float, atol: float) -> str:
    """How a value differs from what is expected; "" if it does not."""
    if expected is None or found is None:
        return "" if expected is None and found is None else f"{found!r} for {expected!r}"
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return "another sequence"
        return next(filter(None, (difference(a, b, rtol, atol) for a, b in zip(found, expected))), "")
    expected = np.asarray(expected)
    dtype = found.dtype.name if isinstance(found, Tensor) else str(found.dtype)
    wanted = {"float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2"}.get(str(expected.dtype), str(expected.dtype))
    if dtype != wanted:
        return f"dtype {dtype} for {wanted}"
    array = found.numpy() if isinstance(found, Tensor) else np.asarray(found)
    if array.shape != expected.shape:
        return f"shape {array.shape} for {expected.shape}"
    if expected.dtype.kind not in "iub":
        array, expected = array.astype(np.float64), expected.astype(np.float64)
    try:
        np.testing.assert_allclose(array, expected, rtol=rtol, atol=atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:150]
    return ""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError inside the block after `seconds`; in the main thread only."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> None:
    words = sys.argv[1:]
    outcomes = [run(case) for case in cases() if not words or any(word in case.name for word in words)]
    for outcome in outcomes:
        if outcome.kind != "passed":
            print(f"{outcome.kind:12} {outcome.name}: {outcome.reason[:200]}")
    print(collections.Counter(outcome.kind for outcome in outcomes))


if __name__ == "__main__":
    main()

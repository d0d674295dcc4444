"""The course: checks of its exercises (`check("1.1", answer)` grades an answer), and copies of its notebooks.

The notebooks call `check`. Its expectations are here and not in the notebooks, where a reader would see them. Under
nbgrader a wrong answer raises an exception, because nbgrader counts exceptions.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from math import isclose
from numbers import Real
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tinyexplore.util.config import environment_with

Grader = Callable[[Any], str]

GRADERS: dict[str, Grader] = {}


class WrongAnswer(Exception):
    """Raised for an answer that is not right yet. The message is a hint."""


def check(exercise: str, answer: Any) -> None:
    """Grades an answer, and prints the result.

    Args:
        exercise: its number, such as "1.1".
        answer: the requested answer. `...` means that there is no answer yet.

    Raises:
        ValueError: no exercise has this number.
        WrongAnswer: the answer is wrong, and nbgrader runs the notebook.
    """
    if exercise not in GRADERS:
        raise ValueError(f"there is no exercise {exercise}; supported: {', '.join(sorted(GRADERS, key=_position_of))}")
    is_graded = "NBGRADER_EXECUTION" in environment_with()
    try:
        if answer is ...:
            raise WrongAnswer("no answer yet. Replace the dots above, then run both cells again.")
        try:
            explanation = GRADERS[exercise](answer)
        except (WrongAnswer, KeyboardInterrupt):
            raise
        except Exception as error:  # an answer can be any Python value, and can fail in any way
            raise WrongAnswer(f"Checking your answer raised {type(error).__name__}: {error}") from error
        print(f"{exercise}: right. {explanation}")
    except WrongAnswer as hint:
        if is_graded:
            raise
        print(f"{exercise}: {hint}" if answer is ... else f"{exercise}: not yet. {hint}")


def _position_of(exercise: str) -> tuple[int, ...]:
    """Returns the exercise's position in the course."""
    return tuple(int(part) for part in exercise.split("."))


def _grades(exercise: str) -> Callable[[Grader], Grader]:
    """Adds a function to the graders. It returns the explanation, or raises WrongAnswer with a hint."""

    def add(grader: Grader) -> Grader:
        GRADERS[exercise] = grader
        return grader

    return add


def _require(condition: bool, hint: str) -> None:
    if not condition:
        raise WrongAnswer(hint)


def _count_kernels(program: Any) -> int:
    """Returns the number of kernels that a function without arguments compiles to. Its result is realized."""
    from tinyexplore.explore import explore

    _require(callable(program), "The answer is a function without arguments, such as `lambda: x + 1`.")
    return len(explore(program, repeat=1).trace.kernels)


def _are_near(result: Any, expected: list[float]) -> bool:
    """Whether two lists have equal numbers, up to rounding. Works without NumPy, like part 1 of the course."""
    return len(result) == len(expected) and all(isclose(*pair, rel_tol=1e-4) for pair in zip(result, expected))


def _is_word(answer: Any, word: str) -> bool:
    """Whether an answer is this text, ignoring case and spaces."""
    return isinstance(answer, str) and "".join(answer.split()).lower() == "".join(word.split()).lower()


# *** copies of the notebooks ***

COPIES = ".tinyexplore-course.json"  # a file in a copy of the course: the digest of each file as it was copied
DOCUMENTS = "docs"  # the folder of documents, in a copy and in a wheel; in a checkout it is beside the notebooks


def course_folder() -> Path:
    """Returns the folder with the course's notebooks, in the checkout or in the installed package.

    Raises:
        FileNotFoundError: the package was installed without them.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "static" / "notebooks", package.parent / "notebooks"):
        if (folder / "README.md").is_file():
            return folder
    raise FileNotFoundError(f"the course's notebooks are neither in {package / 'static'} nor in {package.parent}")


def copy_course(source: Path, folder: Path) -> list[str]:
    """Copies the notebooks, and the files that they read, into a folder. Files that the reader edited stay unchanged.

    Args:
        source: the folder with the course.
        folder: the destination; created if it does not exist. Nothing happens if it is `source`.

    Returns:
        The names of edited files of which `source` has another version.
    """
    if folder.resolve() == source.resolve():
        return []
    folder.mkdir(exist_ok=True)
    record = folder / COPIES
    copied: dict[str, str] = json.loads(record.read_text("utf-8")) if record.is_file() else {}
    edited = []
    for name, content in _read_copy(source).items():
        copy, new = folder / name, _digest(content)
        if copy.exists() and _digest(copy.read_bytes()) not in (new, copied.get(name)):
            if copied.get(name) != new:
                edited.append(name)
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        copied[name] = new
    record.write_text(json.dumps(copied, indent=1), encoding="utf-8")
    return edited


def _read_copy(source: Path) -> dict[str, bytes]:
    """Returns the files of a copy of the course, by name. It has the documents that lessons link in its own folder
    `docs`."""
    files: dict[str, bytes] = {}
    documents: set[str] = set()
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        name = file.relative_to(source).as_posix()
        if name.startswith(".") or "/." in name:
            continue  # checkpoints of JupyterLab
        content = file.read_bytes()
        if name.endswith((".md", ".ipynb")) and not name.startswith(f"{DOCUMENTS}/"):
            documents.update(link.decode() for link in re.findall(rb"\]\(\.\./docs/([^)#]+)", content))
            content = content.replace(b"](../docs/", b"](docs/")
        files[name] = content
    for name in sorted(documents):
        paths = (source / DOCUMENTS / name, source.parent / DOCUMENTS / name)
        text = next(path.read_text("utf-8") for path in paths if path.is_file())
        files[f"{DOCUMENTS}/{name}"] = _remove_local_links(text).encode()
    return files


def _remove_local_links(text: str) -> str:
    """Returns a document without links to documents that are not copied with it. Their names stay."""
    return re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", text)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# *** part 1: what happens ***


@_grades("1.1")
def _grade_kernels_of_layer_norm(answer: Any) -> str:
    from tinyexplore.tensor import Tensor

    x = Tensor.rand(64, 48).realize()
    _require(answer == _count_kernels(lambda: x.layernorm() * 2), "Explore the line, and count the kernels.")
    return "Both reductions and the scale share one kernel: they go over the same row."


@_grades("1.2")
def _grade_three_kernels(answer: Any) -> str:
    count = _count_kernels(answer)
    _require(count == 3, f"This line becomes {count} kernels. A product whose result is read many times ends a kernel.")
    return "Three kernels: two values got memory of their own."


@_grades("2.1")
def _grade_kernels_of_total(answer: Any) -> str:
    from tinyexplore.device import Device
    from tinyexplore.tensor import Tensor

    size = 32 if Device.DEFAULT == "PYTHON" else 2048  # as in the lesson, and in its copy for the interpreter
    x = Tensor.empty(size, size)
    count = len((x - x.mean()).sum().schedule())
    _require(answer == count, "Count them with GlobalCounters.reset() and GlobalCounters.kernel_count.")
    if count == 1:
        return "It runs 1. Its first loop gives the mean, and its second loop needs that."
    return f"It runs {count}: the mean must be known before the first difference."


@_grades("2.2")
def _grade_spread(answer: Any) -> str:
    from tinyexplore.tensor import Tensor
    from tinyexplore.util import GlobalCounters

    values = [[1 + (7 * row + 13 * column) % 71 / 71 for column in range(70)] for row in range(30)]
    rows = Tensor(values).realize()
    before = GlobalCounters.kernel_count
    result = answer(rows)
    _require(isinstance(result, Tensor), "The function returns a Tensor.")
    result.realize()
    count = GlobalCounters.kernel_count - before
    expected = [(max(row) - min(row)) / (sum(row) / 70) for row in values]
    is_equal = result.shape == (30,) and _are_near(result.tolist(), expected)
    _require(is_equal, "The numbers differ from those of slow_spread.")
    _require(count == 1, f"It runs {count} kernels. Which values need no memory?")
    return "One kernel has all three reductions, and nothing is stored in between."


@_grades("3.1")
def _grade_strides_and_offset(answer: Any) -> str:
    strides, offset = answer
    _require(tuple(strides) == (1, 6), "A transpose exchanges the strides (6, 1).")
    _require(offset == 1, "The part begins at index 1 of an axis with stride 1.")
    return "A transpose and a part changed three numbers, and no data."


@_grades("3.2")
def _grade_windows(answer: Any) -> str:
    shape, strides = answer
    _require(tuple(shape) == (6, 3), "Eight numbers have six windows of three.")
    _require(
        tuple(strides) == (1, 1), "One step to the next window moves by one number, and so does a step inside one."
    )
    return "Windows overlap in memory. This is how a convolution reads its input."


@_grades("4.1")
def _grade_kernels_of_variance(answer: Any) -> str:
    from tinyexplore.tensor import Tensor

    x = Tensor.rand(64, 100).realize()
    count = _count_kernels(lambda: ((x - x.mean(1, keepdim=True)) ** 2).mean(1))
    _require(answer == count, "Explore the line. Both means go over the same rows.")
    return "Both reductions go over the same row."


@_grades("4.2")
def _grade_two_kernels(answer: Any) -> str:
    count = _count_kernels(answer)
    _require(count == 2, f"It becomes {count} kernel{'s' * (count != 1)}. Which value should get memory?")
    result, x = answer(), getattr(answer, "__globals__", {}).get("x")  # the `x` of the notebook
    hint = "The result is the variance of each of the 64 rows."
    _require(result.shape == (64,) and result.min().item() >= 0, hint)
    if x is not None and x.shape[:1] == (64,):
        _require(_are_near(result.tolist(), x.var(1, correction=0).tolist()), hint)
    return "contiguous() is a cut that you write."


@_grades("5.1")
def _grade_loops_of_sum(answer: Any) -> str:
    _require(tuple(answer) == (2, 1), "Print loop_nest(kernel_of(a.sum(axis=1)).ast).")
    return "One loop over the rows, and one that adds up."


@_grades("5.2")
def _grade_row_maxima(answer: Any) -> str:
    a = [[-0.5 - (3 * row + k) % 7 for k in range(4)] for row in range(5)]
    b = [[0.25 + (5 * k + column) % 6 for column in range(3)] for k in range(4)]
    maxima = answer(a, b)
    if maxima is ...:
        raise WrongAnswer("The function returns a list with one number for each row of a.")
    expected = [max(sum(x * y for x, y in zip(row, column)) for column in zip(*b)) for row in a]
    _require(_are_near(maxima, expected), "The numbers differ. All sums may be negative: begin with -inf.")
    return "No matrix is in memory: each sum is used once."


@_grades("6.1")
def _grade_largest_j(answer: Any) -> str:
    _require(answer == 11, "j % 12 is j as long as j is below 12.")
    return "The range of an index is the condition of the rule."


@_grades("6.2")
def _grade_add_self(answer: Any) -> str:
    _require(answer(("add", "i", "i")) == ("mul", 2, "i"), "add i i should become mul 2 i.")
    nested = ("mul", "i", ("add", "j", 1))
    _require(
        answer(("add", nested, nested)) == ("mul", 2, nested), "The pattern holds for any tree x, not for names only."
    )
    for other in (("add", "i", "j"), ("mul", "i", "i"), "i", 3):
        _require(answer(other) is None, f"The rule must decline {other!r}: return None.")
    return "The pattern names the same tree twice."


# *** part 2: why it is fast or slow ***


def _require_close(answer: Any, expected: float, hint: str) -> None:
    _require(isinstance(answer, Real) and abs(float(answer) - expected) <= 0.01 * abs(expected), hint)


@_grades("7.1")
def _grade_operations_per_byte(answer: Any) -> str:
    _require_close(answer, 200, "2·N³ operations on 3·N² numbers of 4 bytes.")
    return "The intensity grows with N, so a large product can be limited by arithmetic."


@_grades("7.2")
def _grade_most_rows(answer: Any) -> str:
    _require(answer != 7, "That holds for 8 ways. Here a line may be anywhere in the cache: ways=64.")
    _require(answer != 64, "The results need a line, too: count the misses with 63 and with 64 rows.")
    _require(answer == 63, "A column of n rows lies on n lines, because a row is longer than a line.")
    return "One line more than the cache holds, and every access misses."


@_grades("8.1")
def _grade_registers_left(answer: Any) -> str:
    _require(answer == 4, "The tile has 6 · 2 sums, each in a register of its own.")
    return "Two for the vectors of b, one for the number of a, one to spare."


@_grades("8.2")
def _grade_best_tile(answer: Any) -> str:
    rows, vectors = answer
    _require(all(size == int(size) and size > 0 for size in answer), "Rows and vectors are whole numbers above 0.")
    _require(rows * vectors <= 30, "It has more than 30 sums.")
    _require((rows + vectors) / (rows * vectors) <= 11 / 30 + 1e-9, "Another tile needs fewer loads.")
    return "A tile as square as possible needs the fewest loads."


@_grades("9.1")
def _grade_ten_times(answer: Any) -> str:
    from tinyexplore.explore import explore
    from tinyexplore.tensor import Tensor

    _require(isinstance(answer, str) and "THREAD" not in answer, "Give the opts as text, without THREAD.")
    a, b = Tensor.rand(192, 192).realize(), Tensor.rand(192, 192).realize()
    kernel = explore(lambda: a @ b, noopt=1, repeat=3).kernels[0]
    plain, tuned = kernel.set_opts(), kernel.set_opts(answer)
    _require(tuned.status == "done", tuned.reason)
    before, after = plain.kernels[0].median_us, tuned.kernels[0].median_us
    if before is None or after is None:
        reason = plain.kernels[0].note or tuned.kernels[0].note or "this machine cannot run it"
        raise WrongAnswer(f"The kernel with these opts was not timed: {reason}.")
    gain = before / after
    _require(gain >= 10, f"They make it {gain:.1f} times as fast. Try a wider vector, or more rows.")
    return f"{gain:.0f} times as fast as the plain loops."


@_grades("9.2")
def _grade_multiply_adds_per_float(answer: Any) -> str:
    _require_close(answer, 192 / 38, "One step of k loads 6 floats of a and 32 of b.")
    return "The plain loop does one multiply-add for two floats."


@_grades("10.1")
def _grade_milliseconds(answer: Any) -> str:
    _require_close(answer, 24, "Two arrays are read and one is written, of 4 bytes a number.")
    return "The operations do not matter."


@_grades("10.2")
def _grade_amdahl(answer: Any) -> str:
    _require_close(answer, 4, "The quarter takes its time, however fast the rest is.")
    return "This is Amdahl's law."


@_grades("11.1")
def _grade_kind_of_large_product(answer: Any) -> str:
    _require(_is_word(answer, "compute"), "How many operations does it do for each byte?")
    return "Hundreds of operations for each byte: only arithmetic can limit it."


@_grades("11.2")
def _grade_sorted_gather(answer: Any) -> str:
    import numpy as np

    from tinyexplore.tensor import Tensor

    table = Tensor.rand(1000).realize()
    indices = np.random.default_rng(1).integers(0, 1000, 300)
    gathered, read = _record_reads(table, lambda: answer(table, indices.copy()))
    if gathered is ...:
        raise WrongAnswer("The function returns a Tensor.")
    _require(np.array_equal(gathered.numpy(), table.numpy()[indices]), "The result must be table[places], in order.")
    _require(read != [], "Read the table with table[…].")
    _require(
        all((np.diff(indices) >= 0).all() for indices in read),
        "The result is right, but the table is not read in order.",
    )
    return "The table is read in order. The second gather stays within a smaller array."


def _record_reads(table: Any, work: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """Returns the result of `work`, and the indices by which it reads `table`, as arrays."""
    from unittest.mock import patch

    import numpy as np

    from tinyexplore.tensor import Tensor

    read: list[Any] = []
    index, gather = Tensor.__getitem__, Tensor.gather

    def record(indices: Any) -> None:
        read.append(indices.numpy() if isinstance(indices, Tensor) else np.asarray(indices))

    def recorded_index(self: Any, indices: Any) -> Any:
        if self is table:
            record(indices)
        return index(self, indices)

    def recorded_gather(self: Any, dim: int, indices: Any) -> Any:
        if self is table:
            record(indices)
        return gather(self, dim, indices)

    with patch.object(Tensor, "__getitem__", recorded_index), patch.object(Tensor, "gather", recorded_gather):
        return work(), read


@_grades("12.1")
def _grade_candidates(answer: Any) -> str:
    _require(answer == 600, "Each round tries the changes of each of the best candidates.")
    return "Trying all sequences would be 25⁶."


@_grades("12.2")
def _grade_few_steps(answer: Any) -> str:
    from tinyexplore.device import Device
    from tinyexplore.kernel import Kernel, Opt, OptOps, apply_opt
    from tinyexplore.tensor import Tensor

    item = (Tensor.rand(24, 16).realize() @ Tensor.rand(16, 8).realize()).schedule()[-1]
    kernel = Kernel.of(item.ast, Device[item.device].target)
    cost = answer(kernel)
    if cost is ...:
        raise WrongAnswer("The function returns a number.")
    _require(cost == 24 * 16 * 8, "Multiply the sizes of the loops that remain.")
    shorter = apply_opt(kernel, Opt(OptOps.UPCAST, axis=0, amount=4))
    _require(answer(shorter) == cost / 4, "After UPCAST(0, 4) a quarter of the steps remains.")
    return "A search optimizes a cost model literally: this one unrolls all that it may."


# *** part 3: down and up ***


@_grades("13.1")
def _grade_chooses_registers(answer: Any) -> str:
    _require(_is_word(answer, "greedy"), "Two of the three work on LLVM IR, which has any number of registers.")
    return "The greedy register allocator works on machine instructions, near the end."


@_grades("13.2")
def _grade_eliminate(answer: Any) -> str:
    before = [
        ("a", "*", "x", "y"),
        ("b", "*", "x", "y"),
        ("c", "+", "a", "z"),
        ("d", "+", "b", "z"),
        ("e", "*", "d", "c"),
    ]
    after = answer(list(before))
    if after is ...:
        raise WrongAnswer("The function returns a list of assignments.")
    expected = [("a", "*", "x", "y"), ("c", "+", "a", "z"), ("e", "*", "c", "c")]
    _require([tuple(pair) for pair in after] == expected, f"{before} should become {expected}.")
    different = [("a", "*", "x", "y"), ("b", "+", "x", "y")]
    _require(
        [tuple(pair) for pair in answer(list(different))] == different, f"In {different} nothing is computed twice."
    )
    return "Later uses of a removed name are renamed."


@_grades("14.1")
def _grade_segments_and_share(answer: Any) -> str:
    segments, share = answer
    _require(segments == 8, "The lanes span 32 · 2 · 4 bytes.")
    _require(share == 0.5, "Every other number of a segment is used.")
    return "A stride of two wastes half of the bytes."


@_grades("14.2")
def _grade_ways(answer: Any) -> str:
    _require(tuple(answer) == (32, 1), "The bank of a word is its number modulo 32.")
    return "One word of padding moves each row to the next bank."


@_grades("15.1")
def _grade_lane_and_register(answer: Any) -> str:
    from tinyexplore.explore import tensor_cores

    elements = tensor_cores("sm_80").elements("mma_m16n8k16_f16")
    (element,) = [entry for entry in elements if (entry.matrix, entry.row, entry.column) == ("A", 9, 4)]
    _require(tuple(answer) == (element.lanes[0], element.register), "Search `elements` for row 9 and column 4 of A.")
    return "The layout is arithmetic of the bits of row and column."


@_grades("15.2")
def _grade_core_multiply_adds(answer: Any) -> str:
    total, share = answer
    _require(total == 2048, "Each of the 16 × 8 elements of C adds 16 products.")
    _require_close(share, 2048 / 384, "A has 256 elements and B has 128.")
    return "Each element is used more than five times, without a load in between."


@_grades("16.1")
def _grade_gradient_of_log(answer: Any) -> str:
    derivative = answer("a", "s")
    reciprocal = ("div", 1, "a")
    right = (("div", "s", "a"), ("mul", "s", reciprocal), ("mul", reciprocal, "s"))
    _require(derivative in right, "The slope of log a is 1 / a.")
    return "One rule for one operation."


@_grades("16.2")
def _grade_gradient_of_max(answer: Any) -> str:
    import numpy as np

    from tinyexplore.tensor import Tensor

    values = np.random.default_rng(0).permutation(24).reshape(4, 6).astype(np.float32)
    gradient = answer(values.copy())
    if gradient is ...:
        raise WrongAnswer("The function returns an array of the shape of x.")
    x = Tensor(values, requires_grad=True)
    expected = x.max(axis=1).sum().gradient(x)[0].numpy()
    _require(
        np.array_equal(np.asarray(gradient, dtype=np.float32), expected), "It is 1 at the largest element of each row."
    )
    return "tinyexplore's gradient is the same."


@_grades("17.1")
def _grade_megabytes(answer: Any) -> str:
    _require(answer == 5, "Which two are live together? Where can the third one go?")
    return "C takes A's place."


@_grades("17.2")
def _grade_most_live(answer: Any) -> str:
    from random import Random

    from tinyexplore.execute.memory import LiveRange, lower_bound

    random = Random(1)
    for _ in range(20):
        firsts = [random.randrange(9) for _ in range(6)]
        ranges = [(random.randint(1, 9), first, first + random.randint(0, 4)) for first in firsts]
        most_live = answer(list(ranges))
        if most_live is ...:
            raise WrongAnswer("The function returns a number of bytes.")
        expected = lower_bound([LiveRange(*range_) for range_ in ranges])
        _require(most_live == expected, f"For {ranges} it is {expected}, and yours is {most_live}.")
    return "No plan needs less."


@_grades("18.1")
def _grade_largest_exact(answer: Any) -> str:
    _require(answer == 2048, "Ten stored bits and a leading one.")
    return "2 049 has twelve bits."


@_grades("18.2")
def _grade_safe_logsumexp(answer: Any) -> str:
    import numpy as np

    x = np.array([[1.0, 2.0, 3.0], [1000.0, 1000.0, 999.0], [-1000.0, -1001.0, -1002.0]])
    total = answer(x.copy())
    if total is ...:
        raise WrongAnswer("The function returns one number for each row.")
    expected = np.logaddexp.reduce(x, axis=1)
    _require(np.shape(total) == (3,) and np.allclose(total, expected), f"For {x.tolist()} it is {expected.tolist()}.")
    return "No exponent is above zero."


@_grades("19.1")
def _grade_executions(answer: Any) -> str:
    _require(answer == 2, "The first call runs as usual, and the second is recorded.")
    return "A print in the body would appear twice."


@_grades("19.2")
def _grade_small_jit(answer: Any) -> str:
    bodies, actions = [], []

    def function(act: Callable[[Callable[[], None]], None]) -> None:
        bodies.append(1)
        act(lambda: actions.append("a"))
        act(lambda: actions.append("b"))

    jitted = answer(function)
    for _ in range(5):
        jitted()
    _require(actions == ["a", "b"] * 5, "Each call must carry out both actions once, in order.")
    _require(len(bodies) == 2, f"The body ran {len(bodies)} times. It runs in the first two calls.")
    return "The body ran twice, and the actions five times."


@_grades("20.1")
def _grade_gigabytes(answer: Any) -> str:
    _require_close(answer, 1.75, "2·(n - 1) steps, each with 1/n of the data.")
    return "It is never more than 2, however many devices there are."


@_grades("20.2")
def _grade_axes(answer: Any) -> str:
    _require(
        tuple(answer) == (1, 0), "After w1, each device should have whole hidden values, so that relu needs no others."
    )
    return "Columns, then rows: one all-reduce at the end."


# *** part 4: make it yours ***


@_grades("21.1")
def _grade_holds_for(answer: Any) -> str:
    _require(_is_word(answer, "x >= 0"), "What is -1 / 8 in C, and what is -1 >> 3?")
    return "A shift rounds down, and C's division rounds toward zero."


@_grades("21.2")
def _grade_quotient_and_remainder(answer: Any) -> str:
    from tinyexplore.dtype import dtypes
    from tinyexplore.explore import equivalent
    from tinyexplore.uop import Ops, UOp

    x = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("x", -1000, 1000))
    for value in (1, 7, 8):
        result = answer(x, UOp.const(dtypes.int32, value))
        if result is ...:
            raise WrongAnswer("The function returns the left side of the rule.")
        _require(isinstance(result, UOp), "The function returns a UOp, the left side of the rule.")
        _require({Ops.IDIV, Ops.MOD} <= {node.op for node in result.toposort()}, "The left side has // and %.")
        verdict = equivalent(result, x)
        _require(verdict.holds, f"It is not x, for a = {value}: {verdict}")
    return "C defines the remainder by this law, so it holds for negative numbers, too."


@_grades("22.1")
def _grade_exchange_halves(answer: Any) -> str:
    for n in (2, 6, 8, 10, 64):
        order = [answer(i, n) for i in range(n)]
        if ... in order:
            raise WrongAnswer("The function returns the new counter.")
        _require(order == [*range(n // 2, n), *range(n // 2)], f"For n = {n} the order is {order}.")
    return "Each step happens once."


@_grades("22.2")
def _grade_strip(answer: Any) -> str:
    for n in (8, 12, 64):
        order = [answer(outer, inner, n) for outer in range(4) for inner in range(n // 4)]
        if ... in order:
            raise WrongAnswer("The function returns the index in 0 … n - 1.")
        _require(sorted(order) == list(range(n)), "Each element must be visited once.")
        strips = [position for start in range(4) for position in range(start, n, 4)]
        _require(order == strips, f"It begins with {order[:3]}. The strip is the outer loop.")
    return "Legal, and slower: it jumps in memory."


@_grades("23.1")
def _grade_registers_per_item(answer: Any) -> str:
    _require(answer == 16, "All work-items share the registers.")
    return "With 17, fewer work-items fit."


@_grades("23.2")
def _grade_render(answer: Any) -> str:
    lines = answer([("load", "v0", "x", "i"), ("add", "v1", "v0", 1.0), ("store", "y", "i", "v1")])
    _require(isinstance(lines, (list, tuple)), "The function returns a list of lines.")
    names: dict[str, Any] = {"x": [1.0, 2.0], "y": [0.0, 0.0], "i": 1}
    exec("\n".join(lines), names)
    _require(names["y"] == [0.0, 3.0], f"The lines are {lines}. They should compute y[i] = x[i] + 1.")
    lines = answer([("load", "a", "in1", "k"), ("add", "b", "a", "a"), ("store", "out", "k", "b")])
    names = {"in1": [1.5], "out": [0.0], "k": 0}
    exec("\n".join(lines), names)
    _require(names["out"] == [3.0], f"With other names the lines are {lines}. They should compute out[k] = 2 * in1[k].")
    return "The lines run."


@_grades("24.1")
def _grade_times_each_element(answer: Any) -> str:
    _require(answer == 100, "How many elements of the result read one element of a @ b?")
    return "A scheduler would cut there."


@_grades("24.2")
def _grade_maximum_line(answer: Any) -> str:
    _require(isinstance(answer, str), "Write the line as text.")
    line = "".join(answer.split()).rstrip(";")
    match = re.fullmatch(r"total=fmaxf\((?:total,data1\[(.+)\]|data1\[(.+)\],total)\)", line)
    index = "" if match is None else match[1] or match[2]
    _require(re.fullmatch(r"(?:i0|r0|\d|[+*()])+", index) is not None, "total = fmaxf(total, …);")
    code = compile(index, "index", "eval")
    right = all(eval(code, {"i0": i, "r0": r}) == 5 * i + r for i in range(4) for r in range(5))
    _require(right, f"Row i0 begins at 5 * i0: data1[{index}] is another element.")
    return "Sum and maximum differ by an operation and its neutral element."


@_grades("25.1")
def _grade_multiply_adds_of_a_layer(answer: Any) -> str:
    feed_forward, scores = answer
    tokens = 4 * 10
    _require(feed_forward == tokens * 384 * 1536 * 2, "Two products, each with 384 · 1536 multiply-adds for a token.")
    _require(scores == 4 * 12 * 10 * 10 * 32, "4 sentences · 12 heads · 10 · 10 scores, and 32 multiply-adds for each.")
    return "For short sentences, the products with weights are nearly all of the work."


@_grades("25.2")
def _grade_names_outside(answer: Any) -> str:
    for names in (["aten.i0", "aten.bernoulli", "aten.i0"], [], ["aten.sort"]):
        view = SimpleNamespace(trace=SimpleNamespace(outside=[SimpleNamespace(name=name) for name in names]))
        names_found = answer(view)
        if names_found is ...:
            raise WrongAnswer("`view.trace.outside` has the operations. Each one has a `name`.")
        _require(names_found == sorted(set(names)), f"For the operations {names} the result is {sorted(set(names))}.")
    return "These are the boxes that the compiler cannot open."


@_grades("26.1")
def _grade_gelus_saved(answer: Any) -> str:
    _require(answer == (2048 - 257) * 64, "The table has 257 rows, the input 2,048. Each row has 64 numbers.")
    return "A function of a row of a table can be computed for the table instead."


@_grades("26.2")
def _grade_rows_of_a_table(answer: Any) -> str:
    import numpy as np

    rng = np.random.default_rng(0)
    for shape, count in (((257, 64), 12), ((5, 3), 9)):
        table, indices = rng.normal(size=shape), rng.integers(0, shape[0], count)
        calls: list[int] = []

        def function(rows: Any, calls: list[int] = calls) -> Any:
            calls.append(len(rows))
            return np.tanh(rows)

        result = answer(table, indices, function)
        if result is ...:
            raise WrongAnswer("Apply the function to the table. Then take the rows.")
        _require(np.shape(result) == (count, shape[1]), f"The result has the shape {(count, shape[1])}.")
        _require(np.allclose(result, np.tanh(table)[indices]), "The result is the function of the rows at the indices.")
        _require(sum(calls) == shape[0], f"The function sees {sum(calls)} rows. The table has {shape[0]}.")
    return "The function sees each row of the table once."


@_grades("27.1")
def _grade_divisions(answer: Any) -> str:
    as_written, in_xla = answer
    _require(as_written == 64 * 32, "The formula divides each element of the matrix.")
    _require(in_xla == 64, "`reduce_divide_fusion` has one value for each row.")
    return "A division takes several times as long as a multiplication, and XLA may round differently."


@_grades("27.2")
def _grade_instructions_for_a_row(answer: Any) -> str:
    wide, narrow = answer
    _require(wide == 2, "A register of 512 bits holds 16 floats of 32 bits.")
    _require(narrow == 8, "A register of 128 bits holds 4 floats of 32 bits.")
    return "The width of the registers alone is a factor of 4."


@_grades("28.1")
def _grade_factors(answer: Any) -> str:
    from math import exp

    first, second = answer
    _require_close(first, exp(-2), "The repair is exp(old largest - new largest).")
    _require_close(second, 1, "2 is no new largest number.")
    return "Only a new largest number repairs the sums."


@_grades("28.2")
def _grade_combine(answer: Any) -> str:
    import numpy as np

    rng = np.random.default_rng(0)
    scores, values = rng.normal(size=10) * 5, rng.normal(size=(10, 3))

    def part(low: int, high: int) -> tuple[float, float, Any]:
        weights = np.exp(scores[low:high] - scores[low:high].max())
        return float(scores[low:high].max()), float(weights.sum()), weights @ values[low:high]

    for halves in ((part(0, 4), part(4, 10)), (part(4, 10), part(0, 4))):
        combined = answer(*halves)
        if combined is ...:
            raise WrongAnswer("The function returns (largest, total, sums).")
        _require(len(combined) == 3, "The function returns (largest, total, sums).")
        for state, expected in zip(combined, part(0, 10)):
            _require(np.allclose(state, expected), f"Both halves together are {part(0, 10)}, and yours is {combined}.")
    return "The operation is associative, so any number of threads can share a row."

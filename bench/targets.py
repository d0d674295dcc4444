"""The aims of this project, each with its measured figure.

The aims of kernels are times on one machine (2 cores with AVX-512), each with that machine's limit for the case (see
`Row`). Other machines have other limits, so the compared figure is the time over the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.peers import OURS
from bench.report import Report, Row

PEAK = 532.0  # GFLOP/s of that machine
FLOPS_AIMS = (
    ("matmul, all layouts", 410.0, ("matmul_256",)),
    (
        "matmul, all layouts",
        460.0,
        ("matmul_512", "matmul_1024", "matmul_2048", "matmul_nt_1024", "matmul_tn_1024", "bmm_8x512"),
    ),
    ("convolution", 420.0, ("conv3x3_32x64x56",)),
)
# aim and limit on that machine, in ms
TIME_AIMS = (
    ("attention", (("sdpa_4x8x512x64", 8.0, 4.04),)),
    ("elementwise", (("ew_chain_16M", 6.0, 2.88), ("ew_gelu_16M", 2.3, 1.04), ("ew_add_16M", 1.8, 1.63))),
    (
        "reductions",
        (
            ("sum_16M", 0.48, 0.362),
            ("colsum_4096", 1.1, 0.362),
            ("rowmax_4096", 0.69, 0.362),
            ("argmax_4096", 1.2, 0.362),
        ),
    ),
    ("rows held in cache", (("softmax_4096", 3.6, 1.04), ("layernorm_4096x1024", 0.34, 0.164))),
    ("transposes", (("transpose_4096", 3.7, 1.04), ("permute_nhwc_32x64x56", 0.9, 0.283))),
    ("scans", (("cumsum_4096", 4.0, 1.04), ("cumsum_16M", 5.0, 1.04))),
    ("gather", (("embedding_50kx512", 0.115, 0.069),)),
    (
        "nets",
        (
            ("mlp_adam_128", 1.5, 0.966),
            ("block_fwd_4x256x512", 20.0, 13.1),
            ("block_fwdbwd_4x256x512", 80.0, 39.4),
            ("convnet_adam_64", 20.0, 9.54),
        ),
    ),
)
# aim and the best peer on that machine, in ms: neither arithmetic nor memory limits a sort
PEER_AIMS = (("sort", (("sort_1M", 3.8, 3.84),)),)


SIBLING = ("tinygrad", "tinygrad.llvm", "tinygrad.x86")  # ways of using the engine that runs the same programs
MAX_RATIO_TO_TINYGRAD = 0.5


@dataclass(frozen=True)
class PythonCost:
    """The cost of one operation or kernel in Python, in µs, here and in tinygrad. Each engine is used in its fastest
    way.

    None: not measured.

    what: the operation or kernel.
    ours: tinyexplore's cost.
    theirs: tinygrad's cost.
    """

    what: str
    ours: float | None
    theirs: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.ours is None or self.theirs is None else self.ours / self.theirs

    @property
    def is_met(self) -> bool | None:
        """Whether the cost is at most half of tinygrad's."""
        return None if self.ratio is None else self.ratio <= MAX_RATIO_TO_TINYGRAD


def python_costs(report: Report) -> list[PythonCost]:
    """Return every cost of Python that `report` has for either engine, in its order."""
    cost_of: dict[str, dict[str, float]] = {}
    for entry in report.overhead:
        is_asked = entry["area"] == "Python" and entry["who"] in (*OURS, *SIBLING)
        if is_asked and isinstance(entry["value"], (int, float)):
            cost_of.setdefault(entry["name"], {})[entry["who"]] = entry["value"]
    return [PythonCost(name, _least(costs, OURS), _least(costs, SIBLING)) for name, costs in cost_of.items()]


def _least(costs: dict[str, float], names: tuple[str, ...]) -> float | None:
    return min((costs[name] for name in names if name in costs), default=None)


@dataclass(frozen=True)
class Aim:
    """One aim with its measured figure.

    area: the section of the table.
    name: the row of the table.
    unit: of `aim` and `found`.
    aim: the limit.
    found: the figure, None if not measured.
    at_least: whether `aim` is a lower limit.
    there: the numbers behind the ratio on the machine of the aim.
    here: the numbers behind the ratio on this machine.
    """

    area: str
    name: str
    unit: str
    aim: float
    found: float | None
    at_least: bool = False
    there: str = ""
    here: str = ""

    @property
    def is_met(self) -> bool | None:
        if self.found is None:
            return None
        return self.found >= self.aim if self.at_least else self.found <= self.aim


def aims(report: Report) -> list[Aim]:
    """Return every aim, with its figure in `report`."""
    rows = {row.name: row for row in report.rows if row.ours is not None}
    results = []
    for area, aim, names in FLOPS_AIMS:
        for name in names:
            results.append(_rate_aim(area, name, aim, rows.get(name)))
    for area, triples in TIME_AIMS:
        for name, aim, limit in triples:
            row = rows.get(name)
            results.append(_time_aim(area, name, "limit", aim, limit, row, None if row is None else row.limit))
    for area, triples in PEER_AIMS:
        for name, aim, peer in triples:
            row = rows.get(name)
            best = None if row is None or row.best is None else row.figures[row.best].minimum
            results.append(_time_aim(area, name, "best peer", aim, peer, row, best))
    for entry in report.overhead:
        if entry.get("target") is None or not entry["who"].startswith("tinyexplore"):
            continue
        value = entry["value"] if isinstance(entry["value"], (int, float)) else None
        name = entry["name"] if entry["who"] == "tinyexplore" else f"{entry['name']} ({entry['who']})"
        at_least = entry.get("at_least", False)
        results.append(Aim(entry["area"], name, entry["unit"], entry["target"], value, at_least))
    for cost in python_costs(report):
        if cost.theirs is not None:
            results.append(Aim("Python / tinygrad's", cost.what, "×", MAX_RATIO_TO_TINYGRAD, cost.ratio))
    return results


def _rate_aim(area: str, name: str, aim: float, row: Row | None) -> Aim:
    """Return an aim of a rate. `aim`: in GFLOP/s."""
    there = f"{aim:.0f} of {PEAK:.0f} GFLOP/s"
    if row is None or row.ours is None or row.limit is None:
        return Aim(area, name, "of the limit", aim / PEAK, None, True, there)
    rate, peak = row.flops / row.figures[row.ours].minimum / 1e9, row.flops / row.limit / 1e9
    return Aim(area, name, "of the limit", aim / PEAK, rate / peak, True, there, f"{rate:.0f} of {peak:.0f} GFLOP/s")


def _time_aim(area: str, name: str, of: str, aim: float, base: float, row: Row | None, found: float | None) -> Aim:
    """Return an aim of a time.

    `aim` and `base`: in ms on the machine of the aims. `found`: the counterpart of `base` on this machine, in seconds.
    """
    there = f"{aim:g} of {base:g} ms"
    if row is None or row.ours is None or found is None:
        return Aim(area, name, f"× the {of}", aim / base, None, there=there)
    our_seconds = row.figures[row.ours].minimum
    here = f"{our_seconds * 1e3:.3g} of {found * 1e3:.3g} ms"
    return Aim(area, name, f"× the {of}", aim / base, our_seconds / found, there=there, here=here)


def cases_with_aims() -> list[str]:
    """Return the names of the cases that have an aim."""
    names = [name for _, _, group in FLOPS_AIMS for name in group]
    return names + [name for _, triples in (*TIME_AIMS, *PEER_AIMS) for name, _, _ in triples]

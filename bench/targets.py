"""What this project aims at, and how far it is: each figure beside its aim.

The aims were set on one machine (2 cores with AVX-512, 532 GFLOP/s, 90 GB/s); elsewhere the ratios of the main table
say more.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.peers import OURS
from bench.report import Report

FLOPS_AIMS = (
    ("matmul, all layouts", 410.0, ("matmul_256",)),
    (
        "matmul, all layouts",
        460.0,
        ("matmul_512", "matmul_1024", "matmul_2048", "matmul_nt_1024", "matmul_tn_1024", "bmm_8x512"),
    ),
    ("convolution", 420.0, ("conv3x3_32x64x56",)),
)
TIME_AIMS = (
    ("attention", (("sdpa_4x8x512x64", 8.0),)),
    ("elementwise", (("ew_chain_16M", 6.0), ("ew_gelu_16M", 2.3), ("ew_add_16M", 1.8))),
    ("reductions", (("sum_16M", 0.48), ("colsum_4096", 1.1), ("rowmax_4096", 0.69), ("argmax_4096", 1.2))),
    ("rows held in cache", (("softmax_4096", 3.6), ("layernorm_4096x1024", 0.34))),
    ("transposes", (("transpose_4096", 3.7), ("permute_nhwc_32x64x56", 0.9))),
    ("scans", (("cumsum_4096", 4.0), ("cumsum_16M", 5.0))),
    ("gather, sort", (("embedding_50kx512", 0.115), ("sort_1M", 3.8))),
    (
        "nets",
        (
            ("mlp_adam_128", 1.5),
            ("block_fwd_4x256x512", 20.0),
            ("block_fwdbwd_4x256x512", 80.0),
            ("convnet_adam_64", 20.0),
        ),
    ),
)


SIBLING = ("tinygrad", "tinygrad.llvm", "tinygrad.x86")  # ways of using the engine that the same programs run on
MOST_OF_SIBLING = 0.5


@dataclass(frozen=True)
class PythonCost:
    """What one operation or kernel costs in Python, in µs: here and in tinygrad, each used in its quickest way.

    None where it was not measured.
    """

    what: str
    ours: float | None
    theirs: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.ours is None or self.theirs is None else self.ours / self.theirs

    @property
    def is_met(self) -> bool | None:
        """At most half of theirs."""
        return None if self.ratio is None else self.ratio <= MOST_OF_SIBLING


def python_costs(report: Report) -> list[PythonCost]:
    """Every cost of Python that `report` has of either side, in its order."""
    found: dict[str, dict[str, float]] = {}
    for entry in report.overhead:
        is_asked = entry["area"] == "Python" and entry["who"] in (*OURS, *SIBLING)
        if is_asked and isinstance(entry["value"], (int, float)):
            found.setdefault(entry["name"], {})[entry["who"]] = entry["value"]
    return [PythonCost(what, _least(costs, OURS), _least(costs, SIBLING)) for what, costs in found.items()]


def _least(costs: dict[str, float], names: tuple[str, ...]) -> float | None:
    return min((costs[name] for name in names if name in costs), default=None)


@dataclass(frozen=True)
class Aim:
    """`found` is None where it was not measured."""

    area: str
    name: str
    unit: str
    aim: float
    found: float | None
    at_least: bool = False

    @property
    def is_met(self) -> bool | None:
        if self.found is None:
            return None
        return self.found >= self.aim if self.at_least else self.found <= self.aim


def aims(report: Report) -> list[Aim]:
    """Every aim, with what `report` has of it."""
    best = {row.name: row.figures[row.ours].minimum for row in report.rows if row.ours is not None}
    flops = {row.name: row.flops for row in report.rows}
    found = []
    for area, aim, names in FLOPS_AIMS:
        for name in names:
            rate = flops[name] / best[name] / 1e9 if name in best else None
            found.append(Aim(area, name, "GFLOP/s", aim, rate, at_least=True))
    for area, pairs in TIME_AIMS:
        for name, aim in pairs:
            found.append(Aim(area, name, "ms", aim, best[name] * 1e3 if name in best else None))
    for entry in report.overhead:
        if entry.get("target") is None or not entry["who"].startswith("tinyexplore"):
            continue
        value = entry["value"] if isinstance(entry["value"], (int, float)) else None
        name = entry["name"] if entry["who"] == "tinyexplore" else f"{entry['name']} ({entry['who']})"
        at_least = entry.get("at_least", False)
        found.append(Aim(entry["area"], name, entry["unit"], entry["target"], value, at_least))
    for cost in python_costs(report):
        if cost.theirs is not None:
            found.append(Aim("Python / tinygrad's", cost.what, "×", MOST_OF_SIBLING, cost.ratio))
    return found


def cases_with_aims() -> list[str]:
    """The names of the cases that an aim is about."""
    names = [name for _, _, group in FLOPS_AIMS for name in group]
    return names + [name for _, pairs in TIME_AIMS for name, _ in pairs]

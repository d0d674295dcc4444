"""Names execution ports of the CPU models of llvm-mca: "ICXPort5" is "shuffle port 5"."""

from __future__ import annotations

import re

_INTEL = re.compile(r"(?:SNB|SB|IVB|HW|BW|BDW|SKL|SKX|ICX|ADLP|SPR|RKL|TGL)Port0*(\d+)$")
_INTEL_KINDS = {
    0: "arithmetic port",
    1: "arithmetic port",
    2: "load port",
    3: "load port",
    4: "store data port",
    5: "shuffle port",
    6: "branch and integer port",
    7: "store address port",
    8: "store address port",
    9: "store data port",
    10: "integer port",
    11: "load port",
}
_ZEN = re.compile(r"(?:Zn\d?|Znver\d)(.+?)_?(\d*)$")
_ZEN_KINDS = (
    ("ALU", "integer port"),
    ("AGU", "address unit"),
    ("BRU", "branch port"),
    ("FPU", "vector port"),
    ("FPP", "vector port"),
    ("FP", "vector port"),
    ("Load", "load port"),
    ("Store", "store port"),
    ("LSU", "load and store unit"),
    ("Multiplier", "integer multiplier"),
    ("Divider", "divider"),
)
_NEOVERSE = re.compile(r"(?:N1|N2|N3|V1|V2|V3|E1|A57)Unit(\w+?)(\d*)$")
_NEOVERSE_KINDS = {
    "B": "branch port",
    "D": "store data port",
    "S": "integer port",
    "M": "integer multiply and divide port",
    "L": "load port",
    "LS": "load and store port",
    "V": "vector port",
    "I": "integer port",
    "W": "vector port W",
    "X": "vector port X",
}
_WHOLE = re.compile(r"Divider|FPDiv|FPDivider")


def describe_port(name: str) -> str:
    """Returns a port as text: its kind and its number; the name itself for an unknown CPU model."""
    name = name.split(".")[0]  # units of a group are named "Zn3Load.0", "Zn3Load.1"
    if name == "SBPort23":
        return "load and store address port"
    if match := _INTEL.match(name):
        number = int(match[1])
        return f"{_INTEL_KINDS[number]} {number}" if number in _INTEL_KINDS else name
    if match := _NEOVERSE.match(name):
        kind = _NEOVERSE_KINDS.get(match[1])
        return name if kind is None else f"{kind} {match[2]}".strip()
    if match := _ZEN.match(name):
        kind = next((words for start, words in _ZEN_KINDS if match[1].startswith(start)), None)
        return name if kind is None else f"{kind} {match[2]}".strip()
    return "divider" if _WHOLE.search(name) else name


__all__ = ["describe_port"]

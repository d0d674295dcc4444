"""`python -m tests.support.cpu_table` writes `tinyexplore/target/cpus.py` from the installed LLVM.

LLVM lists the CPU names that it knows, but not their instruction sets. It inlines a function only into a caller whose
CPU has all features of the callee. So a function for the CPU calls one function per feature: the CPU has the features
of the calls that LLVM inlines.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm

from tinyexplore.target import cpus

PATH = Path(cpus.__file__)
FEATURES = """
    sse3 ssse3 sse4.1 sse4.2 sse4a popcnt lzcnt bmi bmi2 movbe avx avx2 fma fma4 xop tbm f16c avx512f avx512cd
    avx512bw avx512dq avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq avx512bf16
    avx512fp16 avx512vp2intersect gfni avxvnni avxifma avxneconvert avxvnniint8 avxvnniint16 avx10.1 avx10.2 egpr ndd
    nf zu ccmp amx-tile amx-bf16 amx-int8
""".split()  # those that code generation may use unasked
NARROW = """
    athlon athlon-4 athlon-mp athlon-tbird athlon-xp c3 c3-2 geode i386 i486 i586 i686 k6 k6-2 k6-3 lakemont pentium
    pentium-m pentium-mmx pentium2 pentium3 pentium3m pentium4 pentium4m pentium_4 pentium_4_sse3 pentium_ii pentium_iii
    pentium_iii_no_xmm_regs pentium_m pentium_mmx pentium_pro pentiumpro prescott winchip-c6 winchip2 yonah
""".split()  # of 32 bits: LLVM ends the process that asks for 64 of them
LINE = 120
PARENTS = ("sapphirerapids", "icelake-server", "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64")
TRIPLES = {arch: f"{arch}-unknown-linux-gnu" for arch in ("x86_64", "aarch64", "riscv64")}
NARROW_RISCV = """
    andes-45-series andes-a25 andes-a45 andes-n45 generic generic-ooo generic-rv32 generic-rv64 rocket rocket-rv32
    rp2350-hazard3 sifive-7-series sifive-e20 sifive-e21 sifive-e24 sifive-e31 sifive-e34 sifive-e76 syntacore-scr1-base
    syntacore-scr1-max syntacore-scr3-rv32 syntacore-scr4-rv32 syntacore-scr5-rv32
""".split()  # likewise, and names that stand for no CPU
RISCV_FEATURES = "m a f d c zfh v zvl128b zvl256b zvl512b zvl1024b".split()


def known_names(arch: str) -> list[str]:
    """LLVM's names of the CPUs of an architecture, from the list that it prints."""
    code = (
        "import llvmlite.binding as llvm; llvm.initialize_all_targets(); llvm.initialize_all_asmprinters(); "
        f"llvm.Target.from_triple({TRIPLES[arch]!r}).create_target_machine(cpu='help')"
    )
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    return sorted(set(re.findall(r"^  (\S+) +- Select the \S+ processor", text, re.MULTILINE)))


def features_of(cpu: str) -> list[str]:
    """Those of FEATURES that a 64-bit x86 CPU has, by its name."""
    found = {feature for base in ("x86-64", "k8") for feature in _features_beside("x86_64", base, cpu, FEATURES)}
    return [feature for feature in FEATURES if feature in found]


def riscv_features_of(cpu: str) -> list[str]:
    """Those of RISCV_FEATURES that a 64-bit RISC-V CPU has."""
    return _features_beside("riscv64", "rocket-rv64", cpu, RISCV_FEATURES)


def _features_beside(arch: str, base: str, cpu: str, features: list[str]) -> list[str]:
    """Those of `features` that `cpu` has, where it has all of `base`."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    lines = [f'target triple = "{TRIPLES[arch]}"', "@place = external global i32", "define void @caller() #0 {"]
    lines += [f"  call void @has{number}()" for number in range(len(features))]
    lines += ["  ret void", "}", f'attributes #0 = {{ "target-cpu"="{cpu}" }}']
    for number, feature in enumerate(features, 1):
        lines += [
            f"define internal void @has{number - 1}() #{number} {{",
            "  store volatile i32 1, ptr @place",
            "  ret void",
            "}",
        ]
        needed = f"+v,+{feature}" if feature.startswith("zvl") else f"+{feature}"
        lines.append(f'attributes #{number} = {{ "target-cpu"="{base}" "target-features"="{needed}" }}')
    module = llvm.parse_assembly("\n".join(lines))
    machine = llvm.Target.from_triple(TRIPLES[arch]).create_target_machine(cpu=base)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    left = {int(number) for number in re.findall(r"call .*@has(\d+)", str(module))}
    return [feature for number, feature in enumerate(features) if number not in left]


def table_text() -> str:
    """The module's text."""
    wide = {name: features_of(name) for name in known_names("x86_64") if name not in (*NARROW, "generic")}
    lines = ['"""The CPUs that LLVM knows by name: data, written by `python -m tests.support.cpu_table`."""', ""]
    lines += [f"LLVM_VERSION = {llvm.llvm_version_info[0]}", ""]
    lines += ["# name: the features that code generation may use: those of a level, and more", "X86_64 = {"]
    for name, features in wide.items():
        line = f'    "{name}": "{" ".join(in_short(name, features, wide))}",'
        lines += [line if len(line) <= LINE else f"{line}  # noqa: E501"]
    lines += ["}", "", "# names alone: what is generated for each is for its 128-bit vectors", "AARCH64 = ("]
    lines += [f'    "{name}",' for name in known_names("aarch64") if name != "generic"]
    lines += [
        ")",
        "",
        "# of 64 bits: v is the vector extension, zvl256b vectors of 256 bits at the least",
        "RISCV64 = {",
    ]
    lines += [f'    "{name}": "{" ".join(riscv_features_of(name))}",' for name in wide_riscv_names()]
    return "\n".join([*lines, "}", ""])


def wide_riscv_names() -> list[str]:
    """LLVM's names of 64-bit RISC-V CPUs that compute with doubles, as Linux asks for."""
    names = [name for name in known_names("riscv64") if name not in NARROW_RISCV]
    return [name for name in names if "d" in riscv_features_of(name)]


def in_short(name: str, features: list[str], wide: dict[str, list[str]]) -> list[str]:
    """The largest of PARENTS whose features the CPU has, and its further features."""
    for level in PARENTS:
        if level != name and wide[level] and set(wide[level]) <= set(features):
            return [level, *(feature for feature in features if feature not in wide[level])]
    return features


if __name__ == "__main__":
    PATH.write_text(table_text())
    subprocess.run(["ruff", "format", "-q", str(PATH)], check=True)

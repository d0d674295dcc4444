"""Cache sizes of the CPUs that TARGET can name, as their vendors publish them: data.

Each entry has the bytes of the L1 and the L2 cache of one core, and of the last-level cache. The last is 0 if CPUs of
the name differ in it. If chip vendors may choose the size (Arm's cores), it is the most common one. If a few cores
share a cache, it is a core's part. Source: the vendors' optimization and technical reference manuals. Levels such as
x86-64-v3 are not machines and are missing here.

`SEQUENTIAL_READS` has measured facts about the prefetchers of some CPUs.
"""

from __future__ import annotations

K, M = 1 << 10, 1 << 20

CACHES: dict[str, tuple[int, int, int]] = {
    **dict.fromkeys(("nehalem", "westmere", "sandybridge", "ivybridge", "haswell", "broadwell"), (32 * K, 256 * K, 0)),
    "skylake": (32 * K, 256 * K, 0),
    **dict.fromkeys(("skylake-avx512", "cascadelake", "cooperlake"), (32 * K, 1 * M, 0)),
    "icelake-client": (48 * K, 512 * K, 0),
    "tigerlake": (48 * K, 1280 * K, 0),
    "icelake-server": (48 * K, 1280 * K, 0),
    **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids"), (48 * K, 2 * M, 0)),
    "alderlake": (48 * K, 1280 * K, 0),
    "raptorlake": (48 * K, 2 * M, 0),
    "meteorlake": (48 * K, 2 * M, 0),
    "znver1": (32 * K, 512 * K, 8 * M),
    "znver2": (32 * K, 512 * K, 16 * M),
    "znver3": (32 * K, 512 * K, 32 * M),
    "znver4": (32 * K, 1 * M, 32 * M),
    "znver5": (48 * K, 1 * M, 32 * M),
    **dict.fromkeys(("neoverse-n1", "neoverse-v1", "neoverse-n2"), (64 * K, 1 * M, 0)),
    "neoverse-v2": (64 * K, 2 * M, 0),
    "apple-m1": (128 * K, 3 * M, 0),
    "apple-m2": (128 * K, 4 * M, 0),
}

# For reads of several sequences of a row: how many sequences, and whether to prefetch each by instructions. On a Zen 5,
# four without prefetches take 0.77 of the time of eight with prefetches from the last-level cache, and 0.98 from memory
SEQUENTIAL_READS: dict[str, tuple[int, bool]] = {"znver5": (4, False)}

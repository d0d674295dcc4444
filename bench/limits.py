"""Environment variables that restrict peers to the current TARGET."""

from __future__ import annotations

from tinyexplore.target import LEVELS, current_choice, nearest_level

OPENBLAS = dict(zip(LEVELS, ("Prescott", "Nehalem", "Haswell", "SkylakeX")))
TORCH = dict(zip(LEVELS, ("default", "default", "avx2", "avx512")))
MKL = dict(zip(LEVELS, ("SSE4_2", "SSE4_2", "AVX2", "AVX512")))
ONEDNN = dict(zip(LEVELS, ("SSE41", "SSE41", "AVX2", "AVX512_CORE")))
XLA = dict(zip(LEVELS, ("SSE4_2", "SSE4_2", "AVX2", "AVX512")))


def peer_limits() -> dict[str, str]:
    """Return the environment variables; none if TARGET is this machine, or of another architecture."""
    choice = current_choice()
    if choice.is_native or choice.arch != "x86_64":
        return {}
    level = nearest_level(choice.features)
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(_features_beyond(level)),
        "OPENBLAS_CORETYPE": OPENBLAS[level],
        "ATEN_CPU_CAPABILITY": TORCH[level],
        "DNNL_MAX_CPU_ISA": ONEDNN[level],
        "MKL_ENABLE_INSTRUCTIONS": MKL[level],
        "TORCHINDUCTOR_CPP_MARCH": level,
        # XLA's library for matrix products ignores this limit: on AVX2 a product took 0.57 of its shortest time
        "XLA_FLAGS": f"--xla_cpu_max_isa={XLA[level]} --xla_cpu_experimental_ynn_fusion_type=",
        "NUMBA_CPU_NAME": choice.cpu,
        "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in sorted(choice.features)),
    }


def _features_beyond(level: str) -> list[str]:
    """Return the CPU features that NumPy dispatches on and that `level` lacks."""
    from numpy._core._multiarray_umath import __cpu_dispatch__

    allowed: tuple[str, ...] = ()
    if level != "x86-64":
        allowed = ("SSE", "POPCNT", "X86_V2")
    if level in ("x86-64-v3", "x86-64-v4"):
        allowed += ("AVX2", "FMA3", "F16C", "X86_V3")
    if level == "x86-64-v4":
        allowed += ("AVX512F", "AVX512CD", "AVX512_SKX", "X86_V4")
    return [name for name in __cpu_dispatch__ if name != "AVX" and not name.startswith(allowed or ("-",))]

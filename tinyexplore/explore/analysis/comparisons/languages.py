"""The languages in which a kernel can be rendered, each with its machine: a renderer and a Target."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tinyexplore.device import Device
from tinyexplore.device.registry import Renderer
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.renderer.c import CRenderer
from tinyexplore.renderer.gpu import GPU_LANGUAGES, GPURenderer, VectorRenderer
from tinyexplore.renderer.llvm import LLVMRenderer
from tinyexplore.renderer.llvm.gpu import BACKENDS
from tinyexplore.renderer.wasm import WASMRenderer
from tinyexplore.runtime.gpu import gpu_target
from tinyexplore.runtime.gpu_assembly import GPUAssembler
from tinyexplore.target import GPUS, WASM32, Target, UnknownTarget, choice_of
from tinyexplore.util import Context

ASSEMBLIES = {backend.language: arch for arch, backend in BACKENDS.items()}  # of GPUs: assembly language → architecture
COMPARED_LANGUAGES = {  # short name → display name
    "c": "C",
    "llvm": "LLVM IR",
    **GPU_LANGUAGES,
    **{backend.language: backend.full_name for backend in BACKENDS.values()},
    "wasm": "WebAssembly text",
}
MACHINES = {
    "opencl": "opencl",
    "cuda": "sm_80",
    "ptx": "sm_80",
    "hip": "gfx1100",
    "amdgcn": "gfx1100",
    "metal": "metal",
    "wgsl": "webgpu",
    "wasm": WASM32,
}
CPU_LANGUAGES = ("c", "llvm")
_LANGUAGE_ALIASES = {
    "cpp": "c",
    "ir": "llvm",
    "llvm ir": "llvm",
    "opencl c": "opencl",
    "wat": "wasm",
    "webassembly": "wasm",
}


class LanguageError(ValueError):
    """The language or machine is unknown, or the language does not support the machine."""


@dataclass(frozen=True, repr=False)
class LanguageTarget(DisplayableRow):
    """A language with the machine that its programs are for.

    language: the language.
    machine: the TARGET name of the machine; "" for that of the capture, or a default.
    """

    language: str
    machine: str = ""

    @property
    def name(self) -> str:
        """The name as the user requests it: "cuda", "cuda:sm_90"."""
        return f"{self.language}:{self.machine}" if self.machine else self.language


def parse_targets(targets: str | Iterable[str] | None) -> tuple[LanguageTarget, ...]:
    """Parses `targets`: languages, machines (each implies its language), or both as "cuda:sm_90".

    None selects every language.
    """
    if targets is None:
        return tuple(map(LanguageTarget, COMPARED_LANGUAGES))
    names = [targets] if isinstance(targets, str) else targets
    return tuple(dict.fromkeys(_parse_target(name) for name in names))


def _parse_target(word: str) -> LanguageTarget:
    """Parses a target: a language ("c"), a machine ("sm_80"), or both ("llvm:neoverse-n1")."""
    language, colon, machine = (part.strip().lower() for part in word.partition(":"))
    language = _LANGUAGE_ALIASES.get(language, language)
    if language not in COMPARED_LANGUAGES and not colon:
        language, machine = _language_of(language, word), language
    if language not in COMPARED_LANGUAGES:
        raise LanguageError(f"no language {language!r}; supported: {', '.join(COMPARED_LANGUAGES)}")
    family = "llvm" if language in CPU_LANGUAGES else ASSEMBLIES.get(language, language)
    if machine and _language_of(machine, word) != family:
        raise LanguageError(
            f"{word!r}: {COMPARED_LANGUAGES[language]} cannot target {machine}; {_language_of(machine, word)} can"
        )
    return LanguageTarget(language, machine)


def _language_of(machine: str, word: str) -> str:
    """Returns the language of the kernels of a machine. `word` is the target for error messages."""
    try:
        choice = choice_of(machine)
    except UnknownTarget as error:
        close = difflib.get_close_matches(machine, [*COMPARED_LANGUAGES, *GPUS], 3, 0.5)
        hint = f"; close to it: {', '.join(close)}" if close else ""
        raise LanguageError(
            f"{word!r} is not a language ({', '.join(COMPARED_LANGUAGES)}) and not a machine that TARGET accepts{hint}"
        ) from error
    if choice.gpu is not None:
        return choice.gpu.language
    return "wasm" if choice.cpu == WASM32 else "llvm"


def target_of(chosen: LanguageTarget, captured: Target) -> Target:
    """Returns the target of programs in a language.

    captured: the kernel's target, which is used if it supports the language and no machine is requested.

    Raises:
        DeviceUnavailable: the machine is unknown here.
    """
    language, machine = chosen.language, chosen.machine
    if not machine and _supports_language(captured, language):
        return captured
    machine = machine or MACHINES.get(language, "native")
    if language in GPU_LANGUAGES or language in ASSEMBLIES:
        gpu = choice_of(machine).gpu
        assert gpu is not None
        return gpu_target("GPU", gpu, machine, machine)
    if language == "wasm":
        from tinyexplore.runtime.wasm import wasm_target  # noqa: PLC0415 (start-up: a device that few have)

        return wasm_target(machine)
    with Context(TARGET=machine):
        return Device["LLVM"].target


def _supports_language(target: Target, language: str) -> bool:
    if target.has_local:
        return target.arch == ASSEMBLIES.get(language, language)
    if target.arch == WASM32:
        return language == "wasm"
    if target.name == "GPU":  # OpenCL on a CPU
        return language in (*CPU_LANGUAGES, "opencl")
    return language in CPU_LANGUAGES and target.name in ("LLVM", "CLANG")


def renderer_of(language: str, target: Target) -> Renderer:
    """Returns the renderer of a language for `target`.

    Raises:
        DeviceUnavailable: a package that it needs is not installed.
    """
    if language in ASSEMBLIES:
        return GPUAssembler(target)
    match language:
        case "c":
            return CRenderer(target)
        case "llvm":
            return LLVMRenderer(target)
        case "wasm":
            return WASMRenderer(target)
        case "opencl" if not target.has_local:
            return VectorRenderer(target, "none")
        case _:
            return GPURenderer(target, "none")


def find_language(languages: Sequence[str], language: str) -> str:
    """Returns the entry of `languages` that `language` names.

    Raises:
        LanguageError: there is none.
    """
    name = language.strip().lower()
    name = _LANGUAGE_ALIASES.get(name, name)
    matches = [candidate for candidate in languages if candidate == name] or [
        candidate for candidate in languages if candidate.partition(":")[0] == name
    ]
    if not matches:
        raise LanguageError(f"{language!r} was not requested; available: {', '.join(languages)}")
    return matches[0]


__all__ = [
    "COMPARED_LANGUAGES",
    "MACHINES",
    "LanguageError",
    "LanguageTarget",
    "find_language",
    "renderer_of",
    "target_of",
    "parse_targets",
]

"""Tensor files of other programs, and files that are malicious or damaged."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from gguf import GGMLQuantizationType, GGUFWriter, quants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ops.support import HOW
from tests.support.less_memory import limited
from tinyexplore import Device, Tensor, dtypes
from tinyexplore.nn.state import FormatError, get_state_dict, gguf_load, safe_load, safe_save, torch_load
from tinyexplore.nn.state.gguf import QUANTIZED

FIXTURES = Path(__file__).parents[2] / "fixtures" / "state"
BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
damaging = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


def bytes_tensor(content: bytes) -> Tensor:
    return Tensor(content)


# *** safetensors ***


def test_files_are_exchanged_with_the_reference_library(tmp_path: Path) -> None:
    names = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
    arrays = {name: (BASE % 7).astype(name) for name in [*names, "float16", "float32", "float64"]}
    arrays |= {"scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.float32)}
    safe_save({name: Tensor(array) for name, array in arrays.items()}, tmp_path / "ours", {"format": "np"})
    for name, array in safetensors.numpy.load_file(tmp_path / "ours").items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.dtype == arrays[name].dtype
    with safetensors.safe_open(tmp_path / "ours", "np") as opened:
        assert opened.metadata() == {"format": "np"}
    safetensors.numpy.save_file(arrays, tmp_path / "theirs")
    loaded = safe_load(tmp_path / "theirs")
    assert set(loaded) == set(arrays)
    for name, tensor in loaded.items():
        assert tensor.device == f"DISK:{tmp_path}/theirs" and tensor.dtype.name == arrays[name].dtype.name
        np.testing.assert_array_equal(tensor.numpy(), arrays[name])
    copied = safe_load(bytes_tensor((tmp_path / "theirs").read_bytes()))
    assert copied["int64"].device == Tensor([1]).device and (copied["int64"] + 1).tolist() == (BASE % 7 + 1).tolist()


def test_a_file_may_be_overwritten_while_its_tensors_are_lazy(tmp_path: Path) -> None:
    safe_save({"a": Tensor(BASE)}, tmp_path / "x")
    loaded = safe_load(tmp_path / "x")
    safe_save({"b": Tensor.ones(2), **loaded}, tmp_path / "x")
    np.testing.assert_array_equal(loaded["a"].numpy(), BASE)
    np.testing.assert_array_equal(safe_load(tmp_path / "x")["a"].numpy(), BASE)
    assert os.listdir(tmp_path) == ["x"]


def safetensors_file(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


A = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("content", "why"),
    ids=range(18),
    argvalues=[
        (b"", "0 bytes cannot hold a header"),
        (safetensors_file({"a": A}, bytes(8), 1 << 60), "cannot hold a header"),
        (safetensors_file(b"{nonsense"), "not JSON"),
        (safetensors_file(b"[" * 100_000), "nested more than 16 deep"),
        (safetensors_file(b'{"a": 1, "a": 2}'), "is repeated"),
        (safetensors_file([1]), "a list"),
        (safetensors_file({"a": 1}), "needs dtype, shape"),
        (safetensors_file({"a": {**A, "dtype": "F99"}}, bytes(8)), "dtype 'F99'; supported: BOOL"),
        (safetensors_file({"a": {**A, "shape": [3]}}, bytes(8)), "cannot fill bytes 0 to 8"),
        (safetensors_file({"a": {**A, "shape": [-2, -1]}}, bytes(8)), "sizes and offsets must be"),
        (safetensors_file({"a": {**A, "shape": [1 << 62, 1 << 62]}}, bytes(8)), "exceeds 2⁶² bytes"),
        (safetensors_file({"a": {**A, "shape": [0, 1 << 62, 4]}}), "exceeds 2⁶² bytes"),
        (safetensors_file({"a": {**A, "shape": [1] * 65}}, bytes(4)), "at most 64 sizes"),
        (safetensors_file(b'{"a": ' + b"[],".join([b"["] + [b""] * 5_000_001)), "more than 5000000 values"),
        (safetensors_file({"a": A}, bytes(7)), "end at byte"),
        (safetensors_file({"a": A}, bytes(9)), "end at byte"),
        (safetensors_file({"a": A, "b": A}, bytes(8)), "expected byte 8"),
        (safetensors_file({"a": {**A, "data_offsets": [8, 16]}}, bytes(16)), "expected byte 0"),
    ],
)
def test_a_damaged_safetensors_file_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(FormatError, match=f"not a safetensors file: .*{why}"):
        safe_load(bytes_tensor(content) if content else Tensor.zeros(0, dtype="uint8"))


# *** PyTorch ***

EXPECTED = {
    "weight": BASE / 4,
    "half": BASE.astype(np.float16),
    "bfloat16": BASE,
    "double": BASE.astype(np.float64) / 3,
    "long": BASE.astype(np.int64) - 7,
    "int8": BASE.astype(np.int8),
    "bool": BASE > 5,
    "scalar": np.float32(2.5),
    "empty": np.zeros((0, 3), np.float32),
    "transposed": BASE.T,
    "rows": BASE[1:3],
    "steps": BASE[:, ::2],
    "expanded": np.float32([[1, 2]] * 3),
    "shared": BASE,
}


@pytest.mark.parametrize("kind", ["zip", "legacy"])
@pytest.mark.parametrize("lazily", [True, False])
def test_files_of_torch_save_are_loaded(kind: str, lazily: bool) -> None:
    path = FIXTURES / f"{kind}.pt"
    found = torch_load(path if lazily else bytes_tensor(path.read_bytes()))
    state = found.pop("state")
    assert found == {
        "epoch": 3,
        "loss": 0.25,
        "name": "tiny",
        "sizes": (4, 6),
        "history": [1, (2, None, True), {"a": b"bytes"}],
        "dtype": dtypes.float16,
        "device": "cpu",
    }
    assert list(state) == list(EXPECTED)
    for name, tensor in state.items():
        assert tensor.shape == EXPECTED[name].shape  # type: ignore[attr-defined]
        np.testing.assert_array_equal(tensor.numpy(), EXPECTED[name])
    assert state["bfloat16"].dtype is dtypes.bfloat16 and state["half"].dtype is dtypes.float16
    assert state["weight"].device == (f"DISK:{path}" if lazily else Tensor([1]).device)


def test_a_state_dict_of_torch_fits_our_layers() -> None:
    from tinyexplore import nn
    from tinyexplore.nn.state import load_state_dict

    layer, state = nn.Linear(3, 2), torch_load(str(FIXTURES / "linear.pt"))
    assert state.pop("uint16").tolist() == [0, 1, 2, 3, 4]
    load_state_dict(layer, state, verbose=False)
    assert layer(Tensor([[1.0, 0, 2]])).tolist() == [[4.5, 12.5]]
    assert set(get_state_dict(layer)) == set(state)


class Call:
    """Pickles as a call of `function`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def zip_of(pickled: bytes, compression: int = zipfile.ZIP_STORED, name: str = "a/data.pkl") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr(name, pickled)
    return file.getvalue()


def deep_tuple() -> bytes:
    """A dict with a key of tuples, very deep: hashing it would overflow the stack of the interpreter."""
    return b"\x80\x02}" + b")" + b"\x85" * 50_000 + b"K\x01s."


HARMFUL: list[tuple[bytes, str]] = [
    (zip_of(pickle.dumps(Call(os.system, "echo harm > harm"), 2)), "asks for 'posix.system'|asks for 'nt.system'"),
    (zip_of(pickle.dumps(Call(eval, "1"), 4)), "asks for 'builtins.eval'"),
    (zip_of(pickle.dumps(Call(eval, "1"), 0)), "asks for '__builtin__.eval'"),
    (zip_of(b"(S'echo'\nios\nsystem\n."), "uses INST"),
    (zip_of(b"\x80\x02cbuiltins\nset\nq\x00)\x81}b."), "gives a state to a set"),
    (zip_of(b"\x82\x01."), "uses EXT1"),
    (zip_of(b"N)R."), "is expected"),
    (zip_of(b"]]a]a."), ""),
    (zip_of(b"I1\n"), "damaged|is truncated"),
    (zip_of(b"."), "damaged"),
    (zip_of(b"e."), "mark is missing"),
    (zip_of(b"\x8a\x00Q."), "not a storage"),
    (zip_of(deep_tuple()), "a key of type tuple"),
    (zip_of(b"\x80\x02" + b"]" * 1000 + b"a" * 999 + b"."), "nested more than 200 deep"),
    (zip_of(b"\x80\x02]" + b"r\xff\xff\xff\xff" + b"."), ""),
    (zip_of(pickle.dumps([1]), zipfile.ZIP_DEFLATED), "is compressed"),
    (zip_of(pickle.dumps([1]), name="a/other"), "0 members named"),
    (b"PK\x03\x04 and so on", "damaged zip archive"),
    (pickle.dumps(Call(os.system, "echo harm > harm"), 2), "asks for"),
    (pickle.dumps({"a": 1}), "neither a zip archive"),
    (b"\x89PNG\r\n\x1a\n", "uses PERSID"),
]


@pytest.mark.parametrize("case", range(len(HARMFUL)))
def test_a_malicious_file_is_refused(case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content, why = HARMFUL[case]
    if not why:
        assert isinstance(torch_load(bytes_tensor(content)), list)
    else:
        with pytest.raises(FormatError, match=f"torch.save: .*({why})"):
            torch_load(bytes_tensor(content))
    assert os.listdir(tmp_path) == []


def legacy_of(pickled: bytes) -> bytes:
    head = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    return b"".join(pickle.dumps(one, 2) for one in head) + pickled + pickle.dumps([], 2)


def called(name: str, argument: bytes, times: int) -> bytes:
    """A pickle that puts `argument` into its memo and calls a function with it again and again."""
    module, _, function = name.rpartition(".")
    once = b"h\x00h\x01\x85R0"
    return b"\x80\x02" + argument + b"q\x010c" + f"{module}\n{function}\n".encode() + b"q\x000" + once * times + b"N."


WORK = "takes more than 1000000 steps to read"
BOMBS = {
    "copies": (b"]" + b"2" * 10_000_000 + b".", WORK),
    "lists": (b"\x80\x02" + b"]" * 1_500_000 + b".", WORK),
    "memo": (b"\x80\x02]" + b"\x94" * 1_500_000 + b".", WORK),
    "sizes": (called("torch.Size", b"(" + b"K\x01" * 50_000 + b"l", 50_000), WORK),
    "sets": (called("builtins.set", b"(" + b"K\x01" * 50_000 + b"l", 50_000), WORK),
    "texts": (called("_codecs.encode", b"X" + struct.pack("<I", 1_000_000) + b"x" * 1_000_000, 50_000), WORK),
    "keys of the same hash": (
        b"\x80\x02}("
        + b"".join(b"\x8a\x0e" + (n * ((1 << 61) - 1)).to_bytes(14, "little") + b"N" for n in range(100_000))
        + b"u.",
        "an int of more than 64 bits",
    ),
    "long keys": (called("builtins.set", b"((" + b"K\x01" * 50_000 + b"tl", 2), "a key of type tuple"),
    "a code of lists of lists": (
        b"\x80\x02cnumpy\ndtype\n]q\x00" + b"".join(b"0(h\x00h\x00lq\x00" for _ in range(60)) + b"\x85R.",
        "code of a NumPy type",
    ),
    "calls in calls": (
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\nq\x00" + b"(h\x00N" * 90_000 + b")" + b"Nt" * 90_000 + b"R.",
        "not a supported tensor constructor",
    ),
    "a text of 2 GB": (b"\x80\x04\x8d" + struct.pack("<Q", 1 << 31) + b"x.", "damaged"),
    "more than 64 MiB": (
        b"\x80\x02X" + struct.pack("<I", 80 << 20) + bytes(80 << 20) + b".",
        "(has|have) more than 67108864",
    ),
}


@pytest.mark.parametrize("kind", ["zip", "legacy"])
@pytest.mark.parametrize("name", BOMBS)
def test_an_expensive_pickle_is_refused_quickly(kind: str, name: str) -> None:
    pickled, why = BOMBS[name]
    source = bytes_tensor(zip_of(pickled) if kind == "zip" else legacy_of(pickled))
    began = time.process_time()
    with limited(megabytes=600), pytest.raises(FormatError, match=why):
        torch_load(source)
    assert time.process_time() - began < 20


def view(size: str, stride: str, count: int = 6) -> bytes:
    """A pickle of a tensor of the one storage that `count` floats fill."""
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK"
        + bytes([count])
        + b"tQK\x00"
        + pickled_ints(size)
        + pickled_ints(stride)
        + b"\x89NtR."
    )


def pickled_ints(numbers: str) -> bytes:
    return b"(" + b"".join(f"L{number}L\n".encode() for number in numbers.split()) + b"t"


def with_storage(pickled: bytes) -> bytes:
    file = io.BytesIO(zip_of(pickled))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("a/data/0", bytes(24))
    return file.getvalue()


@pytest.mark.parametrize(
    ("size", "stride", "why"),
    [
        ("2 3", "3 1", ""),
        ("2 4", "3 1", "element 6 of a storage of 6"),
        (f"{1 << 40} {1 << 40}", "0 0", "exceeds 2⁶² bytes"),
        (f"0 {1 << 70}", "0 0", "whole numbers"),
        (f"{10**4000}", "0", "whole numbers"),
        (" ".join("1" * 65), " ".join("1" * 65), "65 axes"),
        ("2 3", "-3 1", "whole numbers"),
    ],
)
def test_impossible_views_are_refused(size: str, stride: str, why: str) -> None:
    source = bytes_tensor(with_storage(view(size, stride)))
    if not why:
        assert torch_load(source).shape == (2, 3)  # type: ignore[attr-defined]
    else:
        with pytest.raises(FormatError, match=why):
            torch_load(source)


def test_an_archive_with_a_wrong_directory_is_refused() -> None:
    whole = zip_of(pickle.dumps([1], 2))
    end = whole.rindex(b"PK\x05\x06")
    entry = whole.index(b"PK\x01\x02")
    lies = {
        "central directory of 999 entries": (end + 8, struct.pack("<HH", 999, 999)),
        "bytes from byte 4294967294 on": (end + 16, struct.pack("<I", 0xFFFFFFFE)),
        "locator is missing": (end + 16, struct.pack("<I", 0xFFFFFFFF)),
        "has no entry at": (entry, b"PK\x01\x03"),
        "has no local header": (entry + 42, struct.pack("<I", 3)),
        "is truncated": (entry + 20, struct.pack("<II", 1 << 20, 1 << 20)),
        "compressed or encrypted": (entry + 20, struct.pack("<I", 3)),
    }
    assert torch_load(bytes_tensor(whole)) == [1]
    for why, (at, other) in lies.items():
        with pytest.raises(FormatError, match=why):
            torch_load(bytes_tensor(whole[:at] + other + whole[at + len(other) :]))
    twice = io.BytesIO(whole)
    with zipfile.ZipFile(twice, "a") as archive, pytest.warns(UserWarning):
        archive.writestr("a/data.pkl", b"N.")
    with pytest.raises(FormatError, match="two members are named"):
        torch_load(bytes_tensor(twice.getvalue()))


def test_reading_a_truncated_file_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x"
    safe_save({"a": Tensor(np.arange(100_000, dtype=np.float32)), "b": Tensor.ones(4)}, path)
    loaded = safe_load(path)
    gathered = loaded["a"].reshape(1000, 100).T
    os.truncate(path, 8192)
    for read in (loaded["a"].numpy, loaded["a"].to("PYTHON").tolist, gathered.numpy, lambda: gathered.to("PYTHON")):
        with pytest.raises(OSError, match="truncated: .*load it again"):
            read()


def test_storages_with_wrong_sizes_are_refused() -> None:
    whole = (FIXTURES / "linear.pt").read_bytes()
    grown = whole.replace(b"K\x06", b"K\x7f", 1)
    assert grown != whole
    with pytest.raises(FormatError, match="too few for 127 of float32"):
        torch_load(bytes_tensor(grown))
    with pytest.raises(FormatError, match="big-endian"):
        torch_load(bytes_tensor(whole.replace(b"little", b"bigbig")))
    with pytest.raises(FormatError, match="torch.nn.modules.linear.Linear"):
        torch_load(FIXTURES / "module.pt")
    with pytest.raises(FormatError, match="is truncated or declares"):
        torch_load(bytes_tensor((FIXTURES / "legacy.pt").read_bytes()[:-8]))


# *** GGUF ***


def gguf_file(path: Path) -> bytes:
    writer = GGUFWriter(path, "llama")
    writer.add_uint32("answer", 42)
    writer.add_float32("share", 1.5)
    writer.add_bool("is", True)
    writer.add_string("text", "héllo")
    writer.add_array("numbers", [1, 2, 3])
    writer.add_array("words", ["a", "bc"])
    plain = np.sin(np.arange(192, dtype=np.float32)).reshape(3, 64)
    writer.add_tensor("plain", plain)
    writer.add_tensor("half", plain.astype(np.float16))
    for kind in ("BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
        quantized = GGMLQuantizationType[kind]
        writer.add_tensor(kind, quants.quantize(plain, quantized), raw_dtype=quantized)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.mark.parametrize("lazily", [True, False])
def test_a_gguf_file_by_the_reference_is_loaded(tmp_path: Path, lazily: bool) -> None:
    content = gguf_file(tmp_path / "x.gguf")
    values, tensors = gguf_load(tmp_path / "x.gguf" if lazily else bytes_tensor(content))
    assert values == {
        "general.architecture": "llama",
        "answer": 42,
        "share": 1.5,
        "is": True,
        "text": "héllo",
        "numbers": [1, 2, 3],
        "words": ["a", "bc"],
    }
    read = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "x.gguf").tensors}
    assert list(tensors) == list(read)
    for name, tensor in tensors.items():
        expected = quants.dequantize(read[name].data, read[name].tensor_type)
        assert tensor.shape == (3, 64)
        np.testing.assert_array_equal(tensor.numpy(), expected.reshape(3, 64))
    assert tensors["half"].dtype is dtypes.float16 and tensors["BF16"].dtype is dtypes.bfloat16


@pytest.mark.parametrize("device", [name for name in HOW if name != "reference"])
@pytest.mark.parametrize("kind", QUANTIZED)
def test_quantized_blocks_equal_those_of_the_reference(kind: int, device: str) -> None:
    known = QUANTIZED[kind]
    assert gguf.GGML_QUANT_SIZES[GGMLQuantizationType(kind)] == (known.elements, known.nbytes)
    blocks = np.random.default_rng(kind).integers(0, 256, (4, known.nbytes), dtype=np.uint8)
    two = ("Q4_1", "Q5_1", "Q4_K", "Q5_K")
    places = {"Q6_K": [208], "Q2_K": [80, 82], "Q3_K": [108]}.get(known.name, [0, 2] if known.name in two else [0])
    for place in places:  # neither inf nor NaN
        blocks[:, place + 1] &= 0xBB
    expected = quants.dequantize(blocks.reshape(-1), GGMLQuantizationType(kind)).reshape(4, -1)
    found = known.unpack(Tensor(blocks, device=device)).reshape(4, -1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6 * float(np.abs(expected).max()))


def test_a_damaged_gguf_file_is_refused(tmp_path: Path) -> None:
    content = gguf_file(tmp_path / "x")
    cases = {
        "does not begin with GGUF": b"GGML" + content[4:],
        "version 9; supported: 2": content[:4] + struct.pack("<I", 9) + content[8:],
        "expected 1152921504606846976 entries": content[:16] + struct.pack("<Q", 1 << 60) + content[24:],
        "is truncated: expected": content[:300],
        "tensor Q8_0 of shape": content[:-64],
        "two values are named": content.replace(b"\x05\0\0\0\0\0\0\0share", b"\x06\0\0\0\0\0\0\0answer"),
        "expected 9223372036854775808 bytes": content.replace(b"\x05\0\0\0\0\0\0\0share", b"\0\0\0\0\0\0\0\x80share"),
        "exceeds 2⁶² bytes": content.replace(
            struct.pack("<IQQ", 2, 64, 3), struct.pack("<IQQ", 2, 1 << 40, 1 << 40), 1
        ),
        "has 9 axes": content.replace(struct.pack("<IQQ", 2, 64, 3), struct.pack("<IQQ", 9, 64, 3), 1),
        "a multiple of 32": content.replace(struct.pack("<QQIQ", 64, 3, 0, 0), struct.pack("<QQIQ", 64, 3, 0, 4)),
        "two tensors are named plain": content.replace(b"\x04\0\0\0\0\0\0\0half", b"\x05\0\0\0\0\0\0\0plain"),
    }
    for why, damaged in cases.items():
        with pytest.raises(FormatError, match=f"not a GGUF file: .*{why}"):
            gguf_load(bytes_tensor(damaged))


# *** any damage ***


@pytest.mark.parametrize("kind", ["zip", "legacy", "gguf", "safetensors"])
def test_damage_anywhere_is_a_format_error_or_other_numbers(kind: str, tmp_path: Path) -> None:
    load: Callable[[Tensor], Any] = torch_load
    if kind == "gguf":
        content, load = gguf_file(tmp_path / "x"), gguf_load
    elif kind == "safetensors":
        safe_save({name: Tensor(array) for name, array in EXPECTED.items()}, tmp_path / "x")
        content, load = (tmp_path / "x").read_bytes(), safe_load
    else:
        content = (FIXTURES / f"{kind}.pt").read_bytes()

    @damaging
    @given(st.data())
    def damaged(data: st.DataObject) -> None:
        wrong = bytearray(content[: data.draw(st.one_of(st.just(len(content)), st.integers(1, len(content))))])
        for _ in range(data.draw(st.integers(0, 4))):
            wrong[data.draw(st.integers(0, min(len(wrong), 3000) - 1))] = data.draw(st.integers(0, 255))
        try:
            load(bytes_tensor(bytes(wrong)))
        except FormatError:
            pass

    damaged()


SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_every_float8_of_torch_is_loaded(name: str) -> None:
    bits = np.arange(256, dtype=np.uint8).reshape(16, 16)
    expected = bits.view(getattr(ml_dtypes, name)).astype(np.float32)
    state = torch_load(FIXTURES / "float8.pt")
    for key, part in (("", expected), (".transposed", expected.T), (".steps", expected[:, ::3])):
        np.testing.assert_array_equal(state[name + key].to(Device.DEFAULT).float().numpy(), part)


@pytest.mark.parametrize("code", ["F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"])
def test_every_float8_of_safetensors_is_loaded(code: str) -> None:
    names = dict(zip(("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"), SMALL_FLOATS))
    header = json.dumps({"x": {"dtype": code, "shape": [256], "data_offsets": [0, 256]}}).encode()
    found = safe_load(bytes_tensor(len(header).to_bytes(8, "little") + header + bytes(range(256))))
    expected = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, names[code])).astype(np.float32)
    np.testing.assert_array_equal(found["x"].float().numpy(), expected)

"""The loaders of data sets on small files in the published formats, from disk and from a server."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tinyexplore import Device, Tensor
from tinyexplore.nn import datasets
from tinyexplore.nn.state import FormatError, tar_extract

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (5, 28, 28), dtype=np.uint8)
LABELS = np.arange(5, dtype=np.uint8)
COLORS = RANDOM.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


CONTENTS = dict(
    zip(
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
        (idx(PICTURES), idx(LABELS), idx(PICTURES[3:]), idx(LABELS[3:])),
    )
)


def cifar_files() -> dict[str, bytes]:
    """Two pictures in each of the six files, each after its label."""
    names = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    records = [bytes([number % 10]) + COLORS[number].tobytes() for number in range(12)]
    return {name: records[2 * place] + records[2 * place + 1] for place, name in enumerate(names)}


def check_mnist(found: datasets.Dataset) -> None:
    expected = (PICTURES[:, None], LABELS, PICTURES[3:, None], LABELS[3:])
    for tensor, array in zip(found, expected, strict=True):
        assert tensor.shape == array.shape and tensor.dtype.name == "uint8"
        np.testing.assert_array_equal(tensor.numpy(), array)


def check_cifar(found: datasets.Dataset) -> None:
    labels = (np.arange(12) % 10).astype(np.uint8)
    for tensor, array in zip(found, (COLORS[:10], labels[:10], COLORS[10:], labels[10:]), strict=True):
        assert tensor.shape == array.shape and tensor.dtype.name == "uint8"
        np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("packed", [False, True])
def test_local_files_packed_or_not(tmp_path: Path, packed: bool) -> None:
    for name, content in (CONTENTS | cifar_files()).items():
        (tmp_path / (name + ".gz" * packed)).write_bytes(gzip.compress(content) if packed else content)
    found = datasets.mnist(folder=tmp_path)
    assert {tensor.device for tensor in found} == {Device.DEFAULT}
    check_mnist(found)
    np.testing.assert_array_equal(found[0][Tensor([4, 0])].numpy(), PICTURES[[4, 0], None])
    moved = datasets.mnist("PYTHON", folder=str(tmp_path))
    assert {tensor.device for tensor in moved} == {"PYTHON"}
    check_mnist(moved)
    check_cifar(datasets.cifar(folder=tmp_path))


def test_downloads_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The published addresses and checksums, exchanged for those of files made here."""
    from tests.unit.runtime.test_storage import Answers, serving

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in cifar_files().items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    served = {f"/{name}.gz": gzip.compress(content) for name, content in CONTENTS.items()}
    served["/cifar.tar.gz"] = archive.getvalue()
    monkeypatch.setattr(Answers, "served", served)
    sums = [hashlib.md5(served[f"/{name}.gz"]).hexdigest() for name in CONTENTS]
    with serving() as address:
        monkeypatch.setattr(datasets, "_MNIST", f"{address}/")
        monkeypatch.setattr(datasets, "_CIFAR", f"{address}/cifar.tar.gz")
        with pytest.raises(RuntimeError, match="not f68b3c2dcbeaaa9fbdd348bbdeb94873: "):
            datasets.mnist()
        monkeypatch.setattr(datasets, "_MNIST_MD5", tuple(sums))
        monkeypatch.setattr(datasets, "_CIFAR_MD5", hashlib.md5(archive.getvalue()).hexdigest())
        check_mnist(datasets.mnist())
        check_cifar(datasets.cifar("PYTHON"))


def test_the_digits_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    train, train_labels, test, test_labels = datasets.digits()
    assert train.shape == (1437, 1, 8, 8) and test.shape == (360, 1, 8, 8)
    assert int(train.max().item()) == 16 and train.dtype.name == "uint8"
    labels = [*train_labels.tolist(), *test_labels.tolist()]
    assert labels == load_digits().target.tolist()


def test_invalid_dataset_files_are_refused(tmp_path: Path) -> None:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    first = tmp_path / "train-images-idx3-ubyte"
    for damaged, why in (
        (b"\x89PNG....", "is not an idx file of uint8: it begins with 89 50 4e 47"),
        (b"", "it begins with nothing"),
        (CONTENTS[first.name][:-1], r"has 3919 bytes of data, not those of shape \(5, 28, 28\)"),
        (CONTENTS[first.name][:9], "has 0 bytes of data"),
    ):
        first.write_bytes(damaged)
        with pytest.raises(FormatError, match=why):
            datasets.mnist(folder=tmp_path)
    first.unlink()
    with pytest.raises(FileNotFoundError, match="neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz in"):
        datasets.mnist(folder=tmp_path)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"not packed")
    with pytest.raises(FormatError, match="does not unpack as gzip"):
        datasets.mnist(folder=tmp_path)
    for name, content in cifar_files().items():
        (tmp_path / name).write_bytes(content[:-1])
    with pytest.raises(FormatError, match="not a multiple of"):
        datasets.cifar(folder=tmp_path)
    with pytest.raises(FormatError, match="not a tar archive"):
        tar_extract(Tensor(b"x" * 1000))

"""Image datasets: training images, training labels, test images and test labels, all uint8.

Files are read when a value is first needed. If no `folder` has them, they are downloaded once. `device`: the device of
the tensors; None is the default device.
"""

from __future__ import annotations

from math import prod
from os import PathLike
from pathlib import Path

from tinyexplore.nn.state.file import FormatError
from tinyexplore.nn.state.tar import tar_extract
from tinyexplore.tensor import Tensor
from tinyexplore.util import fetch
from tinyexplore.util.untrusted_data import UntrustedError, gunzip

Dataset = tuple[Tensor, Tensor, Tensor, Tensor]

_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_MNIST_MD5 = (
    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "d53e105ee54ea40749a09fcbcd1e9432",
    "9fb629c4189551a2d022fa330f9573f3",
    "ec29112dd5afa0611ce80d1b7f02629c",
)
_FASHION_MD5 = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
)
_CIFAR_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
_CIFAR_RECORD = 1 + 3 * 32 * 32  # the bytes of a record: the label, then the red, green and blue pixels
_DIGITS_TEST = 360
_MAX_UNPACKED_BYTES = 96_000_000  # most bytes in memory; the largest file of MNIST has 47 million


def mnist(device: str | None = None, fashion: bool = False, folder: str | PathLike[str] | None = None) -> Dataset:
    """Returns MNIST: handwritten digits of 28 × 28 pixels, 60 000 for training and 10 000 for testing. `fashion`:
    clothing instead.

    Images have shape (count, 1, 28, 28), values 0 … 255. `folder` holds the four idx files, compressed by gzip or not.
    """
    base, sums = (_FASHION, _FASHION_MD5) if fashion else (_MNIST, _MNIST_MD5)
    arrays = []
    for name, md5 in zip(_IDX_FILES, sums):
        if folder is None:
            content = Tensor.from_url(f"{base}{name}.gz", gunzip=True, checksum=f"md5:{md5}")
        else:
            content = _read_local(Path(folder), name)
        arrays.append(_read_idx(content, name).to(device))
    train, train_labels, test, test_labels = arrays
    return train.unsqueeze(1), train_labels, test.unsqueeze(1), test_labels


def cifar(device: str | None = None, folder: str | PathLike[str] | None = None) -> Dataset:
    """Returns CIFAR-10: photographs of 32 × 32 pixels in ten classes, 50 000 for training and 10 000 for testing.

    Images have shape (count, 3, 32, 32), values 0 … 255. `folder` holds the files of the "binary version".
    """
    names = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    if folder is None:
        archive = tar_extract(fetch(_CIFAR, gunzip=True, checksum=f"md5:{_CIFAR_MD5}"))
        missing = [name for name in names if f"cifar-10-batches-bin/{name}" not in archive]
        if missing:
            raise FormatError(f"{_CIFAR} lacks {', '.join(missing)}")
        files = {name: archive[f"cifar-10-batches-bin/{name}"] for name in names}
    else:
        files = {name: _read_local(Path(folder), name) for name in names}
    for name, content in files.items():
        if content.numel() % _CIFAR_RECORD:
            raise FormatError(
                f"{name}: {content.numel()} bytes is not a multiple of {_CIFAR_RECORD}, the bytes of one image"
            )
    batches = [files[name].reshape(-1, _CIFAR_RECORD).to(device) for name in names]
    train, test = batches[0].cat(*batches[1:-1]), batches[-1]
    return train[:, 1:].reshape(-1, 3, 32, 32), train[:, 0], test[:, 1:].reshape(-1, 3, 32, 32), test[:, 0]


def digits(device: str | None = None) -> Dataset:
    """Returns the handwritten digits of 8 × 8 pixels that come with scikit-learn: 1437 for training, the last 360 for
    testing.

    Images have shape (count, 1, 8, 8), values 0 … 16.
    """
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    x = Tensor(pictures.reshape(-1, 1, 8, 8).astype("uint8"), device=device)
    y = Tensor(labels.astype("uint8"), device=device)
    return x[:-_DIGITS_TEST], y[:-_DIGITS_TEST], x[-_DIGITS_TEST:], y[-_DIGITS_TEST:]


def _read_local(folder: Path, name: str) -> Tensor:
    """Returns the bytes of the file `name` in `folder`. If only its gzip file exists, decompresses that in memory."""
    path, packed = folder / name, folder / f"{name}.gz"
    if path.is_file():
        return Tensor(path)
    if not packed.is_file():
        raise FileNotFoundError(f"neither {name} nor {name}.gz in {folder}")
    try:
        with packed.open("rb") as file:
            return Tensor(b"".join(gunzip(file, _MAX_UNPACKED_BYTES)), device="NPY")
    except (OSError, UntrustedError) as error:
        hint = "; unpack the file with gunzip" if "more than" in str(error) else ""
        raise FormatError(f"{packed} does not unpack as gzip: {error}{hint}") from None


def _read_idx(content: Tensor, name: str) -> Tensor:
    """Returns the numbers of an idx file: two zeros, type 8 (uint8), the number of axes, their sizes (big-endian), the
    data."""
    head = bytes(content[:4].tolist())
    if len(head) < 4 or head[:3] != b"\0\0\x08" or not 1 <= head[3] <= 4:
        raise FormatError(f"{name} is not an idx file of uint8: it begins with {head.hex(' ') or 'nothing'}")
    start = 4 + 4 * head[3]
    sizes = bytes(content[4:start].tolist())
    shape = [int.from_bytes(sizes[offset : offset + 4], "big") for offset in range(0, len(sizes), 4)]
    data = content[start:]
    if len(sizes) != 4 * head[3] or prod(shape) != data.numel():
        raise FormatError(f"{name} has {data.numel()} bytes of data, not those of shape {tuple(shape)}")
    return data.reshape(shape)

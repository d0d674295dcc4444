"""Lists the files in a tar archive as lazy tensors of their bytes."""

from __future__ import annotations

import io
import tarfile

from tinyexplore.dtype import dtypes
from tinyexplore.nn.state.file import FormatError, Source, TensorFile
from tinyexplore.tensor import Tensor


def tar_extract(fn: Source) -> dict[str, Tensor]:
    """Returns the bytes of each file in a tar archive, by its name, on the archive's device. Unpacks nothing to
    disk."""
    file = TensorFile(fn)
    members = []
    try:
        with tarfile.open(fileobj=io.BufferedReader(file.stream()), mode="r:") as archive:
            while (member := archive.next()) is not None:
                if member.size < 0 or member.offset_data + member.size > file.nbytes:
                    raise file.error("a tar archive", f"{member.name:.80} is cut off")
                if member.isreg() and not member.issparse():
                    members.append(member)
    except FormatError:
        raise
    except (tarfile.TarError, ValueError, OSError, EOFError, OverflowError, MemoryError, RecursionError) as error:
        raise file.error("a tar archive", str(error)) from None
    return {member.name: file.tensor(member.offset_data, dtypes.uint8, (member.size,)) for member in members}

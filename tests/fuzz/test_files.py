"""Part of the fuzz of files: `python -m tests.fuzz.files --count 5000` runs more."""

from __future__ import annotations

import pytest

from tests.fuzz import files
from tests.fuzz.files import PARSERS, Failed, run_case, run_piece


@pytest.mark.parametrize("parser", sorted(PARSERS))
def test_a_damaged_file_is_refused_or_valid(parser: str) -> None:
    counts = run_piece(parser, 100_000, 150)
    assert counts.total() == 150
    assert counts["loaded"] > 5 and counts["refused"] > 15


def test_an_undocumented_exception_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumbles(content: bytes) -> None:
        raise KeyError(2)

    monkeypatch.setattr(files, "PARSERS", {"gguf": files.Parser(**{**vars(PARSERS["gguf"]), "load": stumbles})})
    with pytest.raises(Failed, match=r"(?s)--parser gguf --only 3.*KeyError: 2"):
        run_case("gguf", 3)
    monkeypatch.setattr(files, "SECONDS", 0.1)

    def hangs(content: bytes) -> None:
        while True:
            pass

    monkeypatch.setattr(files, "PARSERS", {"gguf": files.Parser(**{**vars(PARSERS["gguf"]), "load": hangs})})
    with pytest.raises(Failed, match="TooSlow"):
        run_case("gguf", 3)

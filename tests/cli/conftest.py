"""Runs the command line in this process, as its users would."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from running import TRAIN, Npuport, Result

from npuport.cli import main


@pytest.fixture
def npuport(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Npuport:
    """``npuport("analyze", path)`` gives exit code, stdout and stderr."""
    monkeypatch.setenv("NPUPORT_LANG", "en")
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*argv: object, stdin: bytes = b"") -> Result:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["npuport", *map(str, argv)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Result(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small CUDA project with one file that needs nothing."""
    root = tmp_path / "demo"
    root.mkdir()
    (root / "train.py").write_text(TRAIN)
    (root / "data.py").write_bytes(b"x = 1\r\n")
    return root

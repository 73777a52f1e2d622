"""Fixtures of the integration tests."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from tests.command import Done, Run

from askalike.cli.main import main


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words_alone: None) -> None:
    """Have a home of one's own, and no general model."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "home"))
    monkeypatch.delenv("ASKALIKE_ENCODERS", raising=False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what calls a command within this process, on a terminal of 100 columns."""

    def call(*words: object, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["askalike", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setenv("COLUMNS", "100")
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return Done(code, *capsys.readouterr())

    return call

"""The plugins for Apache Answer, in Go: against its interfaces, with a fake site and this askalike as a service."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "integrations" / "apache-answer"


def go(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Go without a network."""
    given = os.environ | {
        "GOPROXY": "off",
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "local",
        "ASKALIKE_PYTHON": sys.executable,
    }
    return subprocess.run(["go", *words], cwd=PLUGINS, env=given, capture_output=True, text=True, timeout=900)


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed (Debian: golang-go)")
def test_the_plugins_for_apache_answer_are_sound_and_answer_its_ask_form() -> None:
    formatted = subprocess.run(["gofmt", "-l", "."], cwd=PLUGINS, capture_output=True, text=True)
    assert (formatted.returncode, formatted.stdout) == (0, ""), formatted
    vetted = go("vet", "./...")
    assert vetted.returncode == 0, vetted.stderr
    tested = go("test", "-count=1", "./...")
    assert tested.returncode == 0, tested.stdout[-8_000:]
    assert "askalike.dev/apache-answer/client" in tested.stdout

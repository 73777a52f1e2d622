"""A killed writer leaves a forum that holds what it acknowledged; a few rounds of the benchmark's fifty."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from benchmarks.kill import Versions, one_round, write_versions

from askalike.data import bundled_forum


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    lines = bundled_forum().read_text(encoding="utf-8").splitlines()
    return write_versions(tmp_path_factory.mktemp("kill"), lines)


@pytest.mark.parametrize("kind", ["first", "again"])
def test_a_killed_forum_holds_every_acknowledged_write(tmp_path: Path, versions: Versions, kind: str) -> None:
    delay_s = random.Random(kind).uniform(0.2, 2.0)
    one_round(tmp_path / "killed.forum", versions, len(kind), kind, delay_s)

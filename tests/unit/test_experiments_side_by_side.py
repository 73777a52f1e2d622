"""Trainings beside each other: each is done once and told of; one that fails ends the others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from askalike.experiments.side_by_side import each_told


def write(folder: Path, name: str) -> None:
    if name == "bad":
        raise ValueError("it cannot be trained")
    if name == "slow":
        time.sleep(60)
    (folder / name).touch()


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_is_done_and_told_of(tmp_path: Path, jobs: int) -> None:
    told: list[tuple[str, str]] = []
    each_told(write, tmp_path, ["a", "b", "c"], lambda one, how: told.append((one, how)), jobs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]
    assert sorted(one for one, _ in told) == ["a", "b", "c"]
    assert [how.partition(",")[0] for _, how in told] == ["1 of 3 done", "2 of 3 done", "3 of 3 done"]


def test_one_that_fails_does_not_wait_for_the_others(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it cannot be trained"):
        each_told(write, tmp_path, ["slow", "bad", "slow"], lambda *_: None, 2)
    assert not list(tmp_path.iterdir())


def test_nothing_is_done_of_nothing(tmp_path: Path) -> None:
    each_told(write, tmp_path, [], lambda *_: None, 2)

"""Trainings beside each other: each is done once and told of; one that fails ends the others; a kill ends all.

And what came of them, on a terminal.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from askalike.cli.reproduce import comparison_table
from askalike.errors import SettingError
from askalike.evaluation import Interval
from askalike.papers.harness import Compared, Outcome, Row, RowResult, compare_rows, do_each

REPOSITORY = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from pathlib import Path
from askalike.papers.harness import do_each
from tests.unit.test_papers_harness import write_number

if __name__ == "__main__":
    do_each(write_number, Path(sys.argv[1]), ["a", "b"], 2)
"""


def write_number(folder: Path, name: str) -> None:
    (folder / f"{name}.part").write_text(str(os.getpid()))
    (folder / f"{name}.part").rename(folder / name)
    time.sleep(600)  # longer than anybody waits: it has to be ended


def is_running(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # ended, and nobody has asked how


def until(happened: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.02)
    return happened()


def write(folder: Path, name: str) -> None:
    if name == "bad":
        raise ValueError("it cannot be trained")
    if name == "slow":
        time.sleep(60)
    (folder / name).touch()


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_is_done_and_told_of(tmp_path: Path, jobs: int) -> None:
    begun: list[str] = []
    done: list[str] = []

    def end(task: str, result: object, seconds: float) -> None:
        assert seconds >= 0
        assert len(begun) - len(done) <= jobs, "no more are said to run than do"
        done.append(task)

    do_each(write, tmp_path, ["a", "b", "c"], jobs, on_begin=begun.append, on_done=end)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]
    assert (begun, sorted(done)) == (["a", "b", "c"], ["a", "b", "c"])


def test_one_that_fails_does_not_wait_for_the_others(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it cannot be trained"):
        do_each(write, tmp_path, ["slow", "bad", "slow"], 2)
    assert not list(tmp_path.iterdir())


def test_every_name_and_number_of_comparisons_fits_a_terminal_of_80_columns() -> None:
    better, worse, tasks = "attention-base-cosine", "untrained-base-cosine", ("dev", "test2016", "test2017")
    comparisons = [Compared(better, worse, task, Interval(-0.1234, -0.201, 0.1, 0.95), 0.0001) for task in tasks]
    shown = io.StringIO()
    Console(file=shown, width=80).print(comparison_table(comparisons))
    lines = [line.split() for line in shown.getvalue().splitlines()]
    row = [better, "vs", worse, "-12.34", "-20.1", "to", "+10.0", "0.0001"]
    assert lines[1:] == [line for task in tasks for line in ([task], row)]


def row_result(name: str, *by_seed: tuple[float, float], is_drawn: bool = True) -> RowResult[Row]:
    """Return a row with so many seeds, its average precisions of two queries given."""
    outcomes = [
        Outcome(name, seed, "", {"dev": {"map": {"q": first, "r": second}}})
        for seed, (first, second) in enumerate(by_seed)
    ]
    return RowResult.of(Row(name, "system", is_drawn=is_drawn), outcomes, None, ("map",))


def test_rows_are_compared_on_the_same_seeds_or_not_at_all() -> None:
    two, single = row_result("a", (1.0, 0.5), (0.5, 0.5)), row_result("b", (0.5, 0.5))
    with pytest.raises(SettingError, match=r"a with seeds \[0, 1\] and b with seeds \[0\] cannot be compared"):
        compare_rows(two, single, "dev")
    plain = row_result("bm25", (0.5, 0.0), is_drawn=False)
    comparison = compare_rows(two, plain, "dev")
    assert comparison.difference.mean == pytest.approx(0.375), "the row without seeds is the same for each"
    assert compare_rows(plain, two, "dev").difference.mean == pytest.approx(-0.375)


def test_an_interval_is_over_seeds_and_queries() -> None:
    of_seeds = row_result("a", (1.0, 1.0), (0.0, 0.0)).means["dev"]["map"].interval
    assert (of_seeds.low, of_seeds.high) == (0.0, 1.0), "queries are all alike, seeds are not"
    of_one = row_result("b", (0.5, 0.5)).means["dev"]["map"].interval
    assert (of_one.low, of_one.high) == (0.5, 0.5)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_training_goes_on_alone(tmp_path: Path, how: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "found"
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["src", "."])}
    with subprocess.Popen([sys.executable, str(program), str(folder)], cwd=REPOSITORY, env=environment) as process:
        began = until(lambda: (folder / "a").exists() and (folder / "b").exists())
        process.send_signal(how)
    assert began
    numbers = [int((folder / name).read_text()) for name in "ab"]
    try:
        assert until(lambda: not any(map(is_running, numbers)))
    finally:
        for number in filter(is_running, numbers):
            os.kill(number, signal.SIGKILL)

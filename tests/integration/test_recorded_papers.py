"""Rows of each paper's table on the real data sets, in a few minutes: the same figures as were recorded.

The trainings are far too short for good figures; they show that the recipe of a row is still what it was. To record
again after a change on purpose: ``python -m tests.integration.test_recorded_papers DATA [PAPER …]``, with a commit that
says why.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.command import Run

from askalike.cli.reproduce import PAPERS, paper_named

ROWS = {name: paper_named(name).rows for name in PAPERS}
ROUNDED, TRAINED = 2e-6, 0.06
"""What figures may differ by: of rows in which nothing is drawn, and of trainings, which other processors round
otherwise."""
RECORDED = Path(__file__).parents[1] / "recorded" / "papers.json"


def arguments(recorded: Mapping[str, Any], data_dir: Path, work: Path) -> list[str]:
    """Return the words of the command; a folder is made that holds the named parts of the data alone."""
    data = work / "data"
    for name in recorded["data"]:
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).symlink_to(data_dir / name)
    words = ["reproduce", recorded["paper"], "--data", str(data), "--out", str(work / "out"), "--jobs", "2", "--json"]
    if recorded["recipe"]:
        (work / "quick.toml").write_text(recorded["recipe"], encoding="utf-8")
        words += ["--recipe", str(work / "quick.toml")]
    return [*words, *recorded["options"]]


def figures(shown: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return row → task → measure → mean."""
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for table in shown["sets"].values():
        for row in table["rows"]:
            by_task = rows.setdefault(row["row"], {})
            for task, measures in row["found"].items():
                by_task[task] = {measure: round(mean["mean"], 6) for measure, mean in measures.items()}
    return rows


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    "recorded", json.loads(RECORDED.read_bytes())["runs"], ids=lambda run: "-".join([run["paper"], run["data"][0]])
)
def test_rows_have_the_recorded_figures(recorded: dict[str, Any], data_dir: Path, tmp_path: Path, run: Run) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    done = run(*arguments(recorded, data_dir, tmp_path))
    assert done.code == 0, done.err
    shown = figures(done.json)
    assert shown.keys() == recorded["found"].keys()
    for row, by_task in recorded["found"].items():
        allowed = TRAINED if ROWS[recorded["paper"]][row].is_drawn else ROUNDED
        for task, measures in by_task.items():
            assert shown[row][task] == pytest.approx(measures, abs=allowed), f"{row}, {task}"


def record(data_dir: Path, papers: Collection[str]) -> None:
    """Write the figures of all runs of these papers, of all for none."""
    import subprocess

    content = json.loads(RECORDED.read_bytes())
    for recorded in content["runs"]:
        if papers and recorded["paper"] not in papers:
            continue
        with TemporaryDirectory() as work:
            words = [sys.executable, "-m", "askalike", *arguments(recorded, data_dir, Path(work))]
            recorded["found"] = figures(json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout))
        RECORDED.write_text(written(content["runs"]), encoding="utf-8")


def written(runs: Iterable[Mapping[str, Any]]) -> str:
    """Return the runs as JSON with a line for each row, so that a change shows the rows it is of."""

    def one(recorded: Mapping[str, Any]) -> str:
        head = json.dumps({name: value for name, value in recorded.items() if name != "found"}).removesuffix("}")
        rows = ",\n".join(f"  {json.dumps(row)}: {json.dumps(figures)}" for row, figures in recorded["found"].items())
        return f'{head}, "found": {{\n{rows}\n }}}}'

    return '{"runs": [\n ' + ",\n ".join(map(one, runs)) + "\n]}\n"


if __name__ == "__main__":
    record(Path(sys.argv[1]), sys.argv[2:])

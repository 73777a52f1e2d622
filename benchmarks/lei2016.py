"""The tables of Lei et al. 2016 from trainings that are finished; trains nothing.

Command: ``python -m benchmarks.lei2016 --out FOLDER [--vectors FILE]``, after ``askalike reproduce lei2016 --out
FOLDER``, with the same word vectors. The sets are those of ASKALIKE_DATA that the folder has trainings of. A row stands
for the seeds that are finished; rows without an encoder are run where they have not been. Writes
``results/lei2016.json``: what the command prints with ``--json``; ``results/lei2016-logs.csv.gz``: the course of every
finished training; ``docs/pretraining.svg``: that of pre-training.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from askalike.papers.harness import RowResult, tie_settings
from askalike.papers.lei2016.rows import ROWS, LeiRow
from askalike.papers.lei2016.sets import LeiSet, find_sets
from askalike.papers.lei2016.table import runner_of, table_object
from askalike.papers.lei2016.training import EncoderTrainer
from askalike.training.recipe import network_recipe
from benchmarks.lei2016_logs import draw_pretraining, read_logs
from benchmarks.logs import write_logs
from benchmarks.record import DATA, REPOSITORY, RESULTS, write

COMMAND = "python -m benchmarks.lei2016"
LOGS = RESULTS / "lei2016-logs.csv.gz"
FIGURE = REPOSITORY / "docs" / "pretraining.svg"
MOST_SEEDS = 100


def untrained(row: LeiRow, seed: int, data: LeiSet, folder: Path) -> NoReturn:
    """Stand for what trains an encoder, which is never asked here."""
    raise AssertionError(f"{data.name}: {row.id}, seed {seed} is finished, but {folder} was to be trained")


def table_of(data: LeiSet, out: Path) -> list[RowResult[LeiRow]]:
    """Return all rows over the seeds that are finished."""
    runner = runner_of(data, out, untrained)
    runner.run_all([row for row in ROWS.values() if not row.is_drawn], [0], print, what=f"{data.name}: ")
    reasons = {row.id: "no training of it is finished" for row in ROWS.values()}
    return runner.results(ROWS.values(), range(MOST_SEEDS), reasons)


def main() -> None:
    """Read what is finished and write table, logs and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the trainings")
    parser.add_argument("--vectors", type=Path, help="the file of word vectors that they began with")
    given = parser.parse_args()
    sets = {name: read() for name, read in find_sets(DATA).items()}
    trained = [name for name in sets if (given.out / name).is_dir()]
    if not trained:
        sys.exit(f'{given.out} holds no trainings; run "askalike reproduce lei2016 --out {given.out}" first')
    encoders = EncoderTrainer(network_recipe("lei2016"), sets, vectors=given.vectors)
    tie_settings(
        given.out, encoders.described()
    )  # an error where the folder is of another recipe, other texts or other vectors
    tables = {name: table_of(sets[name], given.out) for name in trained}
    done = {(name, result.row.id, seed) for name, found in tables.items() for result in found for seed in result.seeds}
    logs = read_logs(given.out, done)
    write_logs(logs, LOGS)
    has_figure = draw_pretraining(logs, FIGURE)
    write(
        "lei2016",
        f"{COMMAND} --out FOLDER" + (" --vectors FILE" if given.vectors else ""),
        {
            "paper": "lei2016",
            "sets": {name: table_object(sets[name], found) for name, found in tables.items()},
            "training": encoders.described(),
            "logs": LOGS.name,
            "figure": FIGURE.name if has_figure else None,
        },
    )


if __name__ == "__main__":
    main()

"""The tables of Lei et al. 2016 from trainings that are finished; trains nothing.

Command: ``python -m benchmarks.lei2016 --out FOLDER [--vectors FILE]``, after ``askalike reproduce lei2016 --out
FOLDER``, with the same word vectors. The sets are those of ASKALIKE_DATA that the folder has trainings of. A row stands
for the seeds that are finished; rows without an encoder are run where they have not been. Writes
``results/lei2016.json``: what the command prints with ``--json``; ``results/lei2016-logs.csv.gz``: the course of every
finished training; ``results/lei2016-SET-outcomes.zip``: each query's values; ``docs/pretraining.svg``: that of
pre-training.

``--baselines`` runs the rows without an encoder alone and puts them in the place of what was published of them.
Encoders that were published stay as they were but for what was tested against BM25: no query's values were kept.
``--variants NAME`` writes what is finished to files of their own, NAME in place of ``lei2016``: other readings and the
official program's settings beside the rows that they are to be compared with, trained with the same word vectors. What
the ZIP files hold and the folder lacks is written into the folder first; ``--take-back`` does this alone: then
``askalike reproduce`` goes on from there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from askalike.papers.harness import RowResult, tie_settings
from askalike.papers.lei2016.rows import ROWS, LeiRow
from askalike.papers.lei2016.sets import LeiSet, find_sets
from askalike.papers.lei2016.table import BASELINE, EncoderTrainer, runner_of, table_object
from askalike.training.recipe import network_recipe
from benchmarks.lei2016_logs import draw_pretraining, read_logs
from benchmarks.logs import write_logs
from benchmarks.outcomes import keep, take_back
from benchmarks.record import DATA, REPOSITORY, RESULTS, write

COMMAND = "python -m benchmarks.lei2016"
FIGURE = REPOSITORY / "docs" / "pretraining.svg"
MOST_SEEDS = 100


def untrained(row: LeiRow, seed: int, data: LeiSet, folder: Path) -> NoReturn:
    """Stand for what trains an encoder, which is never asked here."""
    raise AssertionError(f"{data.name}: {row.id}, seed {seed} is finished, but {folder} was to be trained")


def archive_of(title: str, name: str) -> Path:
    """Return the file of a set's values by query."""
    return RESULTS / f"{title}-{name}-outcomes.zip"


def keep_values(title: str, out: Path, tables: Mapping[str, Sequence[RowResult[LeiRow]]]) -> list[str]:
    """Write each query's values of what is finished, a file a set; return their names."""
    names = []
    for name, found in tables.items():
        archive = archive_of(title, name)
        keep((out / name / f"{one.row.id}-seed{seed}.json" for one in found for seed in one.seeds), archive)
        names.append(archive.name)
    return names


def table_of(data: LeiSet, out: Path, settings: Mapping[str, object]) -> list[RowResult[LeiRow]]:
    """Return all rows over the seeds that are finished.

    Args:
        settings: what decides encoders; outcomes of others are left out.
    """
    runner = runner_of(data, out, untrained, settings)
    runner.run_all([row for row in ROWS.values() if not row.is_drawn], [0], print, what=f"{data.name}: ")
    reasons = {row.id: "no training of it is finished" for row in ROWS.values()}
    return runner.results(ROWS.values(), range(MOST_SEEDS), reasons)


def with_baselines(published: Mapping[str, Any], sets: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return published tables with the rows of others that were run, and without p of rows that could not be tested.

    Args:
        published: ``sets`` of the results file.
        sets: the same, of which encoders were not run.
    """
    made = {}
    for name, now in sets.items():
        before = published[name]
        new = {row["row"]: row for row in now["rows"] if row["found"]}
        old = {row["row"]: row for row in before["rows"]}
        tests = list(now["tasks"])
        is_same = all(new[BASELINE]["found"][task] == old[BASELINE]["found"][task] for task in tests)
        rows = [new.get(row["row"]) or _untested(old.get(row["row"], row), row, is_same) for row in now["rows"]]
        renamed = [one if is_same else _renamed(one) for one in before["compared"]]
        known = {(one["better"], one["worse"], one["task"]) for one in now["compared"]}
        kept = [one for one in renamed if (one["better"], one["worse"], one["task"]) not in known]
        made[name] = {**now, "rows": rows, "compared": [*kept, *now["compared"]]}
    return made


def _untested(old: Mapping[str, Any], row: Mapping[str, Any], is_same: bool) -> dict[str, Any]:
    """Return a published row with today's reported figures; without its p where BM25 is another row than it was."""
    found = {
        task: {name: one if is_same else {**one, "p_value": None} for name, one in values.items()}
        for task, values in old["found"].items()
    }
    return {**old, "reported": row["reported"], "thesis": row["thesis"], "found": found}


def _renamed(compared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comparison with the candidates' search under its own name."""
    names = {side: "candidate-search" if compared[side] == BASELINE else compared[side] for side in ("better", "worse")}
    return {**compared, **names}


def main() -> None:
    """Read what is finished and write table, logs and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the trainings")
    parser.add_argument("--vectors", type=Path, help="the file of word vectors that they began with")
    parser.add_argument("--baselines", action="store_true", help="run rows without an encoder, keep published encoders")
    parser.add_argument("--variants", metavar="NAME", help="write to files of their own, finished rows alone")
    parser.add_argument("--take-back", action="store_true", help="write what was published into the folder, no more")
    given = parser.parse_args()
    title = given.variants or "lei2016"
    for name in find_sets(DATA):
        back = take_back(archive_of(title, name), given.out / name)
        print(f"{len(back)} files of {archive_of(title, name).name} written into {given.out / name}")
    if given.take_back:
        return
    sets = {name: read() for name, read in find_sets(DATA).items()}
    if given.baselines:
        published = json.loads((RESULTS / "lei2016.json").read_bytes())
        tables = {name: table_of(data, given.out, {}) for name, data in sets.items()}
        objects = {name: table_object(sets[name], found) for name, found in tables.items()}
        body = {key: published[key] for key in ("paper", "training", "logs", "figure")}
        merged = with_baselines(published["sets"], objects)
        about = {
            "outcomes": keep_values(title, given.out, tables),
            "encoders_from": published.get("encoders_from", published["commit"]),
            "without_values": True,
        }
        write("lei2016", f"{COMMAND} --out FOLDER --baselines", {**body, "sets": merged, **about})
        return
    trained = [name for name in sets if (given.out / name).is_dir()]
    if not trained:
        sys.exit(f'{given.out} holds no trainings; run "askalike reproduce lei2016 --out {given.out}" first')
    encoders = EncoderTrainer(network_recipe("lei2016"), sets, vectors=given.vectors)
    settings = encoders.described()
    tie_settings(given.out, settings)  # an error where the folder is of another recipe, other texts or other vectors
    tables = {name: table_of(sets[name], given.out, settings) for name in trained}
    if given.variants:
        tables = {name: [row for row in rows if row.seeds] for name, rows in tables.items()}
        tables = {name: rows for name, rows in tables.items() if any(row.row.encoder for row in rows)}
    done = {(name, result.row.id, seed) for name, found in tables.items() for result in found for seed in result.seeds}
    logs = read_logs(given.out, done)
    kept = RESULTS / f"{title}-logs.csv.gz"
    write_logs(logs, kept)
    has_figure = not given.variants and draw_pretraining(logs, FIGURE)
    options = (" --vectors FILE" if given.vectors else "") + (f" --variants {given.variants}" if given.variants else "")
    write(
        title,
        f"{COMMAND} --out FOLDER{options}",
        {
            "paper": "lei2016",
            "sets": {name: table_object(sets[name], found) for name, found in tables.items()},
            "training": settings,
            "logs": kept.name,
            "figure": FIGURE.name if has_figure else None,
            "outcomes": keep_values(title, given.out, tables),
        },
    )


if __name__ == "__main__":
    main()

"""The table of Das et al. 2016 from rows that are finished; trains nothing.

Command: ``python -m benchmarks.das2016 --out FOLDER``, after ``askalike reproduce das2016 --out FOLDER`` on the folder
of the data sets. A row stands for the seeds that are finished. Writes ``results/das2016.json``,
``results/das2016-outcomes.zip`` (every query's value of every row and seed) and, where networks were trained,
``docs/siamese.svg`` (the paper's figures 3 and 5, of dev sets) and ``results/das2016-logs.csv.gz``; with ``--pairs N``,
which stands for as many questions as the rows learned from, ``-N`` is part of these names.

What the ZIP file holds and the folder lacks is written into the folder first, and counts as finished where data, recipe
and grids are what they were. ``--take-back`` does this alone: then ``askalike reproduce`` goes on from there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from askalike.cli.display import BarProgress
from askalike.evaluation.forum.tasks import RerankTask
from askalike.papers.das2016.data import DasData, read_data
from askalike.papers.das2016.rows import REPORTED_ALPHA, ROWS, DasRow
from askalike.papers.das2016.table import runner_of, table_object
from askalike.papers.harness import RowResult
from askalike.papers.paper import Options
from askalike.training.loop import read_log
from benchmarks.logs import Course, read_logs, write_logs
from benchmarks.outcomes import keep, take_back
from benchmarks.record import REPOSITORY, RESULTS, need_data, write

COMMAND = "python -m benchmarks.das2016"
SEEDS = range(5)
NETWORKS = {"scqa": "-", "dsqa": "--", "scqa-sum": ":", "dsqa-sum": "-."}
"""Network → how it is drawn."""
WEIGHED = ("t-scqa", "t-dsqa")
SET = "stand-ins"
RIVALS = ("lmir", "phrase", "sqatm", "t-dsqa")
"""Whose answers the paper's table 3 shows beside those of T-SCQA."""
OURS = "t-scqa"


def alpha_curves(found: Sequence[RowResult[DasRow]]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Return row → set → (α, MAP of dev), each the mean over seeds."""
    made: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for one in found:
        if one.row.id not in WEIGHED or not one.outcomes:
            continue
        for name in one.outcomes[0].tried:
            by_seed = [{entry["alpha"]: entry["dev_map"] for entry in each.tried[name]} for each in one.outcomes]
            curve = [(alpha, sum(seed[alpha] for seed in by_seed) / len(by_seed)) for alpha in by_seed[0]]
            made.setdefault(one.row.id, {})[name] = curve
    return made


def examples(data: DasData, found: Sequence[RowResult[DasRow]]) -> Iterator[dict[str, Any]]:
    """Yield for each rival the first query of dev whose best candidate T-SCQA alone has right, and it alone has."""
    first = {one.row.id: one.outcomes[0].first for one in found if one.outcomes}
    rivals = [name for name in RIVALS if name in first] if OURS in first else []
    for rival, is_better in product(rivals, (True, False)):
        for task in (one.dev for one in data.sets):
            ours, theirs = first[OURS][task.name], first[rival][task.name]
            query = next((query for query in sorted(ours) if _parts(task, query, ours, theirs, is_better)), None)
            if query is not None:
                shown = {OURS: ours[query], rival: theirs[query]}
                yield {
                    "task": task.name,
                    "query": task.queries[query].title,
                    "rival": rival,
                    "is_better": is_better,
                    "found": {
                        name: [[task.documents[one].title, int(task.qrels[query].get(one, 0) > 0)] for one in ids]
                        for name, ids in shown.items()
                    },
                }
                break


def _parts(task: RerankTask, query: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], is_better: bool) -> bool:
    ranked = [task.qrels[query].get(ids[query][0], 0) > 0 for ids in (ours, theirs)]
    return ranked == [is_better, not is_better]


def courses(out: Path, found: Sequence[RowResult[DasRow]], published: Sequence[Course]) -> list[Course]:
    """Return the course of every network whose row is finished.

    Args:
        published: of networks that the folder has not.
    """
    held = {(one.row, one.seed): one for one in published}
    made = []
    for name, seed in ((one.row.id, outcome.seed) for one in found for outcome in one.outcomes):
        log = out / f"{name}-seed{seed}" / "log.csv"
        if name in NETWORKS and log.exists():
            made.append(Course(SET, name, seed, read_log(log)))
        elif (name, seed) in held:
            made.append(held[name, seed])
    return made


def by_epoch(trained: Sequence[Course], dev: Sequence[str]) -> dict[str, Any]:
    """Return network → dev set → the mean over seeds of MAP and MRR by epoch, as far as all seeds went."""
    made: dict[str, Any] = {}
    for name, task, measure in product(NETWORKS, dev, ("map", "mrr")):
        curves = [one.curve(f"{task} {measure}") for one in trained if one.row == name]
        curves = [curve for curve in curves if curve]
        if curves:
            rows = zip(*curves, strict=False)
            means = [[points[0][0], round(sum(value for _, value in points) / len(points), 5)] for points in rows]
            made.setdefault(name, {}).setdefault(task, {})[measure] = means
    return made


def draw(epochs: Mapping[str, Any], alphas: Mapping[str, Any], path: Path) -> None:
    """Draw MAP of dev sets by epoch and by α."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "askalike", "svg.fonttype": "none", "font.size": 9}
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4))
    tasks = list(dict.fromkeys(task for found in epochs.values() for task in found))
    for name, found in epochs.items():
        for task, curves in found.items():
            style = NETWORKS[name]
            points = [(epoch, 100 * value) for epoch, value in curves["map"]]
            left.plot(
                *zip(*points, strict=True), style, color=f"C{tasks.index(task)}", linewidth=1, label=f"{name}, {task}"
            )
    left.set(xlabel="epoch", ylabel="MAP of dev")
    left.xaxis.get_major_locator().set_params(integer=True)
    for row, found in alphas.items():
        for place, (name, curve) in enumerate(found.items()):
            style = "-" if row == OURS else "--"
            points = [(alpha, 100 * value) for alpha, value in curve]
            right.plot(*zip(*points, strict=True), style, color=f"C{place}", linewidth=1, label=f"{row}, {name}")
    right.axvline(REPORTED_ALPHA, color="grey", linestyle=":", linewidth=1)
    right.set(xlabel="weight α of the network beside BM25", ylabel="MAP of dev")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    print(f"wrote {path}")


def main() -> None:
    """Read what is finished and write table, logs and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the rows")
    parser.add_argument("--pairs", type=int, default=0, help="questions that were learned from, 0 for all")
    parser.add_argument("--take-back", action="store_true", help="write what was published into the folder, no more")
    given = parser.parse_args()
    name = f"das2016-{given.pairs}" if given.pairs else "das2016"
    kept = RESULTS / f"{name}-outcomes.zip"
    back = take_back(kept, given.out / "rows")
    print(f"{len(back)} files of {kept.name} written into {given.out / 'rows'}")
    if given.take_back:
        return
    folder = need_data("semeval-task3-b").parent
    options = Options(data=folder, out=given.out, recipe="scqa", pairs=given.pairs)
    data = read_data(folder, given.pairs)
    with BarProgress() as progress:
        found = runner_of(data, options, progress).results(ROWS.values(), SEEDS)
    if not any(one.outcomes for one in found):
        raise SystemExit(f"no row is finished in {given.out}")
    logs = RESULTS / f"{name}-logs.csv.gz"
    figure = REPOSITORY / "docs" / f"{name.replace('das2016', 'siamese')}.svg"
    trained, alphas = courses(given.out, found, read_logs(logs)), alpha_curves(found)
    epochs = by_epoch(trained, [one.dev.name for one in data.sets])
    body = {
        "paper": "das2016",
        **table_object(data, data.sets, found),
        "by_epoch": epochs,
        "by_alpha": alphas,
        "examples": list(examples(data, found)),
        "logs": logs.name if trained else None,
        "figure": figure.name if trained else None,
        "outcomes": kept.name,
    }
    if trained:
        write_logs(trained, logs)
        draw(epochs, alphas, figure)
    keep((given.out / "rows" / f"{one.row.id}-seed{seed.seed}.json" for one in found for seed in one.outcomes), kept)
    write(name, f"{COMMAND} --out FOLDER" + (f" --pairs {given.pairs}" if given.pairs else ""), body)


if __name__ == "__main__":
    main()

"""The tables of Zhang and Wu 2018 from trainings that are finished; trains nothing.

Command: ``python -m benchmarks.zhang2018 --out FOLDER --amount N --amount M …``, after ``askalike reproduce zhang2018
--out FOLDER`` with the same amounts and ``--unlabelled`` for each of ``ARCHIVES``. A row stands for the seeds that are
finished. Amounts that are not named, and kinds of which nothing is finished, stay as they were published, so that a
curve grows point by point; every comparison says by which commit both its rows were scored. Writes
``results/zhang2018.json``, ``results/zhang2018-logs.csv.gz`` (the course of every training) and
``docs/autoencoders.svg`` (loss by epoch of both autoencoders).

With ``--first NAME``, where amounts took the texts of an archive in the folder NAME first (``askalike reproduce
zhang2018 --first`` with the archive's own name), ``-NAME`` is part of the first two names and nothing is drawn; with
``--recipe FILE`` the file's name is, and each row of the attention autoencoder stands beside its like in
``results/zhang2018.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from askalike.cli.display import BarProgress
from askalike.evaluation.forum.tasks import Matcher, RerankTask, judge
from askalike.evaluation.significance import bootstrap_difference, randomisation_test
from askalike.index.states import ModelStates
from askalike.models.ramn import RamnSettings
from askalike.papers.harness import RowResult, tie_settings
from askalike.papers.zhang2018.autoencoders import Autoencoder, AutoencoderTrainer
from askalike.papers.zhang2018.data import read_data
from askalike.papers.zhang2018.rows import KINDS, RamnRow
from askalike.papers.zhang2018.table import measured, tables_object
from askalike.search.networks import StateSource
from askalike.training.loop import read_log
from askalike.training.recipe import network_recipe
from askalike.types import Run
from benchmarks.logs import Course, read_logs, write_logs
from benchmarks.record import REPOSITORY, RESULTS, need_data, stamp, write
from benchmarks.tune_ramn import Recounted

COMMAND = "python -m benchmarks.zhang2018"
ARCHIVES = ("reddit/questions.jsonl.gz", "slicer-discourse/topics.jsonl.gz")
FIGURE = REPOSITORY / "docs" / "autoencoders.svg"
MAIN = RESULTS / "zhang2018.json"
MOST_SEEDS = 100
EXAMPLES = 3
CURVES = {"loss": "loss of training, nats a word", "perplexity": "perplexity of held-out texts"}
"""Measure of the log → what its axis is called."""


def draw_curves(courses: Sequence[Course], path: Path) -> None:
    """Draw loss and perplexity by epoch, a line an autoencoder and seed."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "askalike", "svg.fonttype": "none", "font.size": 9}
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(1, len(CURVES), figsize=(9, 3.2))
    kinds = list(dict.fromkeys(course.row for course in courses))
    for (measure, label), axis in zip(CURVES.items(), axes, strict=True):
        for course in courses:
            curve = course.curve(measure)
            if measure == "perplexity":
                curve = [point for point in curve if point[0] > 0]
            if curve:
                colour = f"C{kinds.index(course.row)}"
                axis.plot(*zip(*curve, strict=True), color=colour, linewidth=1, label=course.row)
        axis.set(xlabel="epoch", ylabel=label)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.yaxis.set_minor_formatter(ticker.FormatStrFormatter("%g"))
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3, which="both")
    lines, labels = axes[0].get_legend_handles_labels()
    by_label = dict(zip(labels, lines, strict=True))  # the seeds of a kind share one
    axes[0].legend(by_label.values(), by_label)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    print(f"wrote {path}")


def reconstructions(trainer: AutoencoderTrainer, amount: int) -> list[dict[str, Any]]:
    """Return the first held-out texts, and what the decoder of each kind with seed 0 made of them."""
    found: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        file = Autoencoder(kind, amount, 0).folder(trainer.out) / "examples.json"
        if file.exists():
            for example in json.loads(file.read_bytes())[:EXAMPLES]:
                found.setdefault(example["read"], {"read": example["read"]})[kind] = example["written"]
    return list(found.values())


def epochs(courses: Sequence[Course]) -> dict[str, Any]:
    """Return for each kind and amount the median seconds of an epoch and the perplexity reached, by seed."""
    found: dict[str, Any] = {}
    for course in courses:
        seconds = [value for _, value in course.curve("seconds")]
        perplexities = [value for _, value in course.curve("perplexity")]
        row = found.setdefault(f"{course.row}, {course.dataset} texts", {"epoch_s": [], "epochs": [], "perplexity": []})
        row["epoch_s"].append(round(statistics.median(seconds), 1) if seconds else 0.0)
        row["epochs"].append(len(seconds))
        row["perplexity"].append(round(min(perplexities, default=0.0), 2))
    return found


def finished(trainer: AutoencoderTrainer, amounts: Sequence[int]) -> list[Course]:
    """Return the course of every finished training of these amounts.

    Raises:
        SystemExit: there is none, so that no result is overwritten with an empty one.
    """
    ones = [Autoencoder(kind, amount, seed) for amount in amounts for kind in KINDS for seed in range(MOST_SEEDS)]
    found = [
        Course(_named(one.size), one.kind, one.seed, read_log(one.folder(trainer.out) / "log.csv"))
        for one in ones
        if trainer.is_finished(one)
    ]
    if not found:
        raise SystemExit(f"no training of {', '.join(map(_named, amounts))} texts is finished in {trainer.out}")
    return found


def drawn_amount(courses: Sequence[Course], amounts: Sequence[int]) -> int:
    """Return the largest amount of which both kinds are finished; if there is none, the largest that is.

    Args:
        amounts: rising, 0 for all.
    """
    kinds = {amount: {one.row for one in courses if one.dataset == _named(amount)} for amount in amounts}
    both = [amount for amount in amounts if kinds[amount] == set(KINDS)]
    return (both or [amount for amount in amounts if kinds[amount]])[-1]


PARTS = ("tried_on_dev", "epochs", "measured")
"""What a result has of each kind and amount."""


def with_published(body: Mapping[str, Any], published: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what was published of rows that it has not.

    Args:
        body: ``rows``, ``compared``, ``tried_on_dev``, ``epochs`` and ``measured`` of some kinds and amounts.
        published: the same of some, or nothing.
    """
    shared = [row for row in body["rows"] if not row["texts"]]
    rows = _joined(published.get("rows", []), body["rows"], ("texts", "row"))
    order = list(dict.fromkeys(row["row"] for row in (*body["rows"], *rows)))
    rows.sort(key=lambda row: (row["texts"], order.index(row["row"])))
    parts = {name: {**published.get(name, {}), **body[name]} for name in PARTS}
    before = published.get("compared", {})
    compared = {
        amount: _joined(before.get(amount, []), body["compared"].get(amount, []), ("better", "worse", "task"))
        for amount in sorted({*before, *body["compared"]}, key=int)
    }
    return {**body, "rows": [*shared, *(row for row in rows if row["texts"])], **parts, "compared": compared}


def _joined(
    before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return what there is now, then what there was before of other names."""
    new = {tuple(one[name] for name in names) for one in now}
    return [*now, *(one for one in before if tuple(one[name] for name in names) not in new)]


UNKNOWN = ("once", "never", "as UNK")
"""How often a word that the corpus does not hold is said to have occurred in it: once; never, which gives a candidate
that lacks it a product of 0; or as often as all words together that the model has no vector of."""
COSTED = ("mismatch", "full", "clamped")


def without_missing(matcher: Matcher, task: RerankTask, settings: RamnSettings) -> Run:
    """Return the run in which every candidate that lacks an unknown word of the query has the same lowest score."""
    compared = matcher.comparisons(task, settings.similarity)
    run: Run = {}
    for query, found in matcher.run(task, settings).items():
        one = compared[query]
        is_unknown = matcher.source.frequencies(one.words) == 0  # (T,)
        is_zero = (~one.occurs & is_unknown[:, None]).any(axis=0)  # (N,)
        least = min(score for _, score in found) - 1
        run[query] = [(name, least if zero else score) for (name, score), zero in zip(found, is_zero, strict=True)]
    return run


def unknown_on_dev(
    trainer: AutoencoderTrainer, amount: int, rows: Sequence[RowResult[RamnRow]]
) -> list[dict[str, Any]]:
    """Return dev MAP, the mean over seeds, of the attention autoencoder's rows by what an unknown word costs."""
    ones = [Autoencoder("attention", amount, seed) for seed in range(MOST_SEEDS)]
    models = [trainer.model(one) for one in ones if trainer.is_finished(one)]
    size, dev = amount or len(trainer.data.texts), trainer.data.dev
    chosen = {one.row.id.partition("-")[2]: one.row.settings for one in rows if one.row.size == size}
    found = []
    for unknown in UNKNOWN if models else ():
        sources: list[StateSource] = [ModelStates(model) for model in models]
        if unknown == "as UNK":
            often = [int(model.counts[0]) for model in models if model.counts is not None]
            sources = [Recounted(source, count) for source, count in zip(sources, often, strict=True)]
        matchers = list(map(Matcher, sources))
        scored = without_missing if unknown == "never" else Matcher.run
        values = {
            name: statistics.fmean(judge(dev, scored(one, dev, settings)).means["map"] for one in matchers)
            for name in COSTED
            if (settings := chosen.get(name)) is not None
        }
        found.append({"texts": size, "unknown": unknown, "seeds": len(models), **values})
    return found


def beside(rows: Sequence[Mapping[str, Any]], published: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what each row has more than the row of the same name and amount that was published, by task."""
    like = {(one["row"], one["texts"]): one.get("average_precision") for one in published}
    found = []
    for row in rows:
        before = like.get((row["row"], row["texts"])) if row["texts"] and row["row"].startswith("attention-") else None
        if before is None:
            continue
        for task, values in row["average_precision"].items():
            first, second = list(values.values()), [before[task][query] for query in values]
            gained = bootstrap_difference(first, second)
            found.append(
                {
                    "row": row["row"],
                    "task": task,
                    "difference": gained.mean,
                    "interval95": [gained.low, gained.high],
                    "p_value": randomisation_test(first, second).p_value,
                }
            )
    return found


def _named(amount: int) -> str:
    return str(amount or "all")


def main() -> None:
    """Read what is finished and write tables, logs and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the trainings")
    parser.add_argument("--amount", type=int, action="append", required=True, help="texts, 0 for all")
    parser.add_argument("--recipe", default="ramn", help="what they were trained by")
    first = {name.partition("/")[0]: name.rpartition("/")[2] for name in ARCHIVES}
    parser.add_argument("--first", choices=tuple(first), help="the folder of the archive whose texts came first")
    given = parser.parse_args()
    archives = tuple(need_data(name) for name in ARCHIVES)
    data = read_data(need_data("semeval-task3-b"), archives)
    name = "zhang2018"
    if given.first:
        data, name = data.beginning_with(first[given.first]), f"zhang2018-{given.first}"
    elif given.recipe != "ramn":
        name = f"zhang2018-{Path(given.recipe).stem}"
    is_main = name == "zhang2018"
    result, logs = RESULTS / f"{name}.json", RESULTS / f"{name}-logs.csv.gz"
    amounts = tuple(sorted(set(given.amount), key=lambda amount: amount or len(data.texts)))
    with BarProgress() as progress:
        trainer = AutoencoderTrainer(network_recipe(given.recipe), data, given.out, progress=progress)
        courses = finished(trainer, amounts)
        tie_settings(given.out, trainer.described())
        rows, choices = measured(trainer, KINDS, amounts, range(MOST_SEEDS))
    published = json.loads(result.read_bytes()) if result.exists() else {}
    new = set(map(_key, courses))
    courses += [course for course in read_logs(logs) if _key(course) not in new]
    courses.sort(key=lambda course: (_size(course) or len(data.texts), course.row, course.seed))
    drawn = drawn_amount(courses, list(dict.fromkeys(map(_size, courses))))
    write_logs(courses, logs)
    if is_main:
        draw_curves([course for course in courses if course.dataset == _named(drawn)], FIGURE)
    tables: Mapping[str, Any] = tables_object(data, rows, choices)
    limit = max(stage.loop.epochs for stage in trainer.recipe.stages)
    made = {name: {**stamp(), "most_epochs": limit} for name in epochs([one for one in courses if _key(one) in new])}
    scored = {amount: [{**one, **stamp()} for one in found] for amount, found in tables["compared"].items()}
    body = with_published({**tables, "compared": scored, "epochs": epochs(courses), "measured": made}, published)
    written = reconstructions(trainer, drawn) or published.get("reconstructions", [])
    amounts_of_rows = dict.fromkeys(row["texts"] for row in body["rows"] if row["texts"])
    options = [f"--amount {amount}" for amount in amounts_of_rows] + ([f"--first {given.first}"] if given.first else [])
    options += [f"--recipe {given.recipe}"] if given.recipe != "ramn" else []
    write(
        name,
        f"{COMMAND} --out FOLDER " + " ".join(options),
        {
            "paper": "zhang2018",
            **body,
            "archives": list(ARCHIVES),
            "first": given.first,
            "reconstructions": written,
            "drawn": _named(drawn),
            "unknown_on_dev": [
                *(one for one in published.get("unknown_on_dev", []) if one["texts"] not in dict.fromkeys(amounts)),
                *(one for amount in amounts for one in unknown_on_dev(trainer, amount, rows)),
            ],
            "logs": logs.name,
            "figure": FIGURE.name if is_main else None,
            "beside": [] if is_main else beside(body["rows"], json.loads(MAIN.read_bytes())["rows"]),
        },
    )


def _key(course: Course) -> tuple[str, str]:
    return course.dataset, course.row


def _size(course: Course) -> int:
    return 0 if course.dataset == "all" else int(course.dataset)


if __name__ == "__main__":
    main()

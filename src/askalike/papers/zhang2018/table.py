"""The tables: every row's means over seeds on dev and both tests, beside what was reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from askalike.errors import SettingError
from askalike.evaluation.forum.tasks import Matcher, RerankTask
from askalike.index.states import ModelStates
from askalike.papers.harness import (
    Compared,
    RowResult,
    Values,
    compared,
    comparison_objects,
    do_each,
    judged,
    means_object,
    tie_settings,
)
from askalike.papers.paper import Options, Paper, Part, row_table, seed_count
from askalike.papers.zhang2018.autoencoders import Autoencoder, AutoencoderTrainer, ChangedStates, Whitening, all_alike
from askalike.papers.zhang2018.data import TESTS, ZhangData, read_data
from askalike.papers.zhang2018.rows import (
    COMBINED,
    COMPARED,
    KINDS,
    REPORTED,
    WHITE,
    WORDS,
    Choice,
    Kind,
    RamnRow,
    choose_settings,
    choose_weights,
    combined_run,
    layers_of,
    parts,
)
from askalike.progress import Progress, SilentProgress
from askalike.training.recipe import network_recipe
from askalike.types import Run

MEASURES: Final = ("map", "mrr")
TASKS: Final = ("dev", *TESTS)

Result = RowResult[RamnRow]


@dataclass(frozen=True, slots=True)
class Trained:
    """The autoencoders of one kind and size, one for each seed.

    Args:
        kind: "attention" or "gru", "attention-white" or "gru-white" with whitened states; "words" with no autoencoder.
    """

    kind: str
    size: int
    seeds: tuple[int, ...]
    matchers: tuple[Matcher, ...]


def trained(trainer: AutoencoderTrainer, kind: Kind, size: int, seeds: Sequence[int]) -> Trained:
    """Return what is finished of one kind and size; there may be no seed."""
    ready = [one for seed in seeds if trainer.is_finished(one := Autoencoder(kind, size, seed))]
    matchers = tuple(Matcher(ModelStates(trainer.model(one))) for one in ready)
    return Trained(kind, size or len(trainer.data.texts), tuple(one.seed for one in ready), matchers)


def words_alone(found: Trained) -> Trained:
    """Return what is left without the autoencoders: the words, and how often they occur in what was learned from."""
    return Trained(WORDS, found.size, (), (Matcher(ChangedStates(found.matchers[0].source, all_alike)),))


def whitened(found: Trained, data: ZhangData) -> Trained:
    """Return the same autoencoders with whitened states, by those of the texts that they learned from."""
    sources = [one.source for one in found.matchers]
    maps = [Whitening.of_texts(source, data.first(found.size)) for source in sources]
    changed = [ChangedStates(source, one.applied) for source, one in zip(sources, maps, strict=True)]
    return replace(found, kind=f"{found.kind}-{WHITE}", matchers=tuple(map(Matcher, changed)))


def search_rows(data: ZhangData) -> list[Result]:
    """Return the search engine's order, BM25's, and the best order that there is."""
    tasks = _tasks(data)
    runs = {
        "ir": {task.name: task.given for task in tasks},
        "bm25": {task.name: task.lexical for task in tasks},
        "oracle": {task.name: _oracle(task) for task in tasks},
    }
    base = judged(tasks, runs["ir"], MEASURES)
    return [
        _result(RamnRow(name, "search"), (), [judged(tasks, run, MEASURES)], None if name == "ir" else base)
        for name, run in runs.items()
    ]


def kind_rows(data: ZhangData, found: Trained) -> tuple[list[Result], Choice]:
    """Return the rows of one kind of autoencoder, with settings that dev has chosen, and how it chose."""
    tasks = _tasks(data)
    base = judged(tasks, {task.name: task.given for task in tasks}, MEASURES)
    choice = choose_settings(found.matchers, data.dev)
    row = RamnRow("", found.kind, is_drawn=bool(found.seeds), size=found.size)
    made = []
    for layers in layers_of(found.kind):
        settings = choice.settings[layers]
        by_seed = [
            judged(tasks, {task.name: matcher.run(task, settings) for task in tasks}, MEASURES)
            for matcher in found.matchers
        ]
        made.append(_result(replace(row, id=f"{found.kind}-{layers}", settings=settings), found.seeds, by_seed, base))
    by_part = [{task.name: parts(one, task, choice.settings["positions"]) for task in tasks} for one in found.matchers]
    weights = choose_weights([one["dev"] for one in by_part], data.dev)
    by_seed = [
        judged(tasks, {task.name: combined_run(task, one[task.name], weights) for task in tasks}, MEASURES)
        for one in by_part
    ]
    made.append(_result(replace(row, id=f"{found.kind}-{COMBINED}", weights=weights), found.seeds, by_seed, base))
    return made, choice


def measured(
    trainer: AutoencoderTrainer, kinds: Sequence[Kind], sizes: Iterable[int], seeds: Sequence[int]
) -> tuple[list[Result], dict[str, Choice]]:
    """Return all rows, and what dev chose for each kind and size of which a seed is finished."""
    data = trainer.data
    rows, choices = search_rows(data), {}
    for size in sizes:
        ready = [found for kind in kinds if (found := trained(trainer, kind, size, seeds)).seeds]
        rows += [row for found in ready[:1] for row in kind_rows(data, words_alone(found))[0]]
        for found in ready:
            trainer.progress.notice(f"scoring {found.kind}, {found.size:,} texts, {len(found.seeds)} seeds")
            for one in (found, whitened(found, data)):
                of_kind, choice = kind_rows(data, one)
                rows += of_kind
                choices[f"{one.kind}, {one.size:,} texts"] = choice
    return rows, choices


def said_of(rows: Iterable[Result], size: int) -> list[Compared]:
    """Return what the paper says of rows, for those without an autoencoder and those of this size."""
    return compared([one for one in rows if one.row.size in (0, size)], COMPARED, TASKS)


def _result(row: RamnRow, seeds: Sequence[int], by_seed: Sequence[Values], base: Values | None) -> Result:
    return RowResult.of(row, seeds, by_seed, [] if base is None else [base], MEASURES)


def _tasks(data: ZhangData) -> tuple[RerankTask, ...]:
    """Return dev and tests, named as in the tables."""
    return tuple(replace(task, name=name) for name, task in {"dev": data.dev, **data.tests}.items())


def _oracle(task: RerankTask) -> Run:
    return {
        query: [(document, float(task.qrels[query].get(document, 0) > 0)) for document, _ in found]
        for query, found in task.given.items()
    }


def reproduce(options: Options, progress: Progress) -> list[Part]:
    """Train what is not finished, and return the tables.

    Raises:
        SettingError: an unknown kind of autoencoder or of text; too few texts; or the folder is of another recipe or of
            other texts.
        InputError: data cannot be read.
    """
    if unknown := [name for name in options.only if name not in KINDS]:
        raise SettingError(f"there is no autoencoder {unknown[0]!r}", f"expected one of {', '.join(KINDS)}")
    kinds = [kind for kind in KINDS if not options.only or kind in options.only]
    data = read_data(options.data, options.unlabelled)
    if options.first:
        data = data.beginning_with(options.first)
    for archive, count in data.rejected.items():
        progress.notice(f"{count:,} records of {archive} could not be read; askalike index names them")
    for size in options.sizes:
        data.first(size)
    trainer = AutoencoderTrainer(network_recipe(options.recipe), data, options.out, options.device, progress=progress)
    tie_settings(options.out, trainer.described())
    seeds = range(options.seeds)
    _train_all(
        trainer,
        [Autoencoder(kind, size, seed) for size in options.sizes for seed in seeds for kind in kinds],
        options.jobs,
    )
    rows, choices = measured(trainer, kinds, options.sizes, seeds)
    tables = [
        row_table(task, rows, task, MEASURES, _reported, extra={"texts": _size, "seeds": seed_count}) for task in TASKS
    ]
    said = {f"What the paper says of rows, by MAP, {size:,} texts": said_of(rows, size) for size in _sizes(rows)}
    return [Part(tables_object(data, rows, choices), tables=tables, compared=said)]


def _train_all(trainer: AutoencoderTrainer, ones: Sequence[Autoencoder], jobs: int) -> None:
    left, notice = [one for one in ones if not trainer.is_finished(one)], trainer.progress.notice
    if left:
        notice(f"{len(left)} trainings")
    worker = replace(trainer, progress=SilentProgress(), threads=1) if jobs > 1 else trainer
    do_each(_train, worker, left, lambda one, how: notice(f"{one.folder(trainer.out).name}: {how}"), jobs)


def _train(trainer: AutoencoderTrainer, one: Autoencoder) -> None:
    trainer.train(one)


def tables_object(data: ZhangData, rows: Sequence[Result], choices: Mapping[str, Choice]) -> dict[str, Any]:
    """Return the tables as JSON has them; means lie in [0, 1]."""
    return {
        "texts": data.kinds,
        "queries": {task.name: len(task.queries) for task in _tasks(data)},
        "rows": [_row_object(row) for row in rows],
        "compared": {str(size): comparison_objects(said_of(rows, size)) for size in _sizes(rows)},
        "reported": {row: {task: list(one) for task, one in found.items()} for row, found in REPORTED.items()},
        "tried_on_dev": {name: list(choice.tried) for name, choice in choices.items()},
    }


def _row_object(one: Result) -> dict[str, Any]:
    row = one.row
    return {
        "row": row.id,
        "texts": row.size,
        "seeds": list(one.seeds),
        "settings": asdict(row.settings) if row.settings else None,
        "weights": row.weights,
        "found": means_object(one.means),
        "average_precision": {
            task: {query: round(value, 6) for query, value in found.items()} for task, found in one.precisions.items()
        },
    }


def _sizes(rows: Iterable[Result]) -> list[int]:
    return sorted({one.row.size for one in rows if one.row.size})


def _size(one: Result) -> str:
    return f"{one.row.size:,}" if one.row.size else ""


def _reported(row: RamnRow, task: str) -> str:
    return "/".join(f"{one:.2f}" for one in REPORTED.get(row.id, {}).get(task, ()))


ZHANG2018: Final = Paper(
    recipe="ramn",
    options=frozenset({"--amount", "--first", "--unlabelled"}),
    legend=(
        "MAP and MRR times 100 by the official protocol; means over seeds, ± their standard deviation, then the 95 % "
        "interval of MAP over queries; p is the paired randomisation test of MAP against the search engine's order. "
        "Dev chose every setting. Rows: base is the match by meaning, mismatch adds the missing words, full adds the "
        "initial rank, tuned weighs the same three, both matches the candidate's words too, and combined adds up all "
        "of these and BM25; white are the same with whitened states, and words all that without the match by meaning."
    ),
    reproduce=reproduce,
)

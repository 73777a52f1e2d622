"""The tables: every row's means over seeds on dev and both tests, beside what was reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from askalike.evaluation.forum.tasks import RerankTask
from askalike.papers.harness import (
    Compared,
    Options,
    Paper,
    Part,
    Reported,
    RowResult,
    Values,
    chosen_rows,
    compared,
    do_each,
    judged,
    tie_settings,
)
from askalike.papers.zhang2018.autoencoders import (
    Autoencoder,
    AutoencoderTrainer,
    TransformedStates,
    Whitening,
    all_alike,
)
from askalike.papers.zhang2018.data import TESTS, ZhangData, read_data
from askalike.papers.zhang2018.ramn import Matcher, ModelStates
from askalike.papers.zhang2018.rows import (
    COMBINED,
    COMPARED,
    KINDS,
    REPORTED,
    ROWS,
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


def finished(trainer: AutoencoderTrainer, kind: Kind, size: int, seeds: Sequence[int]) -> Trained:
    """Return what is finished of one kind and size; there may be no seed."""
    ready = [one for seed in seeds if trainer.is_finished(one := Autoencoder(kind, size, seed))]
    matchers = tuple(Matcher(ModelStates(trainer.model(one))) for one in ready)
    return Trained(kind, size or len(trainer.data.texts), tuple(one.seed for one in ready), matchers)


def words_alone(found: Trained) -> Trained:
    """Return what is left without the autoencoders: the words, and how often they occur in what was learned from."""
    return Trained(WORDS, found.size, (), (Matcher(TransformedStates(found.matchers[0].source, all_alike)),))


def whitened(found: Trained, data: ZhangData) -> Trained:
    """Return the same autoencoders with whitened states, by those of the texts that they learned from."""
    sources = [one.source for one in found.matchers]
    maps = [Whitening.of_texts(source, data.first(found.size)) for source in sources]
    changed = [TransformedStates(source, one.applied) for source, one in zip(sources, maps, strict=True)]
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


def kind_rows(data: ZhangData, trained: Trained) -> tuple[list[Result], Choice]:
    """Return the rows of one kind of autoencoder, with settings that dev has chosen, and how it chose."""
    tasks = _tasks(data)
    base = judged(tasks, {task.name: task.given for task in tasks}, MEASURES)
    choice = choose_settings(trained.matchers, data.dev)
    row = RamnRow("", trained.kind, is_drawn=bool(trained.seeds), size=trained.size)
    results = []
    for layers in layers_of(trained.kind):
        settings = choice.settings[layers]
        by_seed = [
            judged(tasks, {task.name: matcher.run(task, settings) for task in tasks}, MEASURES)
            for matcher in trained.matchers
        ]
        chosen = replace(row, id=f"{trained.kind}-{layers}", settings=settings)
        results.append(_result(chosen, trained.seeds, by_seed, base))
    by_part = [
        {task.name: parts(matcher, task, choice.settings["positions"]) for task in tasks}
        for matcher in trained.matchers
    ]
    weights = choose_weights([of_seed["dev"] for of_seed in by_part], data.dev)
    by_seed = [
        judged(tasks, {task.name: combined_run(task, of_seed[task.name], weights) for task in tasks}, MEASURES)
        for of_seed in by_part
    ]
    combined = replace(row, id=f"{trained.kind}-{COMBINED}", weights=weights)
    results.append(_result(combined, trained.seeds, by_seed, base))
    return results, choice


def measured(
    trainer: AutoencoderTrainer, systems: Collection[str], sizes: Iterable[int], seeds: Sequence[int]
) -> tuple[list[Result], dict[str, Choice]]:
    """Return the rows of these systems, and what dev chose for each system and size of which a seed is finished."""
    data = trainer.data
    rows, choices = search_rows(data), {}
    for size in sizes:
        ready = [found for kind in _kinds(systems) if (found := finished(trainer, kind, size, seeds)).seeds]
        if WORDS in systems:
            rows += [row for found in ready[:1] for row in kind_rows(data, words_alone(found))[0]]
        for found in ready:
            trainer.progress.notice(f"scoring {found.kind}, {found.size:,} texts, {len(found.seeds)} seeds")
            for name, make in ((found.kind, lambda it: it), (f"{found.kind}-{WHITE}", lambda it: whitened(it, data))):
                if name in systems:
                    of_kind, choice = kind_rows(data, make(found))
                    rows += of_kind
                    choices[f"{name}, {found.size:,} texts"] = choice
    return rows, choices


def _kinds(systems: Collection[str]) -> list[Kind]:
    """Return the autoencoders to train; the rows of words alone take their counts from one of them."""
    kinds = [kind for kind in KINDS if kind in systems or f"{kind}-{WHITE}" in systems]
    return kinds or ([KINDS[0]] if WORDS in systems else [])


def said_of(rows: Iterable[Result], size: int) -> list[Compared]:
    """Return what the paper says of rows, for those without an autoencoder and those of this size."""
    return compared([result for result in rows if result.row.size in (0, size)], COMPARED, TASKS)


def _result(row: RamnRow, seeds: Sequence[int], by_seed: Sequence[Values], base: Values | None) -> Result:
    return RowResult.of(row, seeds, by_seed, [] if base is None else [base], MEASURES)


def _tasks(data: ZhangData) -> tuple[RerankTask, ...]:
    """Return dev and tests, named as in the tables."""
    return tuple(replace(task, name=name) for name, task in {"dev": data.dev, **data.tests}.items())


def _oracle(task: RerankTask) -> Run:
    return {
        query: [(document, float(task.qrels[query].get(document, 0) > 0)) for document, _ in candidates]
        for query, candidates in task.given.items()
    }


def reproduce(options: Options, progress: Progress) -> list[Part]:
    """Train what is not finished, and return the tables.

    Raises:
        SettingError: an unknown row or kind of text; too few texts; or the folder is of another recipe or of other
            texts.
        InputError: data cannot be read.
    """
    wanted = chosen_rows(ROWS, options.only)
    systems = {row.system for row in wanted}
    kinds = _kinds(systems)
    data = read_data(options.data, options.unlabelled if kinds else ())
    if options.first and kinds:
        data = data.beginning_with(options.first)
    for archive, count in data.rejected.items():
        progress.notice(f"{count:,} records of {archive} could not be read; askalike index names them")
    for size in options.sizes if kinds else ():
        data.first(size)
    trainer = AutoencoderTrainer(network_recipe(options.recipe), data, options.out, options.device, progress=progress)
    seeds = range(options.seeds)
    if kinds:
        tie_settings(options.out, trainer.described())
        autoencoders = [Autoencoder(kind, size, seed) for size in options.sizes for seed in seeds for kind in kinds]
        _train_all(trainer, autoencoders, options.jobs)
    rows, choices = measured(trainer, systems, options.sizes, seeds)
    names = {row.id for row in wanted} if options.only else ROWS.keys()
    rows = [result for result in rows if result.row.id in names]
    said = {f"What the paper says of rows, by MAP, {size:,} texts": said_of(rows, size) for size in _sizes(rows)}
    return [
        Part(
            as_json=tables_object(data, rows, choices),
            rows=rows,
            tables=dict(zip(TASKS, TASKS, strict=True)),
            measures=MEASURES,
            reported=_reported,
            sizes=_size,
            compared=said,
        )
    ]


def _train_all(trainer: AutoencoderTrainer, autoencoders: Sequence[Autoencoder], jobs: int) -> None:
    left, notice = [one for one in autoencoders if not trainer.is_finished(one)], trainer.progress.notice
    if left:
        notice(f"{len(left)} trainings")
    worker = replace(trainer, progress=SilentProgress(), threads=1) if jobs > 1 else trainer
    do_each(
        AutoencoderTrainer.train, worker, left, lambda one, how: notice(f"{one.folder(trainer.out).name}: {how}"), jobs
    )


def tables_object(data: ZhangData, rows: Sequence[Result], choices: Mapping[str, Choice]) -> dict[str, Any]:
    """Return the tables as JSON has them; means lie in [0, 1]."""
    return {
        "texts": data.kinds,
        "queries": {task.name: len(task.queries) for task in _tasks(data)},
        "rows": [_row_object(row) for row in rows],
        "compared": {str(size): [one.to_json() for one in said_of(rows, size)] for size in _sizes(rows)},
        "reported": {
            row: {task: list(figures) for task, figures in by_task.items()} for row, by_task in REPORTED.items()
        },
        "tried_on_dev": {name: list(choice.tried) for name, choice in choices.items()},
    }


def _row_object(result: Result) -> dict[str, Any]:
    row = result.row
    return {
        "row": row.id,
        "texts": row.size,
        "seeds": list(result.seeds),
        "settings": asdict(row.settings) if row.settings else None,
        "weights": row.weights,
        "found": result.means_object(),
        "average_precision": {
            task: {query: round(value, 6) for query, value in values.items()}
            for task, values in result.precisions.items()
        },
    }


def _sizes(rows: Iterable[Result]) -> list[int]:
    return sorted({result.row.size for result in rows if result.row.size})


def _size(result: Result) -> str:
    return f"{result.row.size:,}" if result.row.size else ""


def _reported(row: RamnRow, task: str) -> Reported:
    figures = REPORTED.get(row.id, {}).get(task)
    return {"paper": dict(zip(MEASURES, (f"{figure:.2f}" for figure in figures), strict=True))} if figures else {}


PAPER: Final = Paper(
    recipe="ramn",
    rows=ROWS,
    legend=(
        "MAP and MRR times 100 by the official protocol; means over seeds, ± their standard deviation, then the 95 % "
        "interval of MAP over queries; p is the paired randomisation test of MAP against the search engine's order. "
        "Dev chose every setting. Rows: base is the match by meaning, mismatch adds the missing words, full adds the "
        "initial rank, tuned weighs the same three, both matches the candidate's words too, and combined adds up all "
        "of these and BM25; white are the same with whitened states, and words all that without the match by meaning."
    ),
    reproduce=reproduce,
)

"""How rows are trained and answered, and the table: one for each test of each set of a folder. ::

    out/words/…            word vectors of all texts, once a seed; or a file that was given
    out/pretrained/…       an encoder-decoder over all texts, dev on all sets, once for each network and seed
    out/travel/ROW-seedN/  the row's checkpoints and its log.csv

All texts are those of all sets in the folder, and of the unlabelled archives that were named; a row then learns from
the pairs of its set alone, and only the set's own questions are drawn as negatives.

Differs: the paper takes word vectors of all Stack Exchange sites and Wikipedia. Those that were released are taken
where they lie in the folder, ``vector/vectors_pruned.200.txt.gz``; ``vectors`` can bring in others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import filelock

from askalike.evaluation.forum.tasks import (
    RERANK_MEASURES,
    Encoder,
    RerankTask,
    VectorScorer,
    candidate_task,
    judge,
    make_scorer,
    rerank,
)
from askalike.models.encoders.model import Model
from askalike.models.vocabulary import QuestionReader
from askalike.papers.harness import (
    OTHER_DATA,
    Answers,
    Options,
    Paper,
    Part,
    Reported,
    RowResult,
    Runner,
    chosen_rows,
    compared,
    need_torch,
    read_records,
    run_all,
    tie_settings,
)
from askalike.papers.lei2016.rows import COMPARED, ROWS, Figure, LeiRow
from askalike.papers.lei2016.sets import LeiSet, find_sets, labelled, released_vectors
from askalike.papers.lei2016.svm import (
    RankingGroup,
    RankingSvm,
    SimilarityFeatures,
    SimilaritySvm,
    choose_cost,
    ranking_groups,
)
from askalike.progress import Progress, SilentProgress
from askalike.readers.detection import choose
from askalike.search import Reranker
from askalike.text.settings import SNOWBALL
from askalike.training.corpus import TrainingData, WordSource
from askalike.training.recipe import Recipe, network_recipe
from askalike.training.vector_files import write_word2vec_text
from askalike.training.words import make_words
from askalike.types import Question, Run

PRETRAINING = "decoding"


def row_recipe(row: LeiRow, recipe: Recipe, *, is_pretraining: bool) -> Recipe:
    """Return the recipe with the row's network and text, and with the stages of pre-training or with the others."""
    assert row.encoder is not None, "only rows with an encoder are trained"
    stages = tuple(stage for stage in recipe.stages if (stage.objective == PRETRAINING) == is_pretraining)
    if is_pretraining and row.kept_by:
        stages = tuple(replace(stage, loop=replace(stage.loop, stop_on=row.kept_by)) for stage in stages)
    gate_bias = (row.gate_bias or recipe.gate_bias) if row.encoder.gate_size else 0.0
    return replace(recipe, encoder=row.encoder, reads=row.reads, stages=stages, gate_bias=gate_bias)


@dataclass(frozen=True, slots=True)
class EncoderTrainer:
    """Trains one row with one seed; a ``table.Trainer``.

    Args:
        recipe: settings of all rows but those that name one; its encoder is replaced by the row's.
        sets: all sets of the folder: their texts are what word vectors and pre-training learn from.
        archives: more texts for these, by the archive's name.
        vectors: a file of word vectors in word2vec's text format, or None to train them on ``texts``.
    """

    recipe: Recipe
    sets: Mapping[str, LeiSet] = field(default_factory=dict)
    archives: Mapping[str, tuple[Question, ...]] = field(default_factory=dict)
    vectors: Path | None = None
    device: str = "cpu"
    threads: int = 0
    progress: Progress = field(default_factory=SilentProgress)

    def __call__(self, row: LeiRow, seed: int, data: LeiSet, folder: Path) -> Model:
        """Return the row's encoder at its best epoch on dev."""
        need_torch(self.threads)
        from askalike.training.encoder import TrainingRun, train_encoder

        shared = folder.parent.parent
        own = network_recipe(row.recipe) if row.recipe else self.recipe
        recipe = replace(own, words=replace(own.words, vectors=str(self.vectors or self._words(shared, seed))))
        learned = TrainingData(data.questions, data.pairs, dev={data.dev.name: candidate_task(data.dev)})
        start = self._pretrained(row, recipe, shared, seed) if row.is_pretrained else None
        run = TrainingRun(folder, seed, self.device, start, self.progress)
        return train_encoder(row_recipe(row, recipe, is_pretraining=False), learned, run)

    def described(self) -> dict[str, object]:
        """Return what decides the encoders besides rows, seeds and sets, as JSON can hold it."""
        texts = {name: data.digest for name, data in self.sets.items()}
        texts |= {name: TrainingData(questions).digest() for name, questions in self.archives.items()}
        vectors = "" if self.vectors is None else hashlib.sha256(self.vectors.read_bytes()).hexdigest()
        return {"recipe": json.loads(self.recipe.to_json()), "texts": texts, "vectors": vectors}

    def _learned_questions(self) -> list[Question]:
        """Return the questions that are not kept out, with ids of their own."""
        data = self._with_held_out()
        return [question for question in data.questions if question.id not in data.held_out]

    def _with_held_out(self) -> TrainingData:
        """Return texts, pairs and dev sets with ids of their own, and the ids that perplexity is measured on."""
        questions: list[Question] = []
        pairs: list[tuple[str, str]] = []
        held_out: set[str] = set()
        for name, data in sorted(self.sets.items()):
            questions += _renamed(name, data.questions)
            held_out |= {_name(name, question.id) for question in data.questions if question.id in data.heldout}
            pairs += [
                (_name(name, first), _name(name, second))
                for first, second in data.pairs
                if data.heldout.isdisjoint((first, second))
            ]
        for name, archive in sorted(self.archives.items()):
            questions += _renamed(name, archive)
        dev = {data.dev.name: candidate_task(data.dev) for data in self.sets.values()}
        return TrainingData(questions, pairs, dev=dev, held_out=held_out)

    def _words(self, shared: Path, seed: int) -> Path:
        """Return the file of the word vectors of all texts, trained where it is not there yet."""
        texts = sorted(self._learned_questions(), key=_content)
        settings = replace(self.recipe.words, is_trained=False)
        stems = [self.recipe.stems] if self.recipe.stems else []  # vectors from before there were stems stay good
        content = hashlib.sha256(json.dumps([asdict(settings), seed, *stems], sort_keys=True).encode())
        for question in texts:
            content.update(repr(_content(question)).encode(errors="surrogatepass"))
        folder = shared / "words" / f"{content.hexdigest()[:12]}-seed{seed}"
        path = folder / "words.txt"
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / "lock"):  # rows that train beside each other make it once
            if not path.exists():
                reader = QuestionReader("title and body", self.recipe.word_limit, self.recipe.stems)
                source = WordSource(TrainingData(texts), reader, lambda _: None)
                words = make_words(settings, source, None, folder, (seed, self.progress))
                write_word2vec_text(path, words.vocabulary, words.embedding)
        return path

    def _pretrained(self, row: LeiRow, recipe: Recipe, shared: Path, seed: int) -> Model:
        """Return the network after pre-training, which rows of the same network share, whatever their set."""
        from askalike.training.encoder import TrainingRun, train_encoder

        chosen = row_recipe(row, recipe, is_pretraining=True)
        settings = replace(chosen, words=self.recipe.words).to_json()  # where the vectors lie does not matter
        named = (chosen.encoder.kind, chosen.encoder.hidden_size, chosen.reads.replace(" ", "-"))
        network = "-".join(map(str, (*named, hashlib.sha256(settings.encode()).hexdigest()[:8])))
        folder = shared / "pretrained" / f"{network}-seed{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / "lock"):
            return train_encoder(
                chosen, self._with_held_out(), TrainingRun(folder, seed, self.device, progress=self.progress)
            )


def _renamed(place: str, questions: Iterable[Question]) -> list[Question]:
    return [replace(question, id=_name(place, question.id)) for question in questions]


def _name(place: str, identifier: str) -> str:
    return f"{place}/{identifier}"


def _content(question: Question) -> tuple[str, str]:
    return (question.title, question.body)


BASELINE: Final = "bm25"

Trainer = Callable[[LeiRow, int, LeiSet, Path], Encoder]
"""(row, seed, set, a folder for checkpoints that belongs to this training) → an encoder, such as ``Model``."""


@dataclass(frozen=True)
class LeiSystems:
    """Answers rows on one set.

    Args:
        settings: what decides encoders besides rows, seeds and sets: ``EncoderTrainer.described``.
    """

    data: LeiSet
    out: Path
    train: Trainer
    settings: Mapping[str, object] = field(default_factory=dict)

    def answer(self, row: LeiRow, seed: int) -> Answers:
        """Return the runs of all tasks."""
        tasks = {task.name: task for task in self.data.tasks()}
        if row.system == "search" or (row.system == BASELINE and self.data.is_original):
            return Answers({name: task.given for name, task in tasks.items()})
        if row.system == "svm":
            return Answers(_by_svm(self.data))
        if row.reads == "title":
            tasks = {name: _titles_only(task) for name, task in tasks.items()}
        scorer: Reranker
        if row.encoder:
            place = self.out / self.data.name / f"{row.id}-seed{seed}"
            scorer = VectorScorer(self.train(row, seed, self.data, place))
        else:
            scorer = make_scorer(row.scorer, tasks[self.data.dev.name].statistics, SNOWBALL)
        return Answers({name: _answer(task, scorer) for name, task in tasks.items()})

    def decides(self, row: LeiRow, seed: int) -> Any:
        """Return the row's settings, the digest of all texts, labelled pairs and judgements, and those of encoders."""
        return [row.decides(), self.data.digest, *([self.settings] if row.encoder and self.settings else [])]

    def quiet(self) -> LeiSystems:
        """Return the same for a process of its own."""
        train = self.train
        if isinstance(train, EncoderTrainer):
            train = replace(train, threads=1, progress=SilentProgress())
        return replace(self, train=train)


def _by_svm(data: LeiSet) -> dict[str, Run]:
    """Return the SVM's runs: C is chosen on dev; for the tests dev is learned from too, as the paper does."""
    features = SimilarityFeatures(data.questions, SNOWBALL)
    train, dev = (ranking_groups(features, examples) for examples in (data.examples, labelled(data.dev)))
    chosen = choose_cost(train, lambda model: _dev_map(data.dev, dev, model))
    final = SimilaritySvm(features, RankingSvm.fit([*train, *dev], chosen.cost))
    runs = {data.dev.name: _answer(data.dev, SimilaritySvm(features, chosen))}
    return runs | {task.name: _answer(task, final) for task in data.tests}


def _dev_map(task: RerankTask, groups: list[RankingGroup], model: RankingSvm) -> float:
    run: Run = {}
    for (query, candidates), group in zip(task.given.items(), groups, strict=True):
        scores = model.scores(group.features).tolist()
        run[query] = [(document, score) for (document, _), score in zip(candidates, scores, strict=True)]
    return judge(task, run).means["map"]


def _answer(task: RerankTask, scorer: Reranker) -> Run:
    return rerank(task.given, scorer, task.queries, task.documents)


def _titles_only(task: RerankTask) -> RerankTask:
    def cut(questions: Mapping[str, Question]) -> dict[str, Question]:
        return {identifier: replace(question, body="") for identifier, question in questions.items()}

    return replace(
        task,
        queries=cut(task.queries),
        documents=cut(task.documents),
        statistics=tuple(replace(question, body="") for question in task.statistics),
    )


def runner_of(data: LeiSet, out: Path, train: Trainer, settings: Mapping[str, object] | None = None) -> Runner[LeiRow]:
    """Return what runs the rows on one set; outcomes and checkpoints of a set lie in its folder."""
    systems = LeiSystems(data, out, train, settings or {})
    return Runner(systems, data.tasks(), out / data.name, RERANK_MEASURES, BASELINE)


def reproduce(options: Options, progress: Progress) -> list[Part]:
    """Train what is not finished, and return a part for each set."""
    sets = find_sets(options.data)
    chosen = [name for name in options.only if name in sets]
    named = chosen_rows(ROWS, (name for name in options.only if name not in sets), sets)
    rows = [ROWS[BASELINE], *(row for row in named if row.id != BASELINE)]
    seeds = range(options.seeds)
    has_encoders = any(row.encoder for row in rows)
    data = {name: sets[name]() for name in sets if has_encoders or not chosen or name in chosen}
    archives = {str(path): _questions(path, progress) for path in (options.unlabelled if has_encoders else ())}
    recipe = network_recipe(options.recipe)
    for one_set in data.values():
        for note in one_set.notes:
            progress.notice(f"{one_set.name}: {note}")
    vectors = options.vectors or released_vectors(options.data)
    if vectors and has_encoders:
        progress.notice(f"taking the word vectors of {vectors}")
    train = EncoderTrainer(recipe, data, archives, vectors, options.device, progress=progress)
    settings = train.described() if has_encoders else {}
    if has_encoders:
        tie_settings(options.out, settings)
    runners = {name: runner_of(data[name], options.out, train, settings) for name in chosen or sets}
    reasons = run_all(runners, rows, seeds, progress.notice, jobs=options.jobs)
    return [part(data[name], runner.results(rows, seeds, reasons[name])) for name, runner in runners.items()]


def part(data: LeiSet, results: Sequence[RowResult[LeiRow]]) -> Part:
    """Return a set's tables."""
    tests = [task.name for task in data.tests]
    counted = {test: results[0].means[test]["map"].queries for test in tests}
    return Part(
        name=data.name,
        as_json=table_object(data, results),
        rows=results,
        tables={f"{data.title}: {test}, {counted[test]} queries": test for test in tests},
        measures=RERANK_MEASURES,
        reported=_reported,
        note="" if data.is_original else OTHER_DATA,
        compared={"Rows beside each other, by MAP": compared(results, COMPARED, [data.dev.name, *tests])},
    )


def table_object(data: LeiSet, results: Sequence[RowResult[LeiRow]]) -> dict[str, Any]:
    """Return a set's table as JSON has it; means lie in [0, 1]."""
    comparisons = compared(results, COMPARED, [task.name for task in data.tasks()])
    return {
        "title": data.title,
        "is_the_papers_data": data.is_original,
        "questions": len(data.questions),
        "training_pairs": len(data.pairs),
        "tasks": {task.name: len(task.queries) for task in data.tasks()},
        "rows": [_row_object(result) for result in results],
        "compared": [comparison.to_json() for comparison in comparisons],
    }


def _row_object(result: RowResult[LeiRow]) -> dict[str, Any]:
    row = result.row
    return {
        **result.to_json(),
        "pooling": row.encoder.pooling if row.encoder else "",
        "text": row.reads,
        "pre-training": row.is_pretrained,
        "parameters": row.encoder.parameter_count() if row.encoder else None,
        "how": row.about,
        "reported": _figures_object(row.reported),
        "thesis": _figures_object(row.thesis),
    }


def _figures_object(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {name: {"value": figure.value, "origin": figure.origin} for name, figure in figures.items()}


def _reported(row: LeiRow, task: str) -> Reported:
    """Return what the paper has of a row, and what the thesis has."""
    published = {"paper": row.reported, "thesis": row.thesis}
    return {
        whose: {name: str(figure) for name, figure in figures.items()}
        for whose, figures in published.items()
        if figures
    }


def _questions(archive: Path, progress: Progress) -> tuple[Question, ...]:
    """Return the questions of an archive of any format, each id once."""
    questions: dict[str, Question] = {}
    for record in read_records(choose(archive), archive, progress):
        if isinstance(record, Question):
            questions.setdefault(record.id, record)
    return tuple(questions.values())


PAPER: Final = Paper(
    recipe="lei2016",
    rows=ROWS,
    legend=(
        "Means times 100; ± is the standard deviation over seeds, then the 95 % interval of MAP over seeds and "
        "queries, p the paired randomisation test of MAP against BM25. Reported figures are of AskUbuntu's test set, "
        "the paper's and those of Joshi's thesis, whose models have other settings: as their texts print them, or = "
        "recomputed from the released scores."
    ),
    reproduce=reproduce,
    sets=("askubuntu", "travel", "semeval"),
)

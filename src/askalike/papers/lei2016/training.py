"""Trains the encoder of a row: shared word vectors, pre-training where the row has it, max-margin.

::

    out/words/…            word vectors of all texts, once a seed; or a file that was given
    out/pretrained/…       an encoder-decoder over all texts, dev on all sets, once for each network and seed
    out/travel/ROW-seedN/  the row's checkpoints and its log.csv

All texts are those of all sets in the folder, and of the unlabelled archives that were named; a row then learns from
the pairs of its set alone, and only the set's own questions are drawn as negatives.

Differs: the paper takes word vectors of all Stack Exchange sites and Wikipedia, which ``vectors`` can bring in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import filelock

from askalike.evaluation.forum.tasks import candidate_task
from askalike.models.encoders.model import Model
from askalike.models.encoders.vocabulary import QuestionReader
from askalike.papers.harness import need_torch
from askalike.papers.lei2016.rows import LeiRow
from askalike.papers.lei2016.sets import LeiSet
from askalike.progress import Progress, SilentProgress
from askalike.training.corpus import TrainingData, WordSource
from askalike.training.recipe import Recipe, network_recipe
from askalike.training.vector_files import write_word2vec_text
from askalike.training.words import make_words
from askalike.types import Question

PRETRAINING = "decoding"


def row_recipe(row: LeiRow, recipe: Recipe, *, is_pretraining: bool) -> Recipe:
    """Return the recipe with the row's network and text, and with the stages of pre-training or with the others."""
    assert row.encoder is not None, "only rows with an encoder are trained"
    stages = tuple(stage for stage in recipe.stages if (stage.objective == PRETRAINING) == is_pretraining)
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

    def _everything(self) -> TrainingData:
        """Return the questions that are not kept out, their labelled pairs, and the dev sets, with ids of their own."""
        found = self._with_held_out()
        learned = [question for question in found.questions if question.id not in found.held_out]
        return replace(found, questions=learned, held_out=())

    def _with_held_out(self) -> TrainingData:
        """Return the same with the questions that are kept out, to measure perplexity on, as such."""
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
        texts = sorted(self._everything().questions, key=_content)
        settings = replace(self.recipe.words, is_trained=False)
        stems = [self.recipe.stems] if self.recipe.stems else []  # vectors from before there were stems stay good
        found = hashlib.sha256(json.dumps([asdict(settings), seed, *stems], sort_keys=True).encode())
        for question in texts:
            found.update(repr(_content(question)).encode(errors="surrogatepass"))
        folder = shared / "words" / f"{found.hexdigest()[:12]}-seed{seed}"
        path = folder / "words.txt"
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / "lock"):  # rows that train beside each other make it once
            if not path.exists():
                reader = QuestionReader("title and body", self.recipe.word_limit, self.recipe.stems)
                source = WordSource(TrainingData(texts), reader, _unheard)
                made = make_words(settings, source, None, folder, (seed, self.progress))
                write_word2vec_text(path, made.vocabulary, made.embedding)
        return path

    def _pretrained(self, row: LeiRow, recipe: Recipe, shared: Path, seed: int) -> Model:
        """Return the network after pre-training, which rows of the same network share, whatever their set."""
        from askalike.training.encoder import TrainingRun, train_encoder

        chosen = row_recipe(row, recipe, is_pretraining=True)
        network = f"{chosen.encoder.kind}-{chosen.encoder.hidden_size}-{chosen.reads.replace(' ', '-')}"
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


def _unheard(count: int) -> None:
    """Tell nobody that ``count`` more questions were read."""

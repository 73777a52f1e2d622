"""Does composing the vectors of unseen words from letters earn its place? Mean of word vectors, re-ranking, dev only.

Command: ``python -m benchmarks.unseen_words``. Vectors are trained on 40,000 Reddit questions, so that the forums that
are scored hold many words without one. A table of 10,000 buckets of letter 3- to 5-grams (2 MB with a byte a number)
is fitted by least squares so that the mean of a word's n-grams is near its vector (Zhao et al. 2018, "Generalizing Word
Embeddings using Bag of Subwords"; solved by conjugate gradients, not by steps). What 10,000 words and the table must
beat is 20,000 words, which are as large. Nothing is tuned but the ridge, on words held out of the fit.
"""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from askalike.data import bundled_forum
from askalike.evaluation import Report, compare
from askalike.evaluation.forum.links import duplicate_task
from askalike.evaluation.forum.tasks import RerankTask, VectorScorer, forum_rerank_task, judge
from askalike.forum import Forum
from askalike.models.vocabulary import Vocabulary
from askalike.text.markup import plain_text
from askalike.text.tokens import words
from askalike.training.corpus import WordList
from askalike.training.words import Word2VecSettings, train_word2vec
from askalike.types import Question
from benchmarks.record import WORK, need_data, write
from benchmarks.systems import Vectors

COMMAND = "python -m benchmarks.unseen_words"
QUESTIONS, MIN_COUNT, BUCKETS, RIDGES = 40_000, 5, 10_000, (0.1, 0.3, 1.0, 3.0, 10.0)
SIZES = (10_000, 20_000, 1_000_000)
WEIGHTINGS = {"plain mean": 0.0, "rare words weigh more": 1e-3, "rare words weigh more, mean vector taken off": 1e-3}
SETTINGS = Word2VecSettings(size=200, epochs=3)
Rows = NDArray[np.float32]


def reddit_texts() -> Iterator[str]:
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for question in map(json.loads, itertools.islice(lines, QUESTIONS)):
            yield f"{question['title']}\n{plain_text(question['body'], 'markdown')}"


def buckets(word: str) -> list[int]:
    """Return the buckets of a word's 3- to 5-grams, its ends marked."""
    marked = f"<{word}>"
    grams = (marked[start : start + n] for n in (3, 4, 5) for start in range(max(len(marked) - n, 0) + 1))
    return [zlib.crc32(gram.encode()) % BUCKETS for gram in grams]


def compositions(asked: Sequence[str]) -> sparse.csr_array:
    """Return (W, BUCKETS): row times table is the mean of a word's n-grams."""
    found = [buckets(word) for word in asked]
    ends = np.cumsum([0, *map(len, found)])
    weights = np.concatenate([np.full(len(row), 1 / len(row)) for row in found])
    return sparse.csr_array((weights, np.concatenate(found), ends), shape=(len(asked), BUCKETS))


def fitted(asked: Sequence[str], vectors: Rows, ridge: float, steps: int = 60) -> NDArray[np.float64]:
    """Return the table (BUCKETS, D) that minimises |A T - vectors|² + ridge |T|², by conjugate gradients."""
    rows = compositions(asked)
    table = np.zeros((BUCKETS, vectors.shape[1]))
    rest = rows.T @ vectors.astype(np.float64)
    direction, size = rest.copy(), (rest**2).sum(axis=0)
    for _ in range(steps):
        image = rows.T @ (rows @ direction) + ridge * direction
        step = size / np.maximum((direction * image).sum(axis=0), 1e-30)
        table += step * direction
        rest -= step * image
        size, before = (rest**2).sum(axis=0), size
        direction = rest + size / np.maximum(before, 1e-30) * direction
    return table


def held_out_cosines(asked: Sequence[str], vectors: Rows) -> dict[str, float]:
    """Return the mean cosine with the trained vector of every tenth word, by ridge, and that of the others' mean."""
    is_out = np.arange(len(asked)) % 10 == 0
    known = [word for word, out in zip(asked, is_out, strict=True) if not out]
    composing = compositions([word for word, out in zip(asked, is_out, strict=True) if out])
    guesses = {str(ridge): composing @ fitted(known, vectors[~is_out], ridge) for ridge in RIDGES}
    guesses["mean of all words"] = np.tile(vectors[~is_out].mean(axis=0), (int(is_out.sum()), 1))
    return {name: round(float(cosine(guess, vectors[is_out]).mean()), 4) for name, guess in guesses.items()}


def cosine(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.asarray((first * second).sum(axis=1) / np.maximum(lengths, 1e-12))


@dataclass
class MeanOfWords:
    """Mean of word vectors, each weighted by ``a / (a + its share of the corpus)`` where ``smooth`` is > 0."""

    vocabulary: Vocabulary
    vectors: Rows
    shares: NDArray[np.float64]
    smooth: float
    table: NDArray[np.float64] | None = None

    def encode(self, questions: Sequence[Question]) -> Rows:
        """Return a vector of length 1 for each question.  # (N, D)"""
        return np.stack([self._one(question) for question in questions])

    def _one(self, question: Question) -> Rows:
        asked = words(f"{question.title}\n{plain_text(question.body, question.markup)}")
        ids = np.array(self.vocabulary.ids(asked), np.int64)
        weights = self.smooth / (self.smooth + self.shares[ids]) if self.smooth else np.ones(len(ids))
        total = weights[ids > 0] @ self.vectors[ids[ids > 0]]
        unseen = [word for word, number in zip(asked, ids, strict=True) if not number]
        if self.table is not None and unseen:
            total = total + (compositions(unseen) @ self.table).sum(axis=0)
        return np.asarray(total / max(float(np.linalg.norm(total)), 1e-12), np.float32)


def tasks() -> list[RerankTask]:
    """Return the travel forum's dev split and the bundled forum, re-ranking."""
    found = []
    for name, source, part in (
        ("travel", need_data("travel-stackexchange"), "dev"),
        ("bundled", bundled_forum(), "all"),
    ):
        with Forum.create(WORK / f"unseen-{name}.forum") as forum:
            forum.load(source)
            found.append(forum_rerank_task(name, forum, duplicate_task(forum, part)))
    return found


def unseen_share(questions: Iterable[Question], vocabulary: Vocabulary) -> float:
    asked = [word for question in questions for word in words(f"{question.title}\n{question.body}")]
    return sum(word not in vocabulary for word in asked) / len(asked)


def rows(reports: dict[tuple[str, str], Report]) -> dict[str, Any]:
    """Return each system's figures, and what n-grams add to its words."""
    found: dict[str, Any] = {}
    for (name, weighting), report in reports.items():
        row: dict[str, Any] = {measure: round(100 * report.means[measure], 2) for measure in ("map", "mrr")}
        if name.endswith(" and n-grams"):
            test = compare(report, reports[name.removesuffix(" and n-grams"), weighting], "map")
            between = [round(100 * test.difference.low, 2), round(100 * test.difference.high, 2)]
            row |= {
                "adds": round(100 * test.difference.mean, 2),
                "interval95": between,
                "p_value": round(test.p_value, 4),
            }
        found[f"{name}, {weighting}"] = row
        print(name, weighting, row, flush=True)
    return found


def main() -> None:
    """Train, fit, score, write."""
    read = WordList(map(words, reddit_texts()))
    every = Vocabulary.from_counts(read.counts(), min_count=MIN_COUNT)
    corpus = read.over(every)
    vectors = train_word2vec(corpus, len(every), SETTINGS, seed=0, on_progress=print)
    counts = corpus.counts(len(every))
    shares = counts / max(counts[1:].sum(), 1)
    cosines = held_out_cosines(every.words, vectors[1:])
    centred = held_out_cosines(every.words, vectors[1:] - vectors[1:].mean(axis=0))
    ridge = max(RIDGES, key=lambda value: cosines[str(value)])
    print(len(every), cosines, centred, flush=True)
    reports: dict[str, dict[tuple[str, str], Report]] = {}
    unseen: dict[str, dict[str, float]] = {}
    asked = tasks()
    for size in SIZES:
        kept = Vocabulary(every.words[:size])
        name = f"{len(kept.words):,} words"
        for (weighting, smooth), task in itertools.product(WEIGHTINGS.items(), asked):
            given = vectors - vectors[1:].mean(axis=0) if "taken off" in weighting else vectors
            table = fitted(kept.words, given[1 : len(kept)], ridge)
            questions = [*task.queries.values(), *task.documents.values()]
            unseen.setdefault(task.name, {})[name] = round(unseen_share(questions, kept), 4)
            for system, fallback in ((name, None), (f"{name} and n-grams", table)):
                encoder = MeanOfWords(kept, given, shares, smooth, fallback)
                run = Vectors(VectorScorer(encoder)).rerank(task)
                reports.setdefault(task.name, {})[system, weighting] = judge(task, run)
    body = {"trained_words": len(corpus.ids), "vocabulary": len(every), "held_out_cosine": cosines}
    sets = {name: {"unseen_share": unseen[name], "systems": rows(found)} for name, found in reports.items()}
    write("unseen-words", COMMAND, body | {"held_out_cosine_centred": centred, "ridge": ridge, "sets": sets})


if __name__ == "__main__":
    main()

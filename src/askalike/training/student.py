"""Training a student: a large encoder reads texts once, and a table of rows learns to put them where it did.

::

    row(w) = (t(w) - μ) P · a / (a + p(w))        to begin with; t(w) the teacher's vector of the word alone
    W, b   = P, μ                                 μ and the columns of P the mean and principal directions of all t(w)
    loss   = mean of 1 - cos(v(x), t(x))          over texts x: titles, sentences, titles with their bodies
             + λ · ``order_loss``                 where documents that are searched are given

Pairs of words begin at zero. Character n-grams learn last: the mean of a word's n-grams is to be the word's row, also
when a letter of it is missing, doubled, changed or at its neighbour's place.

Source: Arora et al. 2017 (ICLR), "A simple but tough-to-beat baseline for sentence embeddings", equation 3.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from askalike.errors import SettingError
from askalike.evaluation.significance import Interval, bootstrap_difference, bootstrap_mean
from askalike.models.encoders.settings import Precision
from askalike.models.student import LONGEST_WORD, RowReader, Student, StudentSettings, buckets_of
from askalike.models.text_encoder import TextEncoder
from askalike.models.vocabulary import Vocabulary
from askalike.progress import Progress
from askalike.settings import check_settings
from askalike.text.markup import plain_text
from askalike.text.tokens import words
from askalike.types import Question

Array = NDArray[np.float32]

TEXTS_A_CALL: Final = 1024
"""Texts that the teacher is given at once."""

NEAREST: Final = 10
"""Documents that student and teacher are compared by."""

_MOST_HELD_OUT: Final = 2000
_LEAST_TEXTS: Final = 100
_SENTENCE: Final = re.compile(r"(?<=[.?!])\s+|\n+")
_SENTENCE_WORDS: Final = range(4, 41)
_SENTENCES_A_QUESTION: Final = 2
_LETTER_EPOCHS: Final = 5


@dataclass(frozen=True, slots=True)
class StudentRecipe:
    """How a student is made.

    Args:
        row_size: d, at most the teacher's dimensions and the number of words.
        most_words, least_count: words with a row: the most frequent, of those that occur this often.
        most_pairs, least_pair_count: pairs of neighbouring words with a row; 0 pairs for none.
        buckets: rows that n-grams of unknown words share; 0 for none.
        word_limit: words of a text that are read.
        damping: a, how frequent a word may be before its row is shortened.
        epochs, batch_size, learning_rate: of Adam; the rate falls to 0 along a line.
        order_weight, temperature: λ and τ of the order of the documents, where some are given.
        held_out: share of the texts by which student and teacher are compared, at most 2,000.
        precision: of the stored tables.
        seed: of order, draws and intervals.
    """

    row_size: int = 256
    most_words: int = 60_000
    least_count: int = 2
    most_pairs: int = 60_000
    least_pair_count: int = 5
    buckets: int = 20_000
    word_limit: int = 160
    damping: float = 1e-3
    epochs: int = 3
    batch_size: int = 512
    learning_rate: float = 1.5e-3
    order_weight: float = 0.3
    temperature: float = 0.1
    held_out: float = 0.02
    precision: Precision = "int8"
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class StudentReport:
    """How near a student is to its teacher, on texts that it has not learned from.

    Args:
        texts, held_out: how many were learned from, and how many were not.
        cosine: mean cosine to the teacher's vector of the same text.
        start: the same before training, when rows are the teacher's vectors of single words.
        overlap: share of the ten texts nearest to the teacher's vector that are among the ten nearest to the
            student's; the texts are others that the teacher encoded.
        start_overlap: the same before training.
        gain: overlap less start_overlap.
        letters: mean cosine of rows from n-grams to the words' own rows, words misspelt; 0 without n-grams.
    """

    texts: int
    held_out: int
    cosine: Interval
    start: Interval
    overlap: Interval
    start_overlap: Interval
    gain: Interval
    letters: float


def student_texts(questions: Iterable[Question], excluded: Collection[str] = (), seed: int = 0) -> list[str]:
    """Return what a student learns from: each question's title, title with body, and two sentences of the body.

    Args:
        excluded: ids of questions that are kept out, with every text that equals the title of one: those that an
            evaluation asks.
        seed: which sentences are taken.
    """
    held = list(questions)
    barred = {_folded(one.title) for one in held if one.id in excluded}
    chance = random.Random(seed)
    found: list[str] = []
    for question in held:
        if question.id in excluded:
            continue
        body = plain_text(question.body, question.markup)
        sentences = [part.strip() for part in _SENTENCE.split(body) if len(part.split()) in _SENTENCE_WORDS]
        chance.shuffle(sentences)
        found += [question.title, f"{question.title}\n{body}" if body else "", *sentences[:_SENTENCES_A_QUESTION]]
    return [text for text in dict.fromkeys(found) if text.strip() and _folded(text) not in barred]


def make_student(
    texts: Sequence[str],
    teacher: TextEncoder,
    recipe: StudentRecipe,
    progress: Progress,
    start: Student | None = None,
    documents: Array | None = None,
) -> tuple[Student, StudentReport]:
    """Train a student of ``teacher`` on texts, and return it with its report.

    Args:
        texts: see ``student_texts``; no query of an evaluation should be among them.
        teacher: its vectors of queries are learned.
        start: a student of the same teacher to go on from, so that it need not learn a language from one forum. It
            keeps its rows; words and pairs that it does not have are added.
        documents: the teacher's vectors of what will be searched, so that their order is learned too.  # (N, D)

    Raises:
        SettingError: too few texts, fewer words than ``row_size``, a teacher that gives something else than vectors, or
            a start that is another teacher's student or has rows of another size.
    """
    if len(texts) < _LEAST_TEXTS:
        raise SettingError(f"{len(texts)} texts, but expected at least {_LEAST_TEXTS}", "give more texts to learn from")
    order = np.random.default_rng(recipe.seed).permutation(len(texts))
    count = min(_MOST_HELD_OUT, max(2, int(recipe.held_out * len(texts))))
    held, learned = [texts[place] for place in order[:count]], [texts[place] for place in order[count:]]
    read, held_read = ([words(text)[: recipe.word_limit] for text in some] for some in (learned, held))
    counts = Counter(word for one in read for word in one)
    if start is None:
        vocabulary, begun = _from_words(counts, teacher, recipe, progress)
    else:
        _check_start(start, teacher, recipe)
        vocabulary, begun = _from_student(start, counts, teacher, recipe, progress)
    known_pairs = _NO_PAIRS if start is None else start.pair_ids
    pairs = _pairs(read, vocabulary, known_pairs, recipe)
    reader = RowReader(vocabulary, pairs, 0, recipe.word_limit)
    network = _Network(begun, len(pairs))
    of_learned = _encoded(teacher, learned, "texts", progress)
    of_held = _encoded(teacher, held, "held-out texts", progress)
    lists, held_lists = (_Rows.of(some, reader, len(vocabulary.words)) for some in (read, held_read))
    before = network.vectors(held_lists)
    _fit(network, lists, of_learned, documents, recipe, progress)
    after = network.vectors(held_lists)
    arrays = network.arrays(len(vocabulary.words))
    letters, by_letters = learn_buckets(vocabulary.words, arrays["words"], recipe, progress)
    if recipe.buckets:
        arrays["buckets"] = letters
    report = _report(before, after, of_held, of_learned[: 10 * _MOST_HELD_OUT], len(learned), by_letters, recipe.seed)
    settings = StudentSettings(
        row_size=recipe.row_size,
        dimensions=teacher.dimensions,
        words=len(vocabulary.words),
        pairs=len(pairs),
        buckets=recipe.buckets,
        word_limit=recipe.word_limit,
        precision=recipe.precision,
        teacher=teacher.name,
        card=card_of(teacher.name, report),
    )
    scores = {"cosine": report.cosine.mean, "overlap@10": report.overlap.mean, "gain in overlap@10": report.gain.mean}
    digest = hashlib.sha256("\0".join(learned).encode("utf-8", "replace")).hexdigest()
    return Student.build(settings, vocabulary, pairs, arrays, training_data=digest, dev_scores=scores), report


@dataclass(frozen=True, slots=True)
class Start:
    """What training begins with.

    Args:
        rows: of the words.  # (V, d) float32
        output: W.  # (D, d) float32
        bias: b.  # (D,) float32
        pairs: rows of the first pairs, None where there are none; those of further pairs are zero.  # (P, d) float32
    """

    rows: Array
    output: Array
    bias: Array
    pairs: Array | None = None


_NO_PAIRS: Final = np.zeros((0, 2), dtype=np.int64)


def _from_words(
    counts: Counter[str], teacher: TextEncoder, recipe: StudentRecipe, progress: Progress
) -> tuple[Vocabulary, Start]:
    short = {word: count for word, count in counts.items() if len(word) <= LONGEST_WORD}
    vocabulary = Vocabulary.from_counts(short, min_count=recipe.least_count, max_size=recipe.most_words)
    of_words = _encoded(teacher, vocabulary.words, "words", progress)
    return vocabulary, begin(of_words, [counts[word] / counts.total() for word in vocabulary.words], recipe)


def _check_start(start: Student, teacher: TextEncoder, recipe: StudentRecipe) -> None:
    settings = start.settings
    found = (settings.teacher, settings.dimensions, settings.row_size)
    if found != (teacher.name, teacher.dimensions, recipe.row_size):
        raise SettingError(
            f"the student to go on from has the teacher {found[0]}, {found[1]} dimensions and rows of {found[2]}, but "
            f"expected {teacher.name}, {teacher.dimensions} and {recipe.row_size}",
            "go on from a student of this teacher, or train without one",
        )


def _from_student(
    start: Student, counts: Counter[str], teacher: TextEncoder, recipe: StudentRecipe, progress: Progress
) -> tuple[Vocabulary, Start]:
    """Return a student's words and rows, and with them further words as if it began: ``(t - b) W⁺ᵀ a / (a + p)``."""
    arrays = start.arrays()
    further = {word: n for word, n in counts.items() if len(word) <= LONGEST_WORD and word not in start.vocabulary}
    added = Vocabulary.from_counts(further, min_count=recipe.least_count, max_size=recipe.most_words).words
    rows = arrays["words"]
    if added:
        weights = [sif_weight(counts[word] / counts.total(), recipe.damping) for word in added]
        centred = _encoded(teacher, added, "words", progress) - arrays["bias"]
        made = centred @ np.linalg.pinv(arrays["output"]).T * np.array(weights, dtype=np.float32)[:, None]
        rows = np.concatenate([rows, made])
    vocabulary = Vocabulary([*start.vocabulary.words, *added])
    return vocabulary, Start(rows, arrays["output"], arrays["bias"], arrays.get("pairs"))


def sif_weight(share: float, damping: float) -> float:
    """Return ``a / (a + p)``: how much of its row a word keeps that makes up the share p of all words.

    >>> sif_weight(0.001, 0.001), round(sif_weight(0.049, 0.001), 3)
    (0.5, 0.02)
    """
    return damping / (damping + share)


def principal(vectors: Array, size: int) -> tuple[Array, Array]:
    """Return the mean of vectors and their principal directions, the first first, each with a positive largest entry.

    Returns:
        μ (D,), and P (D, size) whose columns are orthonormal: the eigenvectors of the covariance of greatest value.

    >>> mean, directions = principal(np.array([[0.0, 1], [4, 1], [2, 3], [2, -1], [6, 1], [-2, 1]]), 1)
    >>> mean.tolist(), directions.ravel().tolist()
    ([2.0, 1.0], [1.0, 0.0])
    """
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors - mean
    _, found = np.linalg.eigh(centred.T @ centred / len(vectors))  # by rising value
    directions = found[:, ::-1][:, :size]
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    return mean.astype(np.float32), np.ascontiguousarray(directions, dtype=np.float32)


def begin(of_words: Array, shares: Sequence[float], recipe: StudentRecipe) -> Start:
    """Return the start of training: words' vectors less their mean, in principal directions, damped by frequency.

    Args:
        of_words: the teacher's vectors of the words.  # (V, D)
        shares: of each word in all words.

    Raises:
        SettingError: ``row_size`` is more than there are words or dimensions.
    """
    if recipe.row_size > min(of_words.shape):
        raise SettingError(
            f"row_size is {recipe.row_size}, but there are {of_words.shape[0]} words of {of_words.shape[1]} dimensions",
            "set a smaller row_size, or give more texts",
        )
    mean, directions = principal(of_words, recipe.row_size)
    weights = np.array([sif_weight(share, recipe.damping) for share in shares], dtype=np.float32)
    rows = ((of_words - mean) @ directions * weights[:, None]).astype(np.float32)
    return Start(rows, directions, mean)


class _Rows:
    """Texts as places in the joined table of words and pairs, one after the other."""

    def __init__(self, places: list[list[int]]) -> None:
        self.lengths = np.array([len(one) for one in places])
        self._ends = np.concatenate([[0], np.cumsum(self.lengths)])
        self._places = np.array([place for one in places for place in one], dtype=np.int64)

    @classmethod
    def of(cls, texts: Sequence[list[str]], reader: RowReader, words_count: int) -> _Rows:
        """Return the places of texts, given as words."""
        return cls([one.words + [words_count + pair for pair in one.pairs] for one in map(reader.rows, texts)])

    def batch(self, chosen: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the places of some texts, and where each begins, with the end of the last."""
        parts = [self._places[self._ends[one] : self._ends[one + 1]] for one in chosen]
        offsets = np.concatenate([[0], np.cumsum(self.lengths[chosen])])
        return torch.from_numpy(np.concatenate(parts)), torch.from_numpy(offsets)


class _Network(nn.Module):
    def __init__(self, start: Start, pairs: int) -> None:
        super().__init__()
        size = start.rows.shape[1]
        known = np.zeros((0, size), dtype=np.float32) if start.pairs is None else start.pairs
        empty = np.zeros((pairs - len(known), size), dtype=np.float32)
        table = torch.from_numpy(np.concatenate([start.rows, known, empty]).astype(np.float32, copy=False))
        self.rows = nn.EmbeddingBag(len(table), size, mode="sum", sparse=True, include_last_offset=True, _weight=table)
        self.output = nn.Linear(size, len(start.bias))
        with torch.no_grad():
            self.output.weight.copy_(torch.from_numpy(start.output))
            self.output.bias.copy_(torch.from_numpy(start.bias))

    def forward(self, places: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Return the vectors of texts, at length 1.  # (B, D)"""
        return functional.normalize(self.output(self.rows(places, offsets)), dim=1)

    @torch.no_grad()
    def vectors(self, texts: _Rows) -> Array:
        """Return the vectors of all texts; zeros where nothing is known.  # (N, D)"""
        chosen = np.arange(len(texts.lengths))
        found: Array = self(*texts.batch(chosen)).numpy()
        found[texts.lengths == 0] = 0
        return found

    def arrays(self, words_count: int) -> dict[str, Array]:
        """Return what was learned, by the names of a student."""
        table = self.rows.weight.detach().numpy()
        found: dict[str, Array] = {"words": table[:words_count]}
        if len(table) > words_count:
            found["pairs"] = table[words_count:]
        return found | {
            "output": self.output.weight.detach().numpy(),
            "bias": self.output.bias.detach().numpy(),
        }


def order_loss(
    vectors: torch.Tensor, targets: torch.Tensor, documents: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Return how unlike student and teacher order documents. ::

        - mean_i Σ_d p_id ln q_id         p_i = softmax_d(t_i · d / τ), q_i = softmax_d(v_i · d / τ)

    Source: Hinton et al. 2015, "Distilling the Knowledge in a Neural Network", section 2.
    Differs: the classes are the documents of a forum.

    Args:
        vectors: v, the student's.  # (B, D)
        targets: t, the teacher's.  # (B, D)
        documents: d.  # (N, D)

    >>> both = torch.eye(2)
    >>> round(float(order_loss(both[1:], both[:1], both, 1.0)), 4)  # p = (.7311, .2689), q = (.2689, .7311)
    1.0443
    """
    with torch.no_grad():
        wanted = functional.softmax(targets @ documents.T / temperature, dim=1)  # (B, N)
    return -(wanted * functional.log_softmax(vectors @ documents.T / temperature, dim=1)).sum(dim=1).mean()


def _fit(
    network: _Network,
    texts: _Rows,
    targets: Array,
    documents: Array | None,
    recipe: StudentRecipe,
    progress: Progress,
) -> None:
    chance = np.random.default_rng([recipe.seed, 1])
    usable = np.flatnonzero(texts.lengths)
    size = recipe.batch_size
    total = recipe.epochs * -(-len(usable) // size)
    sparse = torch.optim.SparseAdam([network.rows.weight], lr=recipe.learning_rate)
    dense = torch.optim.Adam(network.output.parameters(), lr=recipe.learning_rate / 5)
    falling = [torch.optim.lr_scheduler.LinearLR(one, 1.0, 0.01, max(1, total)) for one in (sparse, dense)]
    searched = None if documents is None or not recipe.order_weight else torch.from_numpy(documents)
    progress.start("training", total, "steps")
    for _ in range(recipe.epochs):
        order = chance.permutation(usable)
        for at in range(0, len(order), size):
            chosen = order[at : at + size]
            vectors, wanted = network(*texts.batch(chosen)), torch.from_numpy(targets[chosen])
            loss = 1 - (vectors * wanted).sum(dim=1).mean()
            if searched is not None:
                loss = loss + recipe.order_weight * order_loss(vectors, wanted, searched, recipe.temperature)
            for one in (sparse, dense):
                one.zero_grad()
            loss.backward()
            for one in (sparse, dense):
                one.step()  # type: ignore[no-untyped-call]
            for schedule in falling:
                schedule.step()
            progress.advance(1)


def learn_buckets(known: Sequence[str], rows: Array, recipe: StudentRecipe, progress: Progress) -> tuple[Array, float]:
    """Return rows of buckets by whose n-grams a word gets nearly its own row, also misspelt.

    Args:
        known: words, V of them.
        rows: theirs.  # (V, d)

    Returns:
        (buckets, d), and the mean cosine of misspelt words to the rows of the words that are meant.
    """
    table = nn.EmbeddingBag(max(1, recipe.buckets), rows.shape[1], mode="mean", include_last_offset=True)
    nn.init.zeros_(table.weight)
    if not recipe.buckets:
        return table.weight.detach().numpy(), 0.0
    chance = random.Random(recipe.seed)
    usable = [place for place, word in enumerate(known) if len(word) <= LONGEST_WORD]
    targets = torch.from_numpy(rows)
    optimiser = torch.optim.Adam(table.parameters(), lr=0.02)
    starts = range(0, len(usable), recipe.batch_size)
    progress.start("character n-grams", _LETTER_EPOCHS * len(starts), "steps")
    falling = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, _LETTER_EPOCHS * len(starts))
    for _ in range(_LETTER_EPOCHS):
        chance.shuffle(usable)
        for at in starts:
            chosen = usable[at : at + recipe.batch_size]
            spelled = [misspelt(known[place], chance) if chance.random() < 0.5 else known[place] for place in chosen]
            made = table(*_grams(spelled, recipe.buckets))
            loss = ((made - targets[chosen]) ** 2).sum(dim=1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            falling.step()
            progress.advance(1)
    asked = usable[:_MOST_HELD_OUT]
    with torch.no_grad():
        made = table(*_grams([misspelt(known[place], chance) for place in asked], recipe.buckets))
        cosine = functional.cosine_similarity(made, targets[asked]).mean()
    return table.weight.detach().numpy(), float(cosine)


def misspelt(word: str, chance: random.Random) -> str:
    """Return a word with one slip: a letter missing, doubled, replaced, or changed for its neighbour.

    Words of fewer than four letters stay.

    >>> misspelt("passport", random.Random(1))
    'pssport'
    """
    if len(word) < 4:
        return word
    at = chance.randrange(len(word) - 1)
    slips: list[Callable[[], str]] = [
        lambda: word[:at] + word[at + 1 :],
        lambda: word[: at + 1] + word[at:],
        lambda: word[:at] + chance.choice("abcdefghijklmnopqrstuvwxyz") + word[at + 1 :],
        lambda: word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    ]
    return chance.choice(slips)()


def _grams(spelled: Sequence[str], buckets: int) -> tuple[torch.Tensor, torch.Tensor]:
    lists = [buckets_of(word, buckets) for word in spelled]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    return torch.tensor([bucket for one in lists for bucket in one]), torch.from_numpy(offsets)


def overlaps(vectors: Array, exact: Array, documents: Array, nearest: int = NEAREST) -> list[float]:
    """Return for each query the share of the documents nearest to the teacher's vector that the student finds too.

    Args:
        vectors: the student's, of the queries.  # (Q, D)
        exact: the teacher's, of the same.  # (Q, D)
        documents: the teacher's.  # (N, D)

    >>> documents = np.eye(3, dtype=np.float32)
    >>> overlaps(np.array([[3.0, 0, 1]]), np.array([[2.0, 1, 0]]), documents, nearest=2)
    [0.5]
    """
    count = min(nearest, len(documents))
    found = np.argsort(-(vectors @ documents.T), axis=1, kind="stable")[:, :count]
    wanted = np.argsort(-(exact @ documents.T), axis=1, kind="stable")[:, :count]
    return [len(set(one) & set(other)) / count for one, other in zip(found.tolist(), wanted.tolist(), strict=True)]


def _report(
    before: Array, after: Array, exact: Array, documents: Array, learned: int, letters: float, seed: int
) -> StudentReport:
    first, last = overlaps(before, exact, documents), overlaps(after, exact, documents)
    return StudentReport(
        texts=learned,
        held_out=len(exact),
        cosine=bootstrap_mean((after * exact).sum(axis=1).tolist(), rounds=1000, seed=seed),
        start=bootstrap_mean((before * exact).sum(axis=1).tolist(), rounds=1000, seed=seed),
        overlap=bootstrap_mean(last, rounds=1000, seed=seed),
        start_overlap=bootstrap_mean(first, rounds=1000, seed=seed),
        gain=bootstrap_difference(last, first, rounds=1000, seed=seed),
        letters=letters,
    )


SEEN: Final = {
    "all-minilm-l6-v2": "all-MiniLM-L6-v2 was trained by others on about 1.2 billion pairs of texts, among them Reddit "
    "comments, Stack Exchange titles, bodies, answers and duplicate questions, Yahoo! Answers, Quora's question pairs, "
    "WikiAnswers, S2ORC and MS MARCO. Labelled pairs of public forums may be among them.",
}
"""Part of a teacher's name → what it was trained on, as far as its authors say."""


def card_of(teacher: str, report: StudentReport) -> str:
    """Return a student's model card, Markdown."""
    known = [text for name, text in SEEN.items() if name in teacher.lower()]
    seen = known[0] if known else "It is not known here what the teacher was trained on; see its own card."
    return (
        f"# A student of {teacher}\n\n"
        f"Sums of rows of words, pairs of words and character n-grams that put a text where the teacher would. Learned "
        f"from {report.texts} texts and the teacher's vectors of them; no labels. On {report.held_out} texts kept out "
        f"the cosine to the teacher is {_range(report.cosine)} (before training {report.start.mean:.3f}), and "
        f"{_range(report.overlap)} of the teacher's {NEAREST} nearest texts are among the student's {NEAREST} nearest "
        f"(before training {report.start_overlap.mean:.3f}); 95 % intervals over texts.\n\n"
        f"What the teacher may have seen: {seen} What it has seen, its student may know, so a measurement on such data "
        "is not one on unseen data.\n\n"
        "Not for: texts in languages that the texts learned from are not in; deciding alone that two questions are "
        "duplicates.\n"
    )


def _range(value: Interval) -> str:
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def _pairs(
    texts: Sequence[list[str]], vocabulary: Vocabulary, known: NDArray[np.int64], recipe: StudentRecipe
) -> NDArray[np.int64]:
    """Return known pairs and then the most frequent further ones, as ids of two neighbouring words.  # (P, 2)"""
    counts: Counter[tuple[int, int]] = Counter()
    for text in texts if recipe.most_pairs else ():
        ids = vocabulary.ids(text)
        counts.update(pair for pair in pairwise(ids) if all(pair))
    often = sorted((-count, pair) for pair, count in counts.items() if count >= recipe.least_pair_count)
    before = set(map(tuple, known.tolist()))
    further = [pair for _, pair in often if pair not in before][: recipe.most_pairs]
    return np.concatenate([known, np.array(further, dtype=np.int64).reshape(-1, 2)])


def _encoded(teacher: TextEncoder, texts: Sequence[str], unit: str, progress: Progress) -> Array:
    """Return the teacher's vectors of texts as queries, at length 1.  # (N, D)"""
    found = np.zeros((len(texts), teacher.dimensions), dtype=np.float32)
    progress.start("teacher", len(texts), unit)
    for at in range(0, len(texts), TEXTS_A_CALL):
        part = texts[at : at + TEXTS_A_CALL]
        vectors = np.asarray(teacher.encode_query(part), dtype=np.float32)
        if vectors.shape != (len(part), teacher.dimensions) or not np.isfinite(vectors).all():
            raise SettingError(
                f"{teacher.name} gave vectors of the shape {vectors.shape} for {len(part)} texts, or numbers that are "
                f"not finite, but expected ({len(part)}, {teacher.dimensions})",
                "mend the teacher, or take another one",
            )
        found[at : at + len(part)] = vectors
        progress.advance(len(part))
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    np.divide(found, lengths, out=found, where=lengths > 0)
    return found

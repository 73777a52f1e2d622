"""RAMN over the states of transformers, and sums of its parts with weights that are fixed beforehand.

A transformer reads pieces of words, and RAMN compares words::

    pieces     [CLS] my print ##ers , silent [SEP]
    words      my, printer, silent            stems; the state of a word is the mean of its pieces' states

The layers of the paper stand beside sums of standardised parts, all weights 1::

    base       Π_i b_i(Q)                                            equations 10 to 12
    mismatch   Π_i d_i · b_i(Q)                                      and 16, 17
    rank       R · Π_i d_i · b_i(Q)                                  and 18, 19, with the paper's α
    + BM25     z(log of mismatch) + z(-rank) + z(BM25)

    matches    (Σ_i w_i b_i(Q) / Σ_i w_i + Σ_j w_j b_j(q) / Σ_j w_j) / 2,  w = 1 / log(2 + tf(w | C))
    sum        z(matches) + z(cosine) + z(-rank) + z(BM25)
    control    z(cosine) + z(-rank) + z(BM25)

z is less the mean, divided by the standard deviation, over a query's candidates. ``matches`` reads both ways, and a
rare word counts more, as in the paper's f; it is our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.tasks import RerankTask, standardised
from askalike.models.encoders.model import WordStates
from askalike.papers.zhang2018.ramn import (
    Doubles,
    Floats,
    RamnSettings,
    Similarity,
    StateSource,
    compare,
    engine_ranks,
    ordered_scores,
    similarities,
)
from askalike.text.analyzer import stemmer_of
from askalike.text.markup import plain_text
from askalike.types import Question, Run

TokenStates = Callable[[Sequence[str]], Sequence[tuple[Sequence[str], Floats]]]
"""Texts → the pieces of each, special ones among them, with their states.  # (T,), (T, D)"""
Frequencies = Callable[[Sequence[str]], NDArray[np.integer]]

LAYERS: Final[Mapping[str, RamnSettings]] = {
    "base": RamnSettings(has_mismatch=False, alpha=0.0),
    "mismatch": RamnSettings(alpha=0.0),
    "rank": RamnSettings(rank_factor="signed"),
}
"""Layer → the paper's settings."""


def joined_text(question: Question) -> str:
    """Return title and body as a transformer reads them."""
    return f"{question.title} {plain_text(question.body, question.markup)}".strip()


def words_of(pieces: Sequence[str], states: Floats) -> tuple[tuple[str, ...], Floats]:
    """Return the words of pieces, as stems, each with the mean of its pieces' states; no marks, no special pieces.

    Example:
        >>> pieces = ["[CLS]", "print", "##ers", ",", "silent", "[SEP]"]
        >>> words, means = words_of(pieces, np.array([[9.0], [1.0], [3.0], [9.0], [5.0], [9.0]], np.float32))
        >>> words, means.tolist()
        (('printer', 'silent'), [[2.0], [5.0]])
    """
    starts = [place for place, piece in enumerate(pieces) if not piece.startswith("##")]
    spans = list(zip(starts, [*starts[1:], len(pieces)], strict=True))
    texts = ["".join(piece.removeprefix("##") for piece in pieces[begin:end]) for begin, end in spans]
    kept = [place for place, text in enumerate(texts) if text.isalnum()]
    means = [states[slice(*spans[place])].mean(axis=0) for place in kept]
    stems = stemmer_of("english").stems([texts[place] for place in kept])
    return tuple(stems), np.array(means, np.float32).reshape(len(kept), states.shape[-1])


class ContextualWords:
    """The words of questions with a transformer's states, and its vectors.

    Args:
        token_states: of the transformer.
        frequencies: how often each stem occurs in the corpus C.
    """

    def __init__(self, token_states: TokenStates, frequencies: Frequencies) -> None:
        self._token_states, self.frequencies = token_states, frequencies
        self._known: dict[Question, tuple[WordStates, Floats]] = {}

    def states(self, questions: Sequence[Question]) -> list[WordStates]:
        """Return the words and states of questions; those that are new are encoded together."""
        new = list(dict.fromkeys(question for question in questions if question not in self._known))
        encoded = self._token_states([joined_text(question) for question in new]) if new else ()
        for question, (pieces, states) in zip(new, encoded, strict=True):
            words, means = words_of(pieces, states)
            text = WordStates(words, np.zeros(len(words), np.int64), means)
            self._known[question] = text, direction(states)
        return [self._known[question][0] for question in questions]

    def vectors(self, questions: Sequence[Question]) -> Floats:
        """Return the mean of the states of all pieces, at length 1.  # (N, D)"""
        self.states(questions)
        return np.stack([self._known[question][1] for question in questions])


class MeanStates:
    """A source of states with the mean of a question's states as its vector; each question is encoded once."""

    def __init__(self, source: StateSource) -> None:
        self._source, self.frequencies = source, source.frequencies
        self._known: dict[Question, WordStates] = {}

    def states(self, questions: Sequence[Question]) -> list[WordStates]:
        """Return the words and states of questions; those that are new are encoded together."""
        new = list(dict.fromkeys(question for question in questions if question not in self._known))
        self._known.update(zip(new, self._source.states(new), strict=True))
        return [self._known[question] for question in questions]

    def vectors(self, questions: Sequence[Question]) -> Floats:
        """Return the mean of the states of all words, at length 1.  # (N, D)"""
        return np.stack([direction(text.states) for text in self.states(questions)])


class VectorSource(StateSource, Protocol):
    """A source of states that has vectors too."""

    def vectors(self, questions: Sequence[Question], /) -> Floats:
        """Return one vector of length 1 for each question, zeros for one without words.  # (N, D)"""


def direction(states: Floats) -> Floats:
    """Return the mean of states at length 1; zeros where there are none.  # (D,)

    >>> direction(np.array([[6.0, 8.0], [0.0, 0.0]], np.float32)).tolist() == np.array([0.6, 0.8], np.float32).tolist()
    True
    """
    mean = states.mean(axis=0) if len(states) else np.zeros(states.shape[-1], np.float32)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), _TINY))


_TINY: Final = 1e-12


def rarity(frequencies: NDArray[np.integer]) -> Doubles:
    """Return w of words that occur so often.

    >>> rarity(np.array([0, 6])).round(3).tolist()
    [1.443, 0.481]
    """
    return np.asarray(1 / np.log(2 + frequencies))


def matches(alike: Floats, own: Doubles, theirs: Doubles) -> float:
    """Return the mean of both directions of the weighted best matches; 0 where a text has no words.

    Args:
        alike: similarities of the words of two texts.  # (T, M)
        own, theirs: the weights of their words.  # (T,), (M,)

    Example:
        The query's words have best matches of 1 and .5, the second counts three times; the candidate's word has 1.

        >>> matches(np.array([[1.0], [0.5]]), np.array([1.0, 3.0]), np.array([1.0]))
        0.8125
    """
    if not alike.size:
        return 0.0
    return float((own @ alike.max(axis=1) / own.sum() + theirs @ alike.max(axis=0) / theirs.sum()) / 2)


@dataclass(frozen=True, slots=True)
class FixedRamn:
    """Every layer and sum over one source of states, with nothing to choose.

    Args:
        lexical: task → BM25 of its candidates.
    """

    source: VectorSource
    similarity: Similarity
    lexical: Mapping[str, Run]

    def runs(self, task: RerankTask) -> dict[str, Run]:
        """Return the run of each layer and sum; candidates have 1 / their rank as their score."""
        self.source.states([*task.queries.values(), *task.documents.values()])
        runs: dict[str, Run] = {}
        for query, candidates in task.given.items():
            texts = [task.queries[query], *(task.documents[document] for document, _ in candidates)]
            ranks = engine_ranks(candidates)
            lexical = np.array([score for _, score in self.lexical[task.name][query]])
            for name, scores in self._scores(texts, ranks, lexical).items():
                scored = zip(candidates, scores.tolist(), strict=True)
                runs.setdefault(name, {})[query] = [(document, score) for (document, _), score in scored]
        return runs

    def _scores(self, texts: Sequence[Question], ranks: NDArray[np.int64], lexical: Doubles) -> dict[str, Doubles]:
        own, *theirs = self.source.states(texts)
        comparison = compare(own, theirs, self.source.frequencies, self.similarity)
        scores = {name: ordered_scores(comparison, ranks, settings) for name, settings in LAYERS.items()}
        mine, *others = (rarity(self.source.frequencies(text.words)) for text in (own, *theirs))
        matched = np.array(
            [
                matches(similarities(own.states, text.states, self.similarity), mine, weights)
                for text, weights in zip(theirs, others, strict=True)
            ]
        )
        vector, *vectors = self.source.vectors(texts)
        cosines = np.asarray(np.stack(vectors) @ vector, np.float64)
        searched = standardised(-ranks.astype(np.float64)) + standardised(lexical)
        return scores | {
            "bm25": standardised(scores["mismatch"]) + searched,
            "matches": matched,
            "sum": standardised(matched) + standardised(cosines) + searched,
            "cosine": cosines,
            "control": standardised(cosines) + searched,
        }

"""The candidates of a query as a table: a row for each question that may ask the same, a column for each score.

A search makes one table a query and takes it through its stages, which fill columns, drop rows and put them in order::

    find_candidates     the best by words and by meaning, each with both scores, the best of the weighted sum kept
    score_candidates    the probability that both ask the same
    read_records        the questions themselves, as the filters want them
    replace_duplicates  canonical questions in the place of their duplicates

The weighted sum of a query q and a candidate p is ``w · cos(q, p) + (1 - w) · bm25(q, p) / max_p' bm25(q, p')``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.search.engine import Candidate, DuplicateLinks, Engine, Floats
from askalike.search.originals import by_original, combined
from askalike.search.query import QueryTerm, TermCounts
from askalike.search.rankers import PROBABILITY, WORDS, Ranker
from askalike.search.scorer import ComparedQuery, Scoring, probability, scorers
from askalike.search.settings import MAX_HITS, OWN_WEIGHT, JoinSettings
from askalike.search.texts import Text
from askalike.types import Correction, Filters, Query, Question

DEEPER: Final = 4
"""Words are asked for so many times as many questions as become candidates: it takes hardly longer, and most of those
that meaning found have their score by words then."""

BEST_BY_WORDS: Final = 3
"""So many of the best by words are compared, however far their meaning is: a rare word may be all that was asked."""


@dataclass(slots=True)
class Candidates:
    """A query, and the questions that may ask the same, best first.

    Args:
        query: as it is searched for: in its language, misspelt words corrected.
        ranker: what answers.
        terms: of the query, most informative first.
        counts: knows how many questions have each term.
        k: so many hits are wanted.
        wanted: so many questions are looked for: more than ``k``, since duplicates of one original fall together.
        corrections: of misspelt words.
        vector: (D,) of length 1; None where vectors are not searched, or nothing of the query has one.
        keys: the engine's number of each question.  # (N,)
        scores: what orders them, higher is better.  # (N,)
        components: what the scores were made of, by name.  # (N,) each
        questions: what is shown in each row, once records were read.  # N
        via: the duplicate that was found, where its original is shown.  # N
        links: duplicate links of what was found, where they were looked up.
        is_complete: no other question can be a hit.
        reranked_by: the name of what put them in another order; "" for nothing.
        notice: what the asker should know of the answer.
        weights: term → weight; always the same object, by which an index knows that it has added them up.
    """

    query: Query
    ranker: Ranker
    terms: Mapping[str, QueryTerm]
    counts: TermCounts
    k: int
    wanted: int
    corrections: tuple[Correction, ...] = ()
    vector: NDArray[np.float32] | None = None
    keys: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: Floats = field(default_factory=lambda: np.zeros(0))
    components: dict[str, Floats] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)
    via: list[Question | None] = field(default_factory=list)
    links: DuplicateLinks | None = None
    is_complete: bool = False
    reranked_by: str = ""
    notice: str = ""
    weights: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.weights = {term: weighed.weight for term, weighed in self.terms.items()}

    def depth(self, join: JoinSettings) -> int:
        """Return how many candidates are taken of words and of meaning."""
        return max(self.wanted, join.depth) if self.ranker.name == PROBABILITY else self.wanted

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> None:
        """Keep these rows, in this order."""
        rows = np.asarray(rows, np.intp)
        self.keys, self.scores = self.keys[rows], self.scores[rows]
        self.components = {name: column[rows] for name, column in self.components.items()}
        if self.questions:
            self.questions, self.via = [self.questions[row] for row in rows], [self.via[row] for row in rows]

    def cut(self, count: int) -> None:
        """Keep the first rows."""
        if len(self.keys) > count:
            self.take(range(count))


def deepen_unfilled(tables: Sequence[Candidates]) -> list[Candidates]:
    """Return the tables with fewer rows than hits are asked for, where others may be hits; they look deeper now.

    Each looks for twice as many questions as before, ``MAX_HITS`` at most: one that has looked for so many is done.
    """
    unfilled = [
        table for table in tables if len(table.keys) < table.k and table.wanted < MAX_HITS and not table.is_complete
    ]
    for table in unfilled:
        table.wanted = min(2 * table.wanted, MAX_HITS)
    return unfilled


def find_candidates(engine: Engine, tables: Sequence[Candidates], join: JoinSettings) -> None:
    """Fill tables with the best questions by words and by meaning; what is nearest is looked up for all at once."""
    nearest: dict[int, Sequence[Candidate]] = {}
    blocks: dict[tuple[int, Filters], list[int]] = {}
    for place, table in enumerate(tables):
        if table.ranker.reads_vectors and table.vector is not None:
            blocks.setdefault((table.depth(join), table.query.filters), []).append(place)
    for (depth, filters), places in blocks.items():
        vectors = np.stack([vector for place in places if (vector := tables[place].vector) is not None])
        nearest.update(zip(places, engine.nearest(vectors, depth, filters), strict=True))
    for place, table in enumerate(tables):
        near = nearest.get(place, ())
        table.questions, table.via = [], []
        if table.ranker.name == PROBABILITY:
            _join_sources(engine, table, near, join)
        else:
            depth, name = table.depth(join), "cosine"
            if table.ranker.name == WORDS:
                near, name = engine.lexical(table.weights, depth, table.query.filters), "bm25"
            table.keys = np.array([key for key, _ in near], np.int64)
            table.scores = np.array([score for _, score in near], np.float64)
            table.components = {name: table.scores}
            table.is_complete = len(near) < depth
            _order(table)


def _join_sources(engine: Engine, table: Candidates, near: Sequence[Candidate], join: JoinSettings) -> None:
    """Fill a table with the best of the weighted sum, of the union of the best by words and of the nearest."""
    depth, count = table.depth(join), max(join.scored, table.wanted)
    weight = 0.0 if table.vector is None else join.cosine_weight
    matched = engine.lexical(table.weights, DEEPER * depth, table.query.filters)
    bm25, cosines = dict(matched), dict(near)
    keys = list(dict.fromkeys([*(key for key, _ in matched[:depth]), *cosines]))
    unmatched = [key for key in keys if key not in bm25]
    if unmatched and len(matched) == DEEPER * depth:  # else no other question has a word
        bm25.update(engine.lexical_scores(table.weights, unmatched))
    far = [key for key in keys if key not in cosines]
    if table.vector is not None and far:
        cosines.update(engine.cosines(table.vector, far))
    table.keys = np.array(keys, np.int64)
    table.components = {"bm25": np.array([bm25.get(key, 0.0) for key in keys])}
    if table.ranker.reads_vectors:
        table.components["cosine"] = np.array([cosines.get(key, 0.0) for key in keys])
    keep_best_of_sum(table, weight, count)
    table.is_complete = len(matched) < depth and len(near) < depth and len(keys) <= count


def keep_best_of_sum(table: Candidates, weight: float, count: int) -> None:
    """Keep the ``count`` best by the weighted sum, by key where equal, the ``BEST_BY_WORDS`` best by words among them.

    Of a question without a vector, words weigh at least as much as they do beside one of askalike's own models.
    """
    bm25 = table.components["bm25"]
    cosine = table.components.get("cosine", np.zeros(len(bm25)))
    most = float(bm25.max(initial=0.0))
    share = bm25 / most if most > 0 else np.zeros(len(bm25))
    weights = np.where(cosine != 0, weight, min(weight, OWN_WEIGHT))
    table.scores = weights * cosine + (1.0 - weights) * share
    table.components["bm25_share"] = share
    _order(table)
    if len(table.keys) > count:
        shares = table.components["bm25_share"]
        of_words = np.argsort(-shares, kind="stable")[: min(BEST_BY_WORDS, count // 4)]
        of_words = of_words[shares[of_words] > 0]
        others = np.setdiff1d(np.arange(len(shares)), of_words)[: count - len(of_words)]
        table.take(np.sort(np.concatenate([of_words, others])))


def _order(table: Candidates, minimum: float = 0.0) -> None:
    """Keep the best by score, equal ones by key: those above 0 and from a minimum on."""
    order = np.lexsort((table.keys, -table.scores))
    is_hit = (table.scores[order] > 0) & (table.scores[order] >= minimum)
    table.take(order[is_hit])


def score_candidates(engine: Engine, scoring: Scoring, tables: Sequence[Candidates]) -> None:
    """Give the candidates of tables the probability that both ask the same; what several look at is read once.

    Components are those of the weighted sum, and ``same``, how likely who has answered one has answered the other.
    """
    scored = [table for table in tables if table.ranker.name == PROBABILITY]
    keys = list(dict.fromkeys(key for table in scored for key in table.keys.tolist()))
    if keys:
        texts = compared_texts(engine, keys)
        for table in scored:
            table.take([row for row, key in enumerate(table.keys.tolist()) if key in texts])
        compared = [
            ComparedQuery(
                table.query,
                table.counts,
                [texts[key] for key in table.keys.tolist()],
                None if table.vector is None else table.components.get("cosine"),
            )
            for table in scored
        ]
        logits = scoring.update.moved(scoring.logits(compared))
        version = scorers()[scoring.version]
        likely, same = probability(logits), probability(logits + version.same - version.related)
        end = 0
        for table in scored:
            rows = slice(end, end + len(table.keys))
            end = rows.stop
            table.scores = likely[rows]
            table.components["same"] = same[rows]
    for table in tables:
        count, minimum = len(table.keys), float(table.query.minimum)
        if table.query.is_canonical:
            minimum = 0.0  # several unlikely duplicates may be evidence enough
        _order(table, minimum)
        table.is_complete |= len(table.keys) < count  # others have less than the least score


def compared_texts(engine: Engine, keys: Sequence[int]) -> dict[int, Text | Question]:
    """Return questions as they are compared, or as they are where that was not kept; by key, those that are there."""
    texts: dict[int, Text | Question] = dict(engine.texts(keys))
    if missing := [key for key in keys if key not in texts]:
        texts.update(engine.questions(missing))
    return texts


def read_records(engine: Engine, tables: Sequence[Candidates]) -> None:
    """Keep the best questions of tables, as many as are wanted, that are there and as the filters want them.

    Equal scores are ordered by id.
    """
    for table in tables:
        if len(table.keys) > table.wanted:  # those as good as the last are told apart by their ids
            table.cut(int((table.scores >= table.scores[table.wanted - 1]).sum()))
    questions = engine.questions(list(dict.fromkeys(key for table in tables for key in table.keys.tolist())))
    for table in tables:
        read = [questions.get(key) for key in table.keys.tolist()]
        rows = [
            (-float(table.scores[row]), question.id, row, question)
            for row, question in enumerate(read)
            if question is not None and table.query.filters.admits(question)
        ]
        rows = sorted(rows)[: table.wanted]
        table.take([row for _, _, row, _ in rows])
        table.questions, table.via = [question for _, _, _, question in rows], [None] * len(rows)


def replace_duplicates(engine: Engine, tables: Sequence[Candidates], join: JoinSettings) -> None:
    """Let canonical questions stand for their duplicates, each once, and keep the ``k`` best of each table.

    A probability combines the evidence of all duplicates among the candidates that any search compares; the component
    ``alone`` is that of the likeliest, where there are others. Another score is that of the best.
    """
    tables = [table for table in tables if table.query.is_canonical]
    ids = list(dict.fromkeys(question.id for table in tables for question in table.questions))
    links = engine.duplicate_links(ids) if ids else DuplicateLinks()
    has_filter = any(table.query.filters.is_answered is not None for table in tables)
    answered = engine.answers([*ids, *links.questions]) if has_filter else {}
    for table in tables:
        shown = by_original(table.questions, links, table.query.filters, answered)
        scores = table.scores[[rows[0] for _, rows in shown]]
        if table.ranker.name == PROBABILITY:
            table.components["alone"] = np.full(len(table.scores), np.nan)
            for place, (_, (first, *others)) in enumerate(shown):
                if further := [row for row in others if row < join.scored]:
                    table.components["alone"][first] = scores[place]
                    scores[place] = combined(table.scores[[first, *further]].tolist(), join.damping)
        order = np.argsort(-scores, kind="stable")
        is_likely = scores[order] >= float(table.query.minimum)
        table.is_complete |= not is_likely.all()  # others have less
        order = order[is_likely][: table.k]
        originals = [shown[place][0] for place in order]
        table.take([shown[place][1][0] for place in order])
        table.scores = scores[order]
        pairs = zip(table.questions, originals, strict=True)
        table.via = [None if question is original else question for question, original in pairs]
        table.questions = originals
        table.links = links

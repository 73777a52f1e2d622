"""The search pipeline: query → candidates → probability → records → hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np

from askalike.errors import EncoderError, NotLearnedError, SettingError
from askalike.search.candidates import (
    Candidates,
    compared_texts,
    deepen_unfilled,
    find_candidates,
    read_records,
    replace_duplicates,
    score_candidates,
)
from askalike.search.correction import Speller, corrected, no_speller
from askalike.search.engine import Encoder, Engine
from askalike.search.explanation import explain
from askalike.search.query import TermCounts, weigh
from askalike.search.rankers import PROBABILITY, RANKER_NAMES, RANKERS, RERANKER, WORDS, Ranker, by_help
from askalike.search.reranker import Reranker, rerank
from askalike.search.scorer import ComparedQuery, Scoring, probability
from askalike.search.settings import MAX_HITS, SearchSettings
from askalike.search.texts import Text
from askalike.text.analyzer import Analyzer
from askalike.types import Correction, Hit, Order, Query, Question, SearchResult, Stage

SPARE = 5
"""A search looks for half as many questions again as hits are asked for, and for so many more: where several are
duplicates of one original, one hit becomes of them."""


@dataclass(slots=True)
class Laps:
    """How long each stage of a search took."""

    seconds: dict[Stage, float] = field(default_factory=dict)
    since: float = field(default_factory=time.perf_counter)

    def end(self, stage: Stage) -> None:
        """Count the time since the last end, or the beginning, to a stage."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.since
        self.since = now


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches over one state of a forum.

    Args:
        scoring: what the default ranker scores by.
        encoder: what made the engine's vectors; None where there are none, so that words alone can be searched.
        reranker: gives what re-orders the best hits, None where nothing was named; or raises EncoderError.
        language_of: tells what language a query is in that does not say it, in a forum of several.
        speller_of: gives what knows the words of a language, by its code ("" in a forum of one), by which misspelt
            ones are corrected; None where nothing does.
        notice: what every answer says.
    """

    engine: Engine
    scoring: Scoring
    encoder: Encoder | None = None
    settings: SearchSettings = field(default_factory=SearchSettings)
    reranker: Callable[[], Reranker | None] = lambda: None
    language_of: Callable[[Query], str] | None = None
    speller_of: Callable[[str], Speller | None] = no_speller
    notice: str = ""

    def search(self, queries: Sequence[Query]) -> list[SearchResult]:
        """Return what each query finds, in their order: with what matched and the best answers.

        Raises:
            SettingError, ForumError, EncoderError: as ``rank``.
        """
        laps = Laps()
        tables = self.rank(queries, laps)
        hits_of = explain(self.engine, self.analyzer, tables)
        laps.end("answer")
        seconds = {stage: spent / len(queries) for stage, spent in laps.seconds.items()}
        return [
            SearchResult(
                tuple(by_help(hits) if table.query.order == "help" else hits),
                table.corrections,
                table.reranked_by or table.ranker.name,
                table.ranker.reads_vectors,
                seconds,
                table.notice,
                self._least_shown(table, hits) if table.ranker.name == PROBABILITY else None,
                self.encoder is None
                or not table.ranker.reads_vectors
                or (table.vector is not None and self.encoder.reads(table.query)),
            )
            for table, hits in zip(tables, hits_of, strict=True)
        ]

    @property
    def analyzer(self) -> Analyzer:
        """Return what reads the texts of the forum."""
        return self.scoring.analyzer

    def _least_shown(self, table: Candidates, hits: Sequence[Hit]) -> float:
        """Return the forum's threshold; or the likelihood of a less likely hit that has every informative title word.

        A word or two are no title as the threshold was made of: who types them wants what has them.
        """
        analyzer = self.analyzer.of(table.query.language)
        wanted = set(analyzer.informative(analyzer.terms(table.query.title)))
        matched = ((hit, {term for match in hit.matched for term in analyzer.terms(match.word)}) for hit in hits)
        return min(
            [self.scoring.threshold, *(hit.likelihood or 0.0 for hit, terms in matched if wanted and wanted <= terms)]
        )

    def rank(self, queries: Sequence[Query], laps: Laps | None = None) -> list[Candidates]:
        """Return the at most ``k`` questions most similar to each query, best first, ties by id.

        A score of 0 or less is no hit: no word is shared, and the vectors point elsewhere. A query without an
        informative word that the forum or the encoder knows finds nothing. A question that was deleted after the
        candidate search saw it is left out, so that nothing is shown that the forum no longer holds.

        Where no ranker was named and the encoder cannot be had now, words answer, and the notice says why. Where the
        forum has a reranker, it puts the best in its order, unless a ranker was named; where that cannot be asked, the
        order before answers.

        Raises:
            SettingError: k is not between 1 and ``MAX_HITS``, or there is no such ranker or order.
            ForumError: the ranker was named, and the vectors or the model that it needs are not there.
            EncoderError: the ranker was named, and the encoder that it needs cannot be had now.
        """
        laps = laps or Laps()
        for query in queries:
            check_query(query)
        are_reranked = [self._is_reranked(query) for query in queries]
        reranker, problem = self._named_reranker(queries) if any(are_reranked) else (None, "")
        extra = self.settings.join.reranked if reranker is not None else 1
        tables = [
            self._prepare(query, max(query.k, extra if is_reranked else 1))
            for query, is_reranked in zip(queries, are_reranked, strict=True)
        ]
        laps.end("lexical")
        try:
            self._encode(tables)
        except EncoderError as error:
            if any(table.ranker.reads_vectors and table.query.ranker not in (None, RERANKER) for table in tables):
                raise
            notice = f"found by words alone: {error}"
            return replace(self, encoder=None, scoring=Scoring(self.analyzer), notice=notice).rank(queries, laps)
        laps.end("vector")
        pending = tables
        while pending:
            find_candidates(self.engine, pending, self.settings.join)
            score_candidates(self.engine, self.scoring, pending)
            laps.end("rank")
            read_records(self.engine, pending)
            replace_duplicates(self.engine, pending, self.settings.join)
            laps.end("answer")
            pending = deepen_unfilled(pending)
        for table, is_reranked in zip(tables, are_reranked, strict=True):
            if is_reranked and reranker is not None:
                problem = rerank(reranker, table, self.settings.join.reranked)
            notices = [self.notice, f"in the order before reranking: {problem}" if is_reranked and problem else ""]
            table.notice = "; ".join(filter(None, notices))
            table.cut(table.query.k)
        laps.end("rank")
        return tables

    def closest(self, queries: Sequence[Query]) -> list[Candidates]:
        """Return the ``k`` best candidates of each query, best first, without their records.

        All queries are one block: vectors near them are looked up together, and a candidate is read once, however many
        queries have it. So memory grows with their number.

        Nothing is read of who they are: one that was deleted meanwhile may be among them, duplicates are not replaced,
        and filters that only records tell of do not hold. Queries are read in the language of this searcher.

        Raises:
            SettingError, ForumError, EncoderError: as ``rank``, for a ranker that was named.
        """
        tables = [self._prepare(query, query.k) for query in queries]
        self._encode(tables)
        pending = tables
        while pending:
            find_candidates(self.engine, pending, self.settings.join)
            score_candidates(self.engine, self.scoring, pending)
            pending = deepen_unfilled(pending)
        for table in tables:
            table.cut(table.k)
        return tables

    def likelihoods(self, query: Query, keys: Sequence[int]) -> dict[int, float]:
        """Return how likely each of these questions asks the same as a query, whether or not a search finds it.

        Raises:
            EncoderError: the encoder cannot be had now.
        """
        questions = self.engine.questions(keys)
        if not questions:
            return {}
        logits = self.scoring.logits([self._compared(query, questions)])
        return dict(zip(questions, probability(self.scoring.update.moved(logits)).tolist(), strict=True))

    def addends(self, query: Query, keys: Sequence[int]) -> dict[int, dict[str, float]]:
        """Return what the logit of each question is the sum of, for a query; see ``Scoring.addends``.

        Raises:
            EncoderError: the encoder cannot be had now.
        """
        texts = compared_texts(self.engine, keys)
        return dict(zip(texts, self.scoring.addends([self._compared(query, texts)]), strict=True)) if texts else {}

    def _compared(self, query: Query, texts: Mapping[int, Text | Question]) -> ComparedQuery:
        """Return a query beside these questions, by their keys, with the cosines where both have vectors."""
        table = self._prepare(replace(query, ranker=PROBABILITY), 1)
        self._encode([table])
        cosines = None
        if table.vector is not None:
            near = self.engine.cosines(table.vector, list(texts))
            cosines = np.array([near.get(key, 0.0) for key in texts])
        return ComparedQuery(table.query, table.counts, list(texts.values()), cosines)

    def with_language(self, query: Query) -> Query:
        """Return a query with the language that it is in, where the forum is in several and nobody has said it."""
        if self.language_of is None or query.language:
            return query
        return replace(query, language=self.language_of(query))

    def _prepare(self, query: Query, k: int) -> Candidates:
        """Return an empty table for a query, its misspelt words corrected and its terms weighed.

        Terms are weighed in any case, since they show what matched. A query for words alone is not corrected.
        """
        query, ranker, counts = self.with_language(query), self._ranker(query.ranker), TermCounts(self.engine)
        written, *others = self.analyzer.prepare_query(query.language, query.title, query.body, query.markup)
        corrections: tuple[Correction, ...] = ()
        speller = self.speller_of(query.language)
        if speller is not None and self.settings.is_corrected and ranker.reads_vectors:
            query, corrections = corrected(query, written, self.analyzer.of(query.language), speller, counts)
            if corrections:
                written, *others = self.analyzer.prepare_query(query.language, query.title, query.body, query.markup)
        terms = weigh(written, self.settings.query, counts, others)
        wanted = k
        if query.is_canonical:
            least = self.settings.join.scored if ranker.name == PROBABILITY else 0
            wanted = max(k, least, min(k + k // 2 + SPARE, MAX_HITS))
        return Candidates(query, ranker, terms, counts, k, wanted, corrections)

    def _encode(self, tables: Sequence[Candidates]) -> None:
        """Give vectors to the tables whose ranker looks at some."""
        read = [table for table in tables if table.ranker.reads_vectors]
        if self.encoder is None or not read:
            return
        for table, vector in zip(read, self.encoder.encode([table.query for table in read]), strict=True):
            if vector.any():  # from zeros anything is as far as anything else
                table.vector = vector

    def _ranker(self, name: str | None) -> Ranker:
        """Return the ranker that answers: the settings' one, or ``words`` where that lacks vectors."""
        wanted = self.settings.ranker if name in (None, RERANKER) else name
        if wanted not in RANKER_NAMES:
            raise SettingError(f"there is no ranker {wanted!r}", f"expected one of {', '.join(RANKER_NAMES)}")
        ranker = RANKERS[wanted]
        if self.encoder is not None or wanted == WORDS:
            return ranker
        if wanted == PROBABILITY:
            return replace(ranker, reads_vectors=False)
        if name is None:
            return RANKERS[WORDS]
        raise NotLearnedError(
            f"the ranker {name!r} needs vectors, and this forum has none",
            'make them with "askalike encode FORUM" (the bundled encoder reads English; for another language run '
            f'"askalike train FORUM" first), or search with the ranker "{WORDS}"',
        )

    def _is_reranked(self, query: Query) -> bool:
        return query.ranker == RERANKER or (query.ranker is None and self.settings.ranker == PROBABILITY)

    def _named_reranker(self, queries: Sequence[Query]) -> tuple[Reranker | None, str]:
        """Return the forum's reranker, None where there is none or it cannot be had; and why it cannot."""
        try:
            reranker = self.reranker()
        except EncoderError as error:
            return None, str(error)
        if reranker is None and any(query.ranker == RERANKER for query in queries):
            raise NotLearnedError(
                f"this forum has no {RERANKER}",
                'name a cross-encoder or an endpoint with "askalike encode FORUM --reranker"',
            )
        return reranker, ""


def check_query(query: Query) -> None:
    """Raise SettingError where the number of hits, the least score or the order of a query is out of range."""
    if isinstance(query.k, bool) or not isinstance(query.k, int) or not 1 <= query.k <= MAX_HITS:
        raise SettingError(f"k is {query.k!r}", f"expected a whole number from 1 to {MAX_HITS}")
    if isinstance(query.minimum, str) or not query.minimum >= 0:  # nor what is no number
        raise SettingError(f"the least score of a hit is {query.minimum!r}", "expected 0 or more")
    if query.order not in get_args(Order):
        raise SettingError(f"there is no order {query.order!r}", f"expected one of {', '.join(get_args(Order))}")

"""The search pipeline: query → candidates → scores → records → hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from askalike.errors import NotLearnedError, SettingError
from askalike.search.correction import Speller, corrected
from askalike.search.engine import DuplicateLinks, Encoder, Engine
from askalike.search.explanation import explanations, matches, missing_words, query_words
from askalike.search.pool import Asked, Pool, Scored, Source, gather
from askalike.search.query import Query, QueryTerm, TermCounts, unknown_terms, weigh
from askalike.search.rankers import INTERACTION, LEXICAL, PROBABILITY, RANKERS, Ranker, by_probability, ranker_named
from askalike.search.reranker import BY_LETTERS, RERANKERS, Reranker, learned_as, rerank
from askalike.search.scorer import Scoring
from askalike.search.settings import ALL, MAX_HITS, THRESHOLDS, SearchSettings
from askalike.search.stages import stage
from askalike.text.analyzer import Analyzer
from askalike.types import Answer, Correction, Explanation, Filters, Hit, Question


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a search found, before it is explained.

    Args:
        query: as it was searched for, misspelt words corrected.
        corrections: which.
        terms: its weighted terms.
        found: the questions, best first.
        is_likelihood: the scores are probabilities that both ask the same.
    """

    query: Query
    corrections: tuple[Correction, ...]
    terms: Mapping[str, QueryTerm]
    found: list[tuple[Scored, Question]]
    is_likelihood: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """All that one search gives, from one state of a forum.

    Args:
        corrections: misspelt words of the query, and what was searched for instead.
        explanations: one for each hit where they were asked for, else none.
    """

    hits: tuple[Hit, ...] = ()
    corrections: tuple[Correction, ...] = ()
    explanations: tuple[Explanation, ...] = ()


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches over one state of a forum.

    Args:
        encoder: what made the engine's vectors; None where there are none, so that words alone can be searched.
        reranker: name in ``RERANKERS`` → what the forum has learned of it, None where that is nothing.
        speller: knows the words by which misspelt ones are corrected; None where nothing does.
        scoring: what the default ranker scores by; None is the package's scorer over words alone.
    """

    engine: Engine
    analyzer: Analyzer
    encoder: Encoder | None = None
    settings: SearchSettings = field(default_factory=SearchSettings)
    reranker: Callable[[str], Reranker | None] = lambda _: None
    speller: Speller | None = None
    scoring: Scoring | None = None

    def ranking(self, query: Query, k: int, filters: Filters, ranker: str | None = None) -> Ranking:
        """Return the at most ``k`` questions most similar to ``query``, best first, ties by id.

        A score of 0 or less is no hit: no word is shared, and the vectors point elsewhere. A query without a telling
        word that the forum or the encoder knows finds nothing. A question that was deleted after the candidate search
        saw it is left out, so that nothing is shown that the forum no longer holds. A threshold of the settings is that
        of as many candidates as a joining ranker looks at, whichever ranker answers.

        Args:
            ranker: a name from ``RANKER_NAMES``; None takes the settings' one, or ``lexical`` where that lacks vectors.

        Raises:
            SettingError: k is not between 1 and ``MAX_HITS``, or there is no such ranker.
            ForumError: the ranker was named, and the vectors or the model that it needs are not there.
        """
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_HITS:
            raise SettingError(f"k is {k!r}", f"expected a whole number from 1 to {MAX_HITS}")
        chosen = self._chosen(ranker)
        counts = TermCounts(self.engine)
        query, corrections = self._corrected(query, chosen, counts)
        asked = self._asked(query, chosen, counts)
        has_threshold = self.settings.threshold != ALL
        limit = max(k, self.settings.join.depth) if chosen.is_joining or has_threshold else k
        while True:
            wanted = k if limit <= self.settings.join.depth else limit
            pool = gather(self.engine, asked, chosen.sources, limit, filters, self.encoder, wanted)
            with stage("rank"):
                shown = THRESHOLDS[self.settings.threshold](chosen.score(pool, self.settings.join))
                scored = [one for one in shown if one.score > 0]
            with stage("answer"):
                found = self._held(pool, sorted(scored, key=lambda one: (-one.score, one.key)), k)
            if len(found) == k or pool.is_exhausted or has_threshold or limit == chosen.most:
                return Ranking(query, corrections, asked.terms, found, self.ranker_of(ranker) == PROBABILITY)
            limit = min(2 * limit, chosen.most or 2 * limit)

    def similar(self, query: Query, k: int, filters: Filters, ranker: str | None = None) -> list[Hit]:
        """Return ``ranking`` as hits: with what matched, the best answer, and what a question is a duplicate of.

        Raises:
            SettingError, ForumError: as ``ranking``.
        """
        ranked = self.ranking(query, k, filters, ranker)
        return self.hits(ranked)

    def search(
        self, query: Query, k: int, filters: Filters, ranker: str | None = None, *, is_explained: bool = False
    ) -> Search:
        """Return hits as ``similar``, with what the query was read as and, where asked for, their explanations.

        Raises:
            SettingError, ForumError: as ``ranking``.
        """
        ranked = self.ranking(query, k, filters, ranker)
        hits = self.hits(ranked)
        explained = self.explanations(query, hits, ranker) if is_explained else ()
        return Search(tuple(hits), ranked.corrections, tuple(explained))

    def hits(self, ranked: Ranking, links: DuplicateLinks | None = None) -> list[Hit]:
        """Return the hits of a ranking, or of some of its questions.

        Args:
            links: the duplicate links of these questions; None has them looked up.
        """
        with stage("answer"):
            words = query_words(ranked.query, ranked.terms, self.analyzer)
            ids = [question.id for _, question in ranked.found]
            answers = self.engine.answers(ids) if ids else {}
            if links is None:
                links = self.engine.duplicate_links(ids) if ids else DuplicateLinks()
            return [
                self._hit(rank, scored, question, ranked, words, answers.get(question.id, ()), links.of(question.id))
                for rank, (scored, question) in enumerate(ranked.found, start=1)
            ]

    def corrections(self, query: Query, ranker: str | None = None) -> tuple[Correction, ...]:
        """Return which words of a query are read as others.

        Raises:
            SettingError, ForumError: as ``ranking``.
        """
        return self._corrected(query, self._chosen(ranker), TermCounts(self.engine))[1]

    def _corrected(self, query: Query, chosen: Ranker, counts: TermCounts) -> tuple[Query, tuple[Correction, ...]]:
        """Return a query as a ranker searches for it; one without vectors asks no model what words there are."""
        if self.speller is None or not (self.settings.is_corrected and chosen.needs_vectors):
            return query, ()
        with stage("lexical"):
            return corrected(query, self.analyzer, self.speller, counts)

    def _hit(
        self,
        rank: int,
        scored: Scored,
        question: Question,
        ranked: Ranking,
        words: Mapping[str, str],
        answers: Sequence[Answer],
        originals: tuple[str, ...],
    ) -> Hit:
        matched = matches(question, ranked.terms, self.analyzer)
        return Hit(
            rank=rank,
            score=scored.score,
            question=question,
            components=scored.components,
            matched=matched,
            missing=missing_words(words, ranked.terms, matched, self.analyzer),
            likelihood=scored.score if ranked.is_likelihood else None,
            answer=answers[0] if answers else None,
            answer_count=len(answers),
            duplicate_of=originals,
        )

    def ranker_of(self, name: str | None) -> str:
        """Return the name of the ranker that answers a search that names this one, or none."""
        wanted = self.settings.ranker if name is None else name
        chosen = RANKERS.get(wanted)
        needs_vectors = chosen is not None and chosen.needs_vectors and wanted != PROBABILITY
        if name is None and needs_vectors and self.encoder is None:
            return LEXICAL
        return wanted

    def explanations(self, query: Query, hits: Sequence[Hit], ranker: str | None = None) -> list[Explanation]:
        """Return one explanation for each hit of a query, as the ranker that found them has it.

        Raises:
            ForumError: the ranker has to be learned, and was not.
        """
        wanted = self.settings.ranker if ranker is None else ranker
        if wanted in RERANKERS:
            return self.learned(wanted).explain(query, [hit.question for hit in hits])
        query, _ = self._corrected(query, self._chosen(ranker), TermCounts(self.engine))
        has_matches = self.ranker_of(ranker) == INTERACTION
        return explanations(query, hits, self.encoder, has_matches=has_matches)

    def learned(self, name: str) -> Reranker:
        """Return a ranker that the forum has learned.

        Raises:
            ForumError: it has not.
        """
        found = self.reranker(name)
        if found is None:
            raise NotLearnedError(
                f"this forum has not learned the ranker {name!r}",
                f'train it with "askalike train FORUM --recipe {learned_as(name)}"',
            )
        return found

    def _chosen(self, name: str | None) -> Ranker:
        wanted = self.settings.ranker if name is None else name
        chosen = ranker_named(wanted)
        if chosen is None:
            score = partial(rerank, self.learned(wanted))
            sources: tuple[Source, ...] = ("lexical", "spelling") if wanted in BY_LETTERS else ("lexical",)
            return Ranker(sources, lambda pool, _: score(pool), RERANKERS[wanted], is_joining=True, most=MAX_HITS)
        if wanted == PROBABILITY:
            scoring = self.scoring or Scoring(self.analyzer)
            words: tuple[Source, ...] = ("lexical",)
            used = chosen.sources if self.encoder is not None else words
            return replace(chosen, sources=used, score=partial(by_probability, scoring))
        if not chosen.needs_vectors or self.encoder is not None:
            return chosen
        if name is None:
            return RANKERS[LEXICAL]
        raise NotLearnedError(
            f"the ranker {name!r} needs vectors, and this forum has none",
            'make them with "askalike encode FORUM", in another language than English after "askalike train FORUM"; or '
            'search with the ranker "lexical"',
        )

    def _asked(self, query: Query, chosen: Ranker, counts: TermCounts) -> Asked:
        """Prepare the query; its terms are weighed in any case, since they show what matched.

        A vector of zeros is none: everything is as far from it as anything else.
        """
        with stage("lexical"):
            terms = weigh(query, self.analyzer, self.settings.query, counts)
        with stage("vector"):
            vector = self.encoder.encode(query) if chosen.needs_vectors and self.encoder is not None else None
        has_spelling = "spelling" in chosen.sources
        unknown = unknown_terms(query, self.analyzer, counts) if has_spelling else ()
        return Asked(query, terms, vector if vector is not None and vector.any() else None, unknown, counts)

    def _held(self, pool: Pool, scored: Sequence[Scored], k: int) -> list[tuple[Scored, Question]]:
        """Return the first ``k`` of which the engine has the record, equal scores by id."""
        held: list[tuple[Scored, Question]] = []
        start = 0
        while start < len(scored) and len(held) < k:
            stop = min(start + k - len(held), len(scored))
            while stop < len(scored) and scored[stop].score == scored[stop - 1].score:
                stop += 1  # which of these comes first is decided by their ids
            part = scored[start:stop]
            questions = pool.questions([one.key for one in part])
            held.extend((one, questions[one.key]) for one in part if one.key in questions)
            start = stop
        return sorted(held, key=lambda pair: (-pair[0].score, pair[1].id))[:k]

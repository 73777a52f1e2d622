"""The search pipeline: query → candidates → scores → records → hits."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EncoderError, NotLearnedError, SettingError
from askalike.search.correction import Speller, corrected, no_speller
from askalike.search.engine import Candidate, DuplicateLinks, Encoder, Engine
from askalike.search.originals import Found, canonical
from askalike.search.pool import Laps, Pool, Scored, gather, gather_from_one
from askalike.search.query import PreparedQuery, QueryTerm, TermCounts, weigh
from askalike.search.rankers import (
    PROBABILITY,
    RANKER_NAMES,
    RANKERS,
    WORDS,
    Ranker,
    by_help,
    by_probability,
    by_source,
)
from askalike.search.reranker import RERANKER, Reranker, reranked
from askalike.search.scorer import Compared, Scoring, probability
from askalike.search.settings import MAX_HITS, SearchSettings
from askalike.text.analyzer import Analyzer, Prepared
from askalike.text.markup import readable
from askalike.types import (
    Correction,
    Filters,
    Hit,
    Match,
    Order,
    Query,
    Question,
    SearchResult,
)

_Near = tuple[NDArray[np.float32] | None, tuple[int, Sequence[Candidate]] | None]
"""The vector of a query, and so many of what is nearest to it."""
_Ranked = tuple[PreparedQuery, Ranker]
"""A query, and the ranker that answers it."""
_Candidates = tuple[Pool, list[Scored], bool]
"""Of one search: those that are hits, best first, then by key; and whether more candidates bring no others."""

SPARE = 5
"""Half as many again as are asked for, and so many more, are looked at: duplicates of one original fall together."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a search found, before its hits are put together.

    Args:
        ranker: the name of the one that answered.
        has_vectors: it looks at vectors.
        found: best first.
        links: the duplicate links of what was found, where they were looked up.
        notice: why words alone answered, though the forum has vectors, and what mends it; or "".
        least: see ``SearchResult``.
    """

    asked: PreparedQuery
    ranker: str
    has_vectors: bool
    found: list[Found]
    links: DuplicateLinks | None = None
    notice: str = ""
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches over one state of a forum.

    Args:
        encoder: what made the engine's vectors; None where there are none, so that words alone can be searched.
        reranker: gives what re-orders the best hits, None where nothing was named; or raises EncoderError.
        scoring: what the default ranker scores by; None is the package's scorer over words alone.
        language_of: tells what language a query is in that does not say it, in a forum of several.
        speller_of: gives what knows the words of a language, by its code ("" in a forum of one), by which misspelt
            ones are corrected; None where nothing does.
        notice: what every answer says.
    """

    engine: Engine
    analyzer: Analyzer
    encoder: Encoder | None = None
    settings: SearchSettings = field(default_factory=SearchSettings)
    reranker: Callable[[], Reranker | None] = lambda: None
    scoring: Scoring | None = None
    language_of: Callable[[Query], str] | None = None
    speller_of: Callable[[str], Speller | None] = no_speller
    notice: str = ""

    @property
    def threshold(self) -> float:
        """Return the least probability by which 19 of 20 titles of other subjects find nothing."""
        return (self.scoring or Scoring(self.analyzer)).threshold

    def with_language(self, query: Query) -> Query:
        """Return a query with the language that it is in, where the forum is in several and nobody has said it."""
        if self.language_of is None or query.language:
            return query
        return replace(query, language=self.language_of(query))

    def search(self, query: Query) -> SearchResult:
        """Return what a query finds, with what matched and the best answers.

        Raises:
            SettingError, ForumError: as ``ranking``; SettingError: there is no such order.
        """
        laps = Laps()
        return self._result(self.ranking(query, laps), laps)

    def _result(self, ranked: Ranking, laps: Laps) -> SearchResult:
        hits = self.hits(ranked)
        if ranked.asked.query.order == "help":
            hits = by_help(hits)
        laps.end("answer")
        asked = ranked.asked
        is_read = self.encoder is None or not ranked.has_vectors
        if self.encoder is not None and asked.vector is not None:
            is_read = self.encoder.reads(asked.query)
        return SearchResult(
            tuple(hits),
            asked.corrections,
            ranked.ranker,
            ranked.has_vectors,
            laps.seconds,
            ranked.notice,
            ranked.least,
            is_read,
        )

    def search_many(self, queries: Sequence[Query]) -> list[SearchResult]:
        """Return what each query finds, as ``search`` does, in their order.

        Raises:
            SettingError, ForumError: as ``ranking``.
        """
        for query in queries:
            _check(query)
        try:
            if self.reranker() is None and not any(query.ranker == RERANKER for query in queries):
                laps = Laps()
                results = [self._result(ranking, laps) for ranking in self.rankings(queries, laps)]
                shares = {stage: spent / len(queries) for stage, spent in laps.seconds.items()}
                return [replace(result, seconds=shares) for result in results]
        except EncoderError:
            pass
        return [self.search(query) for query in queries]

    def rankings(self, queries: Sequence[Query], laps: Laps | None = None) -> Iterator[Ranking]:
        """Yield a ranking of each query; vectors are made, what is nearest is looked up, and candidates are scored
        for all of them at once.

        Nothing re-orders these, and nothing stands in for an encoder that cannot be had.

        Args:
            laps: of all of them together.

        Raises:
            SettingError, ForumError, EncoderError: as ``ranking``, for a ranker that was named.
        """
        laps = laps or Laps()
        prepared = self._prepare([self.with_language(query) for query in queries], laps)
        wanted = {
            place: (asked.most, self._depth(ranker, asked.most)) for place, (asked, ranker) in enumerate(prepared)
        }
        candidates = self._candidates(prepared, wanted, laps)
        for place, (asked, ranker) in enumerate(prepared):
            found = self._rank(asked, ranker, candidates.pop(place), laps)
            yield replace(found, notice=self.notice) if self.notice else found

    def closest(self, queries: Sequence[Query]) -> list[list[Scored]]:
        """Return the ``k`` best candidates of each query, best first, without their records.

        All queries are one block: vectors near them are looked up together, and a candidate is read once, however many
        queries have it. So memory grows with their number.

        Nothing is read of who they are: one that was deleted meanwhile may be among them, duplicates are not replaced,
        and filters that only records tell of do not hold. Queries are read in the language of this searcher.

        Raises:
            SettingError, ForumError, EncoderError: as ``ranking``, for a ranker that was named.
        """
        laps = Laps()
        prepared = self._prepare(queries, laps)
        limits = [self._depth(ranker, query.k) for (_, ranker), query in zip(prepared, queries, strict=True)]
        found: list[list[Scored]] = [[] for _ in queries]
        waiting: Sequence[int] = range(len(queries))
        while waiting:
            scored = self._candidates(prepared, {place: (queries[place].k, limits[place]) for place in waiting}, laps)
            waiting = []
            for place, (_, best, is_all) in scored.items():
                found[place] = best[: queries[place].k]
                if len(found[place]) < queries[place].k and not is_all:
                    limits[place] *= 2
                    waiting.append(place)
        return found

    def _candidates(
        self, prepared: Sequence[_Ranked], wanted: Mapping[int, tuple[int, int]], laps: Laps
    ) -> dict[int, _Candidates]:
        """Return what is found for some of the searches, those of one ranker scored together.

        Args:
            wanted: place of a search → how many hits, and how many candidates of each source are looked at.
        """
        by_ranker: dict[str, list[int]] = {}
        for place in wanted:
            by_ranker.setdefault(prepared[place][1].name, []).append(place)
        found: dict[int, _Candidates] = {}
        for some in by_ranker.values():
            asked = [(prepared[place][0], *wanted[place]) for place in some]
            found |= zip(some, self._score(prepared[some[0]][1], asked, laps), strict=True)
        return found

    def _prepare(self, queries: Sequence[Query], laps: Laps) -> list[_Ranked]:
        """Return each query with its vector and what is nearest to it, and the ranker that answers.

        Where counts of terms take long, vectors are made meanwhile of the queries as they are written; of those that
        are corrected then, once more.
        """
        chosen = [self._ranker(query.ranker) for query in queries]
        wanted = [min(one.k + one.k // 2 + SPARE, MAX_HITS) if one.is_canonical else one.k for one in queries]
        written = [self.analyzer.prepare_query(one.language, one.title, one.body, one.markup) for one in queries]
        depths = {
            place: self._depth(ranker, wanted[place])
            for place, ranker in enumerate(chosen)
            if ranker.reads_vectors and self.encoder is not None
        }
        near: dict[int, _Near] = {}
        if self.engine.is_distant and depths:
            self.engine.expect({term for read in written for one in read for term in (*one.title, *one.body)})
            laps.end("lexical")
            near = self._nearest({place: (queries[place], depth) for place, depth in depths.items()})
            laps.end("vector")
        made = zip(queries, chosen, written, wanted, strict=True)
        asked = [self._prepare_one(*one) for one in made]
        laps.end("lexical")
        changed = {
            place: (asked[place].query, depth)
            for place, depth in depths.items()
            if place not in near or asked[place].corrections
        }
        for place, (vector, nearest) in (near | self._nearest(changed) if changed else near).items():
            asked[place] = replace(asked[place], vector=vector, near=nearest)
        laps.end("vector")
        return list(zip(asked, chosen, strict=True))

    def _nearest(self, queries: Mapping[int, tuple[Query, int]]) -> dict[int, _Near]:
        """Return the vectors of queries, given by their places, and so many that are nearest to each."""
        nearest: dict[int, _Near] = dict.fromkeys(queries, (None, None))
        assert self.encoder is not None
        vectors = self.encoder.encode([query for query, _ in queries.values()])
        together: dict[tuple[int, Filters], list[tuple[int, NDArray[np.float32]]]] = {}
        for (place, (query, limit)), vector in zip(queries.items(), vectors, strict=True):
            if vector.any():  # from zeros anything is as far as anything else
                together.setdefault((limit, query.filters), []).append((place, vector))
        for (limit, filters), members in together.items():
            near = self.engine.nearest(np.stack([vector for _, vector in members]), limit, filters)
            for (place, vector), candidates in zip(members, near, strict=True):
                nearest[place] = (vector, (limit, candidates))
        return nearest

    def ranking(self, query: Query, laps: Laps | None = None) -> Ranking:
        """Return the at most ``k`` questions most similar to a query, best first, ties by id.

        A score of 0 or less is no hit: no word is shared, and the vectors point elsewhere. A query without an
        informative word that the forum or the encoder knows finds nothing. A question that was deleted after the
        candidate search saw it is left out, so that nothing is shown that the forum no longer holds.

        Where no ranker was named and the encoder cannot be had now, words answer, and the notice says why. Where the
        forum has a reranker, it puts the best in its order, unless a ranker was named; where that cannot be asked, the
        order before answers.

        Raises:
            SettingError: k is not between 1 and ``MAX_HITS``, or there is no such ranker.
            ForumError: the ranker was named, and the vectors or the model that it needs are not there.
            EncoderError: the ranker was named, and the encoder that it needs cannot be had now.
        """
        _check(query)
        laps = laps or Laps()
        is_named = query.ranker == RERANKER
        if not is_named and (query.ranker is not None or self.settings.ranker != PROBABILITY):
            return self._rank_before_reranking(query, laps)
        problem, reranker = "", None
        try:
            reranker = self.reranker()
        except EncoderError as error:
            problem = str(error)
        if reranker is None and not problem:
            if is_named:
                raise NotLearnedError(
                    f"this forum has no {RERANKER}",
                    'name a cross-encoder or an endpoint with "askalike encode FORUM --reranker"',
                )
            return self._rank_before_reranking(query, laps)
        depth = self.settings.join.reranked
        ranked = self._rank_before_reranking(replace(query, k=max(query.k, depth), ranker=None), laps)
        if reranker is not None:
            try:
                found = reranked(reranker, ranked.asked.query, ranked.found, depth)
                ranked = replace(ranked, ranker=RERANKER, found=found)
            except EncoderError as error:
                problem = str(error)
        laps.end("rank")
        notices = [ranked.notice, f"in the order before reranking: {problem}" if problem else ""]
        return replace(ranked, found=ranked.found[: query.k], notice="; ".join(filter(None, notices)))

    def _rank_before_reranking(self, query: Query, laps: Laps) -> Ranking:
        """Return a ranking before the reranker; see ``ranking``."""
        try:
            return next(self.rankings([query], laps))
        except EncoderError as error:
            if query.ranker is not None:
                raise
            by_words = replace(self, encoder=None, scoring=Scoring(self.analyzer))
            return replace(next(by_words.rankings([query], laps)), notice=f"found by words alone: {error}")

    def _rank(self, asked: PreparedQuery, ranker: Ranker, candidates: _Candidates, laps: Laps) -> Ranking:
        """Return a ranking.

        Args:
            candidates: found for ``asked.most`` hits.
        """
        k, filters = asked.query.k, asked.query.filters
        limit = asked.most
        ranking = Ranking(
            asked,
            ranker.name,
            ranker.reads_vectors,
            [],
            least=self.threshold if ranker.name == PROBABILITY else None,
        )
        if not asked.query.is_canonical:
            return replace(ranking, found=self._best_hits(asked, ranker, k, candidates, laps))
        while True:
            found = self._best_hits(asked, ranker, limit, candidates, laps)
            links = self.engine.duplicate_links([one.question.id for one in found])
            is_admitted: Callable[[Question], bool] = filters.admits
            if filters.is_answered is not None:
                answered = self.engine.answers([*(one.question.id for one in found), *links.questions])
                is_admitted = partial(_is_admitted, filters, answered)
            shown = canonical(found, links, is_admitted, k)
            if len(shown) == k or len(found) < limit or limit == MAX_HITS:
                return replace(ranking, found=shown, links=links)
            limit = min(2 * limit, MAX_HITS)

    def likelihoods(self, query: Query, keys: Sequence[int]) -> dict[int, float]:
        """Return how likely each of these questions asks the same as a query, whether or not a search finds it.

        Raises:
            EncoderError: the encoder cannot be had now.
        """
        query = self.with_language(query)
        ranker = self._ranker(PROBABILITY)
        read = self.analyzer.prepare_query(query.language, query.title, query.body, query.markup)
        asked = self._prepare_one(query, ranker, read)
        questions = self.engine.questions(keys)
        held = [key for key in keys if key in questions]
        if asked.counts is None or not held:
            return {}
        cosines = None
        if self.encoder is not None:
            [vector] = self.encoder.encode([asked.query])
            if vector.any():
                _, near = self.engine.scores(asked.weights, (), vector, held)
                cosines = np.array([near.get(key, 0.0) for key in held])
        scoring = self.scoring or Scoring(self.analyzer)
        given = [questions[key] for key in held]
        found = scoring.logits([Compared(asked.query, asked.counts, given, cosines)])
        return dict(zip(held, probability(scoring.update.moved(found)).tolist(), strict=True))

    def hits(self, ranked: Ranking) -> list[Hit]:
        """Return a ranking as hits: with what matched, the best answer, and what a question is a duplicate of."""
        query = ranked.asked.query
        terms = _shown_terms(ranked.asked, self.analyzer.of(query.language))
        words_of: dict[Analyzer, dict[str, str]] = {}
        ids = [one.question.id for one in ranked.found]
        answers = self.engine.answers(ids) if ids else {}
        links = ranked.links
        if links is None:
            links = self.engine.duplicate_links(ids) if ids else DuplicateLinks()
        likely = {PROBABILITY: "score", RERANKER: "first"}.get(ranked.ranker)
        hits: list[Hit] = []
        for rank, (scored, question, via) in enumerate(ranked.found, start=1):
            source = via or question  # what was found: its words are those that matched
            matched = matches(source, terms, self.analyzer.of(source.language))
            asked = self.analyzer.asked(source.language, query.language)
            if asked not in words_of:
                words_of[asked] = informative_words(query, terms, asked)
            listed = sorted(
                (one for found in matched.values() for one in found),
                key=lambda match: (-match.weight, match.field != "title", match.word),
            )
            missing = dict.fromkeys(word for term, word in words_of[asked].items() if term not in matched)
            given = answers.get(question.id, ())
            hits.append(
                Hit(
                    rank=rank,
                    score=scored.score,
                    question=question,
                    components=scored.components,
                    matched=tuple(listed),
                    missing=tuple(missing)[:MOST_MISSING],
                    likelihood=scored.components.get(likely, scored.score) if likely else None,
                    answer=given[0] if given else None,
                    answer_count=len(given),
                    duplicate_of=links.targets.get(question.id, ()),
                    via=via,
                    notice=ranked.notice,
                )
            )
        return hits

    def _ranker(self, name: str | None) -> Ranker:
        """Return the ranker that answers: the settings' one, or ``words`` where that lacks vectors."""
        wanted = self.settings.ranker if name is None else name
        if wanted not in RANKER_NAMES:
            raise SettingError(f"there is no ranker {wanted!r}", f"expected one of {', '.join(RANKER_NAMES)}")
        ranker = RANKERS[wanted]
        if self.encoder is not None or wanted == WORDS:
            return ranker
        if wanted == PROBABILITY:
            return replace(ranker, sources=RANKERS[WORDS].sources)
        if name is None:
            return RANKERS[WORDS]
        raise NotLearnedError(
            f"the ranker {name!r} needs vectors, and this forum has none",
            'make them with "askalike encode FORUM", in another language than English after "askalike train FORUM"; or '
            f'search with the ranker "{WORDS}"',
        )

    def _prepare_one(self, query: Query, ranker: Ranker, read: Sequence[Prepared], most: int = 0) -> PreparedQuery:
        """Prepare a query as it was read; its terms are weighed in any case, since they show what matched.

        One for a ranker without vectors is not corrected.
        """
        counts = TermCounts(self.engine)
        written, *others = read
        corrections: tuple[Correction, ...] = ()
        is_corrected = self.settings.is_corrected and ranker.reads_vectors
        speller = self.speller_of(query.language)
        if speller is not None and is_corrected:
            query, corrections = corrected(query, written, self.analyzer.of(query.language), speller, counts)
            if corrections:
                written, *others = self.analyzer.prepare_query(query.language, query.title, query.body, query.markup)
        terms = weigh(written, self.settings.query, counts, others)
        weights = {term: found.weight for term, found in terms.items()}
        return PreparedQuery(query, terms, weights, corrections, None, counts, most=most)

    def _best_hits(
        self, asked: PreparedQuery, ranker: Ranker, k: int, candidates: _Candidates, laps: Laps
    ) -> list[Found]:
        """Return the ``k`` best.

        Args:
            candidates: those that were found for ``asked.most`` of them.
        """
        limit = self._depth(ranker, max(k, asked.most))
        if k > asked.most:
            [candidates] = self._score(ranker, [(asked, k, limit)], laps)
        while True:
            pool, scored, is_all = candidates
            found = self._with_records(pool, scored, k, asked.query.filters)
            laps.end("answer")
            if len(found) == k or is_all:
                return found
            limit *= 2
            [candidates] = self._score(ranker, [(asked, k, limit)], laps)

    def _score(
        self, ranker: Ranker, several: Sequence[tuple[PreparedQuery, int, int]], laps: Laps
    ) -> list[_Candidates]:
        """Return the candidates of each search.

        Args:
            several: query, k, and how many candidates of each source are looked at.
        """
        join = self.settings.join
        pools: list[Pool] = []
        for asked, k, limit in several:
            if ranker.name == PROBABILITY:
                count = max(join.scored, k if limit <= join.depth else limit)
                weight = join.cosine_weight if asked.vector is not None and ranker.reads_vectors else 0.0
                pools.append(gather(self.engine, asked, ranker.sources, limit, laps, count, weight))
            else:
                pools.append(gather_from_one(self.engine, asked, ranker.sources[0], limit, laps))
        if ranker.name == PROBABILITY:
            by_pool = by_probability(self.scoring or Scoring(self.analyzer), pools)
        else:
            by_pool = [by_source(pool, ranker.sources[0]) for pool in pools]
        candidates: list[_Candidates] = []
        for (asked, _, _), pool, scores in zip(several, pools, by_pool, strict=True):
            least = float(asked.query.minimum)
            hits = [scored for scored in scores if scored.score > 0 and scored.score >= least]
            hits.sort(key=lambda scored: (-scored.score, scored.key))
            laps.end("rank")
            is_cut = len(hits) < sum(scored.score > 0 for scored in scores)  # by the least score: others have less
            candidates.append((pool, hits, pool.is_exhausted or is_cut))
        return candidates

    def _depth(self, ranker: Ranker, k: int) -> int:
        """Return how many candidates of each source are looked at first."""
        return max(k, self.settings.join.depth) if ranker.name == PROBABILITY else k

    def _with_records(self, pool: Pool, scored: Sequence[Scored], k: int, filters: Filters) -> list[Found]:
        """Return the first ``k`` of which the engine has the record, as the filters want it; equal scores by id."""
        held: list[Found] = []
        start = 0
        while start < len(scored) and len(held) < k:
            stop = min(start + k - len(held), len(scored))
            while stop < len(scored) and scored[stop].score == scored[stop - 1].score:
                stop += 1  # which of these comes first is decided by their ids
            part = scored[start:stop]
            questions = pool.questions([one.key for one in part])
            held.extend(
                Found(one, question)
                for one in part
                if (question := questions.get(one.key)) is not None and filters.admits(question)
            )
            start = stop
        return sorted(held, key=lambda one: (-one.scored.score, one.question.id))[:k]


def _is_admitted(filters: Filters, answered: Container[str], question: Question) -> bool:
    return filters.admits(question, is_answered=question.id in answered)


def _check(query: Query) -> None:
    if isinstance(query.k, bool) or not isinstance(query.k, int) or not 1 <= query.k <= MAX_HITS:
        raise SettingError(f"k is {query.k!r}", f"expected a whole number from 1 to {MAX_HITS}")
    if isinstance(query.minimum, str) or not query.minimum >= 0:  # nor what is no number
        raise SettingError(f"the least score of a hit is {query.minimum!r}", "expected 0 or more")
    if query.order not in get_args(Order):
        raise SettingError(f"there is no order {query.order!r}", f"expected one of {', '.join(get_args(Order))}")


def _shown_terms(asked: PreparedQuery, analyzer: Analyzer) -> dict[str, QueryTerm]:
    """Return the terms of a query that explain a hit: idle ones only where its title has no others."""
    idle = analyzer.idle_terms
    if idle.issuperset(analyzer.terms(asked.query.title)):
        return dict(asked.terms)
    return {term: weighed for term, weighed in asked.terms.items() if term not in idle}


MAX_BODY_CHARACTERS = 50_000
"""Only so much of a body is looked at for the words to show; the score has seen all of it."""

INFORMATIVE_SHARE = 0.25
"""A word that is missing is told where it weighs this share of the query's most informative one or more."""

MOST_MISSING = 5


def matches(question: Question, terms: Mapping[str, QueryTerm], analyzer: Analyzer) -> dict[str, list[Match]]:
    """Return the terms of the query that a question has → a ``Match`` for each field, in the question's own spelling.

    A match's weight is ``weight(t) · idf(t)``: its part of the score before term frequency and length count.
    """
    body = readable(question.body[:MAX_BODY_CHARACTERS], question.markup, with_code=analyzer.settings.with_code)
    texts: tuple[tuple[Literal["title", "body"], str], ...] = (("title", question.title), ("body", body))
    found: dict[str, list[Match]] = {}
    for place, text in texts:
        for term, word in analyzer.first_among(text, terms.keys()).items():
            found.setdefault(term, []).append(Match(word, place, terms[term].weight * terms[term].idf))
    return found


def informative_words(query: Query, terms: Mapping[str, QueryTerm], analyzer: Analyzer) -> dict[str, str]:
    """Return the informative terms of a query → the word that the asker wrote, most informative first."""
    weights = {term: found.weight * found.idf for term, found in terms.items()}
    least = INFORMATIVE_SHARE * max(weights.values(), default=0.0)
    best = sorted((-weight, term) for term, weight in weights.items() if weight >= least)
    body = readable(query.body[:MAX_BODY_CHARACTERS], query.markup, with_code=analyzer.settings.with_code)
    words = analyzer.first_among(f"{query.title} {body}", {term for _, term in best})
    return {term: words[term] for _, term in best if term in words}

"""Judged pairs of eleven forums as the scorer sees them: features, grades, and what other systems make of them.

Judged are the pools of ``judged-pools`` (four forums, some pairs read twice) and ``judged.jsonl`` beside this file: 186
other queries of ten forums, six or seven candidates each, the best of a first fit and of MiniLM, read once by one
language model by the guide of the pools. Another 40 queries are of the bundled forum, 228 candidates: the three best
of the default search and of MiniLM and two from further down, in random order; of 24 read again by the same model,
knowing of the first time, 23 got the same grade. All 14 that its authors linked as duplicates have 2 or 3, all 10 that
they linked as related have 1. A forum's own copies and titles of other forums are pairs whose answer is
known without reading.

``judged-drawn.jsonl``, by which nothing was learned, has 404 queries drawn by chance from eight forums, with
5,178 candidates of four systems (``benchmarks.reading``), a tenth of the queries read twice;
``benchmarks.drawn_queries`` measures by it.
"""

from __future__ import annotations

import json
import random
import shutil
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from askalike.data import bundled_forum
from askalike.evaluation.forum.tasks import questions_of
from askalike.forum import Forum, ForumSettings
from askalike.progress import SilentProgress
from askalike.readers.research.judged import read_judged
from askalike.search.features import FEATURES, Cosines, Floats, regard_title_alone
from askalike.search.margin import standing
from askalike.search.pool import Laps, gather
from askalike.search.query import PreparedQuery, QuerySettings, TermCounts, weigh
from askalike.search.scorer import Compared
from askalike.search.searcher import Searcher
from askalike.search.settings import MAX_HITS
from askalike.search.texts import reader_of
from askalike.types import Filters, Query, Question
from recipes.folders import WORK, need_data
from recipes.scorer.minilm import MiniLM

ARCHIVES: Final = {
    "travel": "travel-stackexchange",
    "slicer": "slicer-discourse/topics.jsonl.gz",
    "devops": "devops-stackexchange/posts.csv.gz",
    "reddit": "reddit/questions.jsonl.gz",
    "quantum": "stackexchange-dumps/quantumcomputing-2018",
    "math": "stackexchange-dumps/matheducators-2014",
    "cardano": "stackexchange-dumps/cardano-2021",
    "scicomp": "stackexchange-dumps/scicomp-meta",
    "yahoo": "yahoo/liveqa-5k.gz",
    "qatar": "",
    "homenet": "",
}
POOLED: Final = ("travel", "slicer", "devops", "reddit")
OTHERS: Final = Path(__file__).with_name("judged.jsonl")
DRAWN: Final = Path(__file__).with_name("judged-drawn.jsonl")
"""What ``benchmarks.reading`` drew and readers graded."""
SETTINGS: Final = ForumSettings()
BROAD: Final = frozenset({"reddit", "yahoo", "qatar"})
"""Forums in which a title of another forum may well have been asked."""
MARGIN: Final = "margin of the forum"
OTHER_FORM: Final = "other form"
"""A judged query that was a title, asked with its body, or by its title where it had both."""
SAMPLE: Final = 300

ALL: Final = Filters()

Graded = tuple[str, str, str, str, dict[str, float]]
"""Kind, forum, query, what was asked, and the mean grade of each candidate."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """One query with its candidates.

    Args:
        kind: "pool", "other", "drawn", ``OTHER_FORM`` of them, "copy", "copy of title", "edited", "elsewhere" or
            "nonsense".
        is_title: whether it was asked by its title alone.
        by_words: features without vectors.  # (N, F)
        general: with the bundled encoder.  # (N, F)
        sentences: with MiniLM; None where it was not asked.  # (N, F)
        grades: NaN where nobody judged.  # (N,)
        bm25, cosine, minilm: scores of other systems; MiniLM's where it was asked.  # (N,)
    """

    forum: str
    kind: str
    is_title: bool
    ids: tuple[str, ...]
    grades: Floats
    by_words: Floats
    general: Floats
    sentences: Floats | None
    bm25: Floats
    cosine: Floats
    minilm: Floats | None


def open_forum(name: str) -> Forum:
    """Return a forum with its vectors, built when it is not there."""
    folder, mark = WORK / f"scorer-{name}.forum", WORK / f"scorer-{name}.complete"
    if not mark.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with Forum.create(folder, settings=SETTINGS) as forum:
            if name == "homenet":
                forum.load(bundled_forum())
            elif ARCHIVES[name]:
                forum.load(need_data(ARCHIVES[name]))
            else:
                judged = [read_judged(need_data("semeval-task3-b"), "semeval", split) for split in ("train", "dev")]
                forum.add({question.id: question for part in judged for question in questions_of(part)}.values())
            forum.encode()
        mark.touch()
    return Forum.open(folder, settings=SETTINGS)


class Site:
    """A forum, compared pair by pair."""

    def __init__(self, name: str) -> None:
        self.name, self.forum, self.minilm = name, open_forum(name), MiniLM()
        self.searcher: Searcher = self.forum.indexes.searcher()
        numbers = sorted(self.forum.store.nums_by_id([question.id for question in self.draw(SAMPLE, 1)]).values())
        self.sample = list(self.forum.store.questions_by_num(numbers).values())
        self.usual = Cosines.among(self.minilm.encode(self.sample[: SAMPLE // 2]))
        self.standing = standing(self.forum.indexes.margin_now(SilentProgress()))

    def draw(self, count: int, seed: int) -> list[Question]:
        """Return questions at random."""
        size = len(self.forum)
        drawn = sorted(random.Random(seed).sample(range(1, size + 1), min(2 * count, size)))
        return list(self.forum.store.questions_by_num(drawn).values())[:count]

    def pairs(
        self, kind: str, query: Query, own: str, grades: dict[str, float], best: int, *, with_minilm: bool
    ) -> Pairs | None:
        """Return the judged candidates of a query, and the ``best`` of the search's first stage; None without any.

        Args:
            own: the id of the query, which is no candidate; "" where it is none of the forum.
        """
        search = self.searcher
        assert search.encoder is not None
        assert search.scoring is not None
        counts = TermCounts(search.engine)
        terms = weigh(search.analyzer.prepare(query.title, query.body, query.markup), QuerySettings(), counts)
        vector = search.encoder.encode([query])[0]
        query = replace(query, filters=Filters(exclude_ids=frozenset([own])) if own else ALL)
        weights = {term: weighed.weight for term, weighed in terms.items()}
        prepared = PreparedQuery(query, terms, weights, vector=vector if vector.any() else None)
        judged = list(self.forum.store.nums_by_id(list(grades)).values())
        bm25, cosine = self._first_stage(prepared, judged)
        highest = max(bm25.values(), default=0.0) or 1.0
        order = sorted(bm25, key=lambda num: (-(0.4 * cosine[num] + 0.6 * bm25[num] / highest), num))
        questions = search.engine.questions(list(dict.fromkeys([*judged, *order[:best]])))
        nums = [num for num in dict.fromkeys([*judged, *order[:best]]) if num in questions]
        if not nums:
            return None
        candidates = [questions[num] for num in nums]
        cosines = [cosine[num] for num in nums]
        near = cosines if prepared.vector is not None else None
        general = search.scoring.features([Compared(query, counts, candidates, prepared.vector, near)])
        general[:, FEATURES.index(MARGIN)] = self.standing
        by_words = general.copy()
        by_words[:, FEATURES.index("cosine") : FEATURES.index("size of the forum")] = 0
        sentences, minilm = self._by_minilm(query, candidates, by_words) if with_minilm else (None, None)
        return Pairs(
            self.name,
            kind,
            not query.body.strip(),
            tuple(candidate.id for candidate in candidates),
            np.array([grades.get(candidate.id, np.nan) for candidate in candidates]),
            by_words,
            general,
            sentences,
            np.array([bm25[num] for num in nums]),
            np.array(cosines),
            minilm,
        )

    def _first_stage(self, query: PreparedQuery, judged: Sequence[int]) -> tuple[dict[int, float], dict[int, float]]:
        """Return BM25 and cosine of the candidates of the search's first stage, and of the judged ones."""
        engine = self.searcher.engine
        pool = gather(engine, query, ("lexical", "vectors"), 50, Laps(), count=MAX_HITS, weight=0.4)
        bm25, cosine = ({key: pool.scores[of].get(key, 0.0) for key in pool.keys} for of in ("lexical", "vectors"))
        missing = [num for num in judged if num not in bm25]
        bm25.update(dict.fromkeys(missing, 0.0) | engine.scores(query.weights, missing, None, [])[0])
        cosine.update(dict.fromkeys(missing, 0.0))
        if query.vector is not None and missing:
            cosine.update(engine.scores({}, [], query.vector, missing)[1])
        return bm25, cosine

    def _by_minilm(self, query: Query, candidates: Sequence[Question], by_words: Floats) -> tuple[Floats, Floats]:
        """Return the features with MiniLM in the encoder's place, and its cosines."""
        vectors = self.minilm.encode([Question("", query.title, query.body, query.markup), *candidates])
        cosines = (vectors[1:] @ vectors[0]).astype(np.float64)
        features = by_words.copy()
        features[:, FEATURES.index("cosine")] = self.usual.of(vectors[0], cosines)
        text = reader_of(self.searcher.analyzer).read(query.title, query.body, query.markup).text
        regard_title_alone(text, features, ["cosine"])
        return features, cosines


def graded() -> Iterator[Graded]:
    """Yield kind, forum, query, what was asked, and the mean grade of each candidate."""
    for line in need_data("judged-pools/pools.jsonl").read_text(encoding="utf-8").splitlines():
        pool = json.loads(line)
        grades = {candidate["id"]: float(candidate["grade"]) for candidate in pool["candidates"]}
        yield "pool", pool["forum"], pool["query"], pool["asked"], grades
    yield from _read("other", OTHERS)


def drawn() -> Iterator[Graded]:
    """Yield what was drawn by chance and read, by which nothing was learned or chosen, as ``graded`` does."""
    yield from _read("drawn", DRAWN)


def _read(kind: str, path: Path) -> Iterator[Graded]:
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        grades = {candidate["id"]: float(np.mean(candidate["grades"])) for candidate in row["candidates"]}
        yield kind, row["forum"], row["query"], row["asked"], grades


def nonsense(chance: random.Random) -> str:
    """Return random letters."""
    count = chance.choice([1, 2, 3, 5])
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=chance.randint(3, 9))) for _ in range(count))


def edited(title: str, chance: random.Random) -> str:
    """Return a title without one of its words, or with two letters exchanged."""
    words = title.split()
    if len(words) > 4:
        del words[chance.randrange(len(words))]
    at = chance.randrange(len(words)) if words else 0
    if words and len(words[at]) > 4:
        letter = chance.randrange(1, len(words[at]) - 2)
        word = words[at]
        words[at] = word[:letter] + word[letter + 1] + word[letter] + word[letter + 2 :]
    return " ".join(words)


def judged_pairs(sites: dict[str, Site], judged: Iterable[Graded] | None = None) -> list[Pairs]:
    """Return what was read: each query as it was asked, and in its other form where it has a body.

    Args:
        judged: None as ``graded`` gives it.
    """
    every: list[Pairs | None] = []
    for kind, forum, identifier, form, grades in graded() if judged is None else judged:
        question = sites[forum].forum.question(identifier)
        bodies = {kind: "" if form == "title" else question.body}
        if question.body.strip():
            bodies[OTHER_FORM] = question.body if form == "title" else ""
        for kind_of_form, body in bodies.items():
            query = Query(question.title, body, markup=question.markup)
            every.append(sites[forum].pairs(kind_of_form, query, identifier, grades, 0, with_minilm=True))
    return [pairs for pairs in every if pairs is not None]


def known_pairs(sites: dict[str, Site], each: int, seed: int, with_minilm: int) -> list[Pairs]:
    """Return pairs whose answer is known: ``each`` copies of every forum, and as many titles of other forums.

    Args:
        with_minilm: so many of each kind are compared by MiniLM too.
    """
    chance = random.Random(seed)
    every: list[Pairs | None] = []
    for name, site in sites.items():
        for number, question in enumerate(chance.sample(site.sample, min(each, len(site.sample)))):
            queries = {
                "copy": Query(question.title, question.body, markup=question.markup),
                "copy of title": Query(question.title),
                "edited": Query(edited(question.title, chance)),
            }
            for kind, query in queries.items():
                every.append(site.pairs(kind, query, "", {question.id: 3.0}, 0, with_minilm=number < with_minilm))
        if name in BROAD:
            continue
        far = [other for key, other in sites.items() if key not in {name, *BROAD}]
        for number in range(each):
            other = chance.choice(chance.choice(far).sample)
            body = other.body if chance.random() < 0.3 else ""
            query = Query(nonsense(chance)) if number % 5 == 0 else Query(other.title, body, markup=other.markup)
            kind = "nonsense" if number % 5 == 0 else "elsewhere"
            pairs = site.pairs(kind, query, "", {}, 8, with_minilm=number < with_minilm)
            if pairs is not None:
                pairs.grades[:] = 0.0
            every.append(pairs)
    return [pairs for pairs in every if pairs is not None]


def rows(pairs: Sequence[Pairs], name: str) -> Any:
    """Return one field of all pairs, row by row."""
    return np.concatenate([getattr(query, name) for query in pairs])


def all_pairs() -> tuple[dict[str, Site], list[Pairs], list[Pairs], list[Pairs]]:
    """Return the sites, their judged pairs, and two samples of pairs whose answer is known."""
    sites = {name: Site(name) for name in ARCHIVES}
    return sites, judged_pairs(sites), known_pairs(sites, 100, 1, 20), known_pairs(sites, 180, 2, 20)

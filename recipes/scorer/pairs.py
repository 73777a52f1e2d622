"""Pairs of questions that the scorer learns from: features, grades, and what kind of pair each is.

Judged pairs (grades 0 to 3, read by the guide of ``judged-pools``):

- "pool": the graded pools of four forums, some pairs graded twice;
- "other": ``judged.jsonl`` beside this file, 226 queries of eleven forums, six or seven candidates each, the best of a
  first fit and of MiniLM, read once by one language model; the 40 of the bundled forum with two from further down;
- "drawn": ``judged-drawn.jsonl``, 404 queries drawn by chance from eight forums, with 5,178 candidates of four systems,
  a tenth of the queries read twice;
- "other form": each of these queries in its other form, a title with its body, or by its title alone.

Pairs whose answer is known:

- "copy", "copy of title": a question of a forum asked again whole, and by its title;
- "elsewhere", "nonsense": titles of other forums and random letters, with what is nearest in the forum;
- "near-copy": titles that differ in one thing or are reworded (``near_copies``);
- "same or not": the hand-written pairs of ``same-or-not``, both ways;
- "quora": labelled pairs of Quora.
"""

from __future__ import annotations

import gzip
import json
import random
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.data import bundled_forum
from askalike.evaluation.forum.tasks import questions_of
from askalike.forum import Forum, ForumSettings
from askalike.models.text_questions import TextQuestions
from askalike.readers.research.judged import read_judged
from askalike.search.engine import Floats
from askalike.search.features import COSINE, FEATURES
from askalike.search.query import QuerySettings, TermCounts, weigh
from askalike.search.scorer import BY_WORDS, ComparedQuery, Scoring, cosines_of
from askalike.text.analyzer import Analyzer
from askalike.types import Query, Question
from recipes.folders import WORK, build_once, need_data
from recipes.scorer.near_copies import near_copies
from recipes.scorer.vectors import KeptVectors

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
}
"""Forum → where its archive lies."""
FORUMS: Final = (*ARCHIVES, "qatar", "homenet")
"""Those of archives, SemEval's, and the bundled one."""
BROAD: Final = frozenset({"reddit", "yahoo", "qatar"})
"""Forums in which a title of another forum may well have been asked."""
HANDWRITTEN: Final = "same or not"
QUORA: Final = "quora"
JUDGED: Final = ("pool", "other", "drawn")
OTHER_FORM: Final = "other form"
OTHERS: Final = Path(__file__).with_name("judged.jsonl")
DRAWN: Final = Path(__file__).with_name("judged-drawn.jsonl")
QUORA_PAIRS: Final = 4_000
COPIES: Final = 100
"""Questions of each forum that are asked again, and titles of other forums, as many."""
NEAREST: Final = 8
WORDS_ALONE: Final = ForumSettings(has_vectors=False)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """One query with its candidates.

    Args:
        forum: what is left out together.
        kind: see above.
        detail: kind of a near-copy or hand-written pair, the judged set of an ``OTHER_FORM``.
        features: # (N, F)
        grades: # (N,)
        bm25: # (N,)
    """

    forum: str
    kind: str
    detail: str
    subject: str
    features: Floats
    grades: Floats
    bm25: Floats

    def by_version(self, version: str) -> Floats:
        """Return the features that a version of the weights sees: without cosines for words alone.  # (N, F)"""
        features = self.features.copy()
        if version == BY_WORDS:
            features[:, FEATURES.index(COSINE)] = 0
        return features


class Site:
    """A forum, compared pair by pair.

    Args:
        questions: the forum's where it is none of ``FORUMS``.
    """

    def __init__(self, name: str, vectors: KeptVectors, questions: Sequence[Question] = ()) -> None:
        self.name, self.vectors = name, vectors
        self.forum = open_forum(name, questions)
        self.engine = self.forum.indexes.searcher().engine
        self.analyzer: Analyzer = self.forum.indexes.searcher().analyzer
        self.scoring = Scoring(self.analyzer)

    def pairs(
        self, kind: str, query: Question, candidates: Sequence[Question], grades: Sequence[float], detail: str = ""
    ) -> Pairs:
        """Return a query with its candidates."""
        vectors = self.vectors.encode([query, *candidates])
        cosines = cosines_of(vectors[1:], vectors[0])
        as_query = Query(query.title, query.body, markup=query.markup)
        counts = TermCounts(self.engine)
        prepared = self.analyzer.prepare(query.title, query.body, query.markup)
        counts.look_up([*prepared.title, *prepared.body])
        numbers = self.forum.store.nums_by_id([question.id for question in candidates if question.id])
        texts = self.engine.texts(list(numbers.values()))  # with the words of their answers
        compared = [texts.get(numbers.get(question.id, 0), question) for question in candidates]
        features = self.scoring.features([ComparedQuery(as_query, counts, compared, cosines)])
        bm25 = self._bm25(as_query, candidates)
        return Pairs(self.name, kind, detail, self.name, features, np.array(grades, dtype=float), bm25)

    def _bm25(self, query: Query, candidates: Sequence[Question]) -> Floats:
        numbers = self.forum.store.nums_by_id([question.id for question in candidates if question.id])
        terms = weigh(
            self.analyzer.prepare(query.title, query.body, query.markup), QuerySettings(), TermCounts(self.engine)
        )
        weights = {term: weighed.weight for term, weighed in terms.items()}
        scores = self.engine.lexical_scores(weights, list(numbers.values()))
        return np.array([scores.get(numbers.get(question.id, 0), 0.0) for question in candidates])


def open_forum(name: str, questions: Sequence[Question] = ()) -> Forum:
    """Return a forum with its words, built when it is not there."""

    def build(folder: Path) -> None:
        with Forum.create(folder, settings=WORDS_ALONE) as forum:
            if questions:
                forum.add(questions)
            elif name == "homenet":
                forum.load(bundled_forum())
            elif name in ARCHIVES:
                forum.load(need_data(ARCHIVES[name]))
            else:
                judged = [read_judged(need_data("semeval-task3-b"), "semeval", split) for split in ("train", "dev")]
                forum.add({question.id: question for part in judged for question in questions_of(part)}.values())

    folder = WORK / f"scorer-words-{name.replace(' ', '-')}.forum"
    return Forum.open(build_once(folder, build), settings=WORDS_ALONE)


def graded() -> Iterator[tuple[str, str, str, str, dict[str, float]]]:
    """Yield kind, forum, id and form of each judged query, and the mean grade of each candidate."""
    for line in need_data("judged-pools/pools.jsonl").read_text(encoding="utf-8").splitlines():
        pool = json.loads(line)
        grades = {candidate["id"]: float(candidate["grade"]) for candidate in pool["candidates"]}
        yield "pool", pool["forum"], pool["query"], pool["asked"], grades
    for kind, path in (("other", OTHERS), ("drawn", DRAWN)):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            grades = {candidate["id"]: float(np.mean(candidate["grades"])) for candidate in row["candidates"]}
            yield kind, row["forum"], row["query"], row["asked"], grades


def graded_ndcg(scores: Floats, grades: Floats) -> float:
    """Return nDCG@5 with gains 2^grade - 1 of judged candidates in the order of scores; a grade is above 0.

    >>> round(graded_ndcg(np.array([0.1, 0.9]), np.array([3.0, 0.0])), 4)
    0.6309
    """
    gains = 2.0**grades - 1
    ranked, ideal = gains[np.argsort(-scores, kind="stable")][:5], np.sort(gains)[::-1][:5]
    discounts = 1 / np.log2(np.arange(2, 2 + len(ideal)))
    return float(ranked @ discounts / (ideal @ discounts))


def judged_pairs(sites: Mapping[str, Site]) -> Iterator[Pairs]:
    """Yield the judged queries: in the form in which they were judged, and in the other where they have a body."""
    for kind, forum, identifier, form, grades in graded():
        site = sites[forum]
        questions = site.forum.store.questions_by_id([identifier, *grades])
        query = questions[identifier]
        candidates = [questions[key] for key in grades if key in questions]
        known = [grades[question.id] for question in candidates]
        title = Question("", query.title)
        yield site.pairs(kind, title if form == "title" else query, candidates, known)
        if query.body.strip():
            yield site.pairs(OTHER_FORM, query if form == "title" else title, candidates, known, kind)


def known_pairs(sites: Mapping[str, Site]) -> Iterator[Pairs]:
    """Yield copies, titles of other forums, nonsense and near-copies of each forum's judged questions."""
    chance = random.Random(1)
    judged = {name: _judged_questions(site) for name, site in sites.items()}
    for name, site in sites.items():
        own = judged[name]
        for question in chance.sample(own, min(COPIES, len(own))):
            yield site.pairs("copy", question, [question], [3.0])
            yield site.pairs("copy of title", Question("", question.title), [question], [3.0])
        titles = sorted({question.title.strip() for question in own if question.title.strip()})
        changed = near_copies(titles, chance, site.analyzer)
        site.vectors.encode([Question("", new) for _, _, new in changed])  # together: one by one takes longer
        for kind, old, new in changed:
            grade = 3.0 if kind == "reworded" else 0.0
            yield site.pairs("near-copy", Question("", old), [Question("", new)], [grade], kind)
        if name in BROAD:
            continue
        wholes = site.vectors.encode(own)
        far = [question for other, questions in judged.items() if other not in {name, *BROAD} for question in questions]
        for number in range(COPIES):
            other = chance.choice(far)
            is_nonsense = number % 5 == 0
            query = Question("", nonsense(chance) if is_nonsense else other.title)
            nearest = np.argsort(-(wholes @ site.vectors.encode([query])[0]))[:NEAREST]
            candidates = [own[place] for place in nearest]
            yield site.pairs("nonsense" if is_nonsense else "elsewhere", query, candidates, [0.0] * len(candidates))


def _judged_questions(site: Site) -> list[Question]:
    """Return all questions of a forum that were judged, by id."""
    ids = {key for _, forum, query, _, grades in graded() if forum == site.name for key in (query, *grades)}
    return sorted(site.forum.store.questions_by_id(sorted(ids)).values(), key=lambda question: question.id)


def nonsense(chance: random.Random) -> str:
    """Return random letters."""
    count = chance.choice([1, 2, 3, 5])
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=chance.randint(3, 9))) for _ in range(count))


def handwritten_pairs(vectors: KeptVectors) -> Iterator[Pairs]:
    """Yield the pairs of ``same-or-not``, both ways, in a forum of all their questions."""
    rows = [json.loads(line) for line in need_data("same-or-not/pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    questions = {
        f"{row['id']}{side}": Question(f"{row['id']}{side}", row[side]["title"], row[side]["body"])
        for row in rows
        for side in "ab"
    }
    site = Site(HANDWRITTEN, vectors, list(questions.values()))
    _encode_all(vectors, questions.values())
    for row in rows:
        for first, second in ("ab", "ba"):
            query, candidate = questions[f"{row['id']}{first}"], questions[f"{row['id']}{second}"]
            pairs = site.pairs(HANDWRITTEN, query, [candidate], [3.0 * row["same"]], row["kind"])
            yield Pairs(pairs.forum, pairs.kind, pairs.detail, row["subject"], pairs.features, pairs.grades, pairs.bm25)


def quora_pairs(vectors: KeptVectors) -> Iterator[Pairs]:
    """Yield labelled pairs of Quora, in a forum of all their questions."""
    with gzip.open(need_data("quora-pairs/dev.tsv.gz"), "rt", encoding="latin-1") as lines:
        rows = [line.rstrip("\n").split("\t")[:3] for line, _ in zip(lines, range(QUORA_PAIRS), strict=False)]
    questions = {
        (number, side): Question(f"{number}{side}", row[side + 1]) for number, row in enumerate(rows) for side in (0, 1)
    }
    site = Site(QUORA, vectors, list(questions.values()))
    _encode_all(vectors, questions.values())
    for number, row in enumerate(rows):
        yield site.pairs(QUORA, questions[number, 0], [questions[number, 1]], [3.0 * int(row[0])])


def all_pairs(encoder: TextQuestions | None = None) -> list[Pairs]:
    """Return all pairs, judged and known, with the cosines of an encoder; None is the bundled one."""
    vectors = KeptVectors(encoder)
    sites = {name: Site(name, vectors) for name in FORUMS}
    _encode_all(vectors, [question for site in sites.values() for question in _judged_questions(site)])
    return [*judged_pairs(sites), *known_pairs(sites), *handwritten_pairs(vectors), *quora_pairs(vectors)]


def _encode_all(vectors: KeptVectors, questions: Iterable[Question]) -> None:
    """Encode questions together: one by one takes longer."""
    vectors.encode(list(questions))


def column(pairs: Sequence[Pairs], values: Sequence[object]) -> NDArray[np.object_]:
    """Return a value of each pair's query, pair by pair.  # (P,)"""
    return np.repeat(np.array(values, dtype=object), [len(query.grades) for query in pairs])

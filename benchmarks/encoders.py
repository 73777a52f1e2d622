"""How well each encoder orders the judged pools of four forums, alone and in the search that its forum has.

Commands: ``python -m benchmarks.encoders --build`` makes the forums and may be stopped at any time; then
``python -m benchmarks.encoders`` asks and writes results/encoders.json. ``OMP_NUM_THREADS=1`` for both.

The pools are the half that is there for choosing (see the data's README): 120 queries, every candidate graded by
reading. DevOps, Slicer and travel are whole forums; of Reddit, all questions of its pools and the first 10,000 others
of the (shuffled) file are taken. Each system ranks 1,000 questions, the one that asks excluded; of that list the judged
ones count, in its order (a condensed list), and those that it lacks come last. nDCG@5 with the gain 2^grade − 1;
queries whose candidates are all 0 say nothing of order and are left out.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from recipes.folders import MINILM, WORK, need_data

from askalike.cli.messages import BarProgress
from askalike.evaluation.significance import bootstrap_difference
from askalike.forum import Forum, ForumSettings, ImportOptions
from askalike.models.encoder_settings import EncoderSettings
from askalike.models.text_questions import TextQuestions, taken
from askalike.types import Filters, Query, Question
from benchmarks.record import option_parser, reddit_questions, write

FORUMS = ("devops", "reddit", "slicer", "travel")
REDDIT_OTHERS = 10_000
INT8 = EncoderSettings("sentence-transformers", str(MINILM), precision="int8")
ENCODERS: dict[str, EncoderSettings | None] = {"general": None, "minilm": INT8}
FLOAT32 = EncoderSettings("sentence-transformers", str(MINILM))
CUT, LISTED = 5, 1_000

Encode = Callable[[Sequence[Question]], NDArray[np.float32]]
Grades = Mapping[str, float]
Scores = dict[str, float]
"""Forum/query → nDCG@5."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A query of a forum with the grades of its candidates.

    Args:
        has_body: whether it was asked with its body.
    """

    forum: str
    query: str
    has_body: bool
    grades: Grades

    @property
    def key(self) -> str:
        """Return forum/query."""
        return f"{self.forum}/{self.query}"

    def question(self, forum: Forum) -> Question:
        """Return the query as it was asked."""
        question = forum.question(self.query)
        return question if self.has_body else replace(question, body="")


def ndcg(ranked: Sequence[str], grades: Grades) -> float:
    """Return nDCG@5 of the judged ones of a list, gain 2^grade − 1.

    >>> round(ndcg(["b", "unjudged", "a"], {"a": 1, "b": 0}), 4)  # 1/log2(3) against 1
    0.6309
    """
    gains = [2 ** grades[identifier] - 1 for identifier in ranked if identifier in grades][:CUT]
    ideal = sorted((2**grade - 1 for grade in grades.values()), reverse=True)[:CUT]
    return _discounted(gains) / _discounted(ideal)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / float(np.log2(place + 2)) for place, gain in enumerate(gains))


def read_pools() -> list[Pool]:
    """Return the queries with their grades."""
    pools = []
    for line in need_data("judged-pools/pools.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        grades = {str(candidate["id"]): float(candidate["grade"]) for candidate in row["candidates"]}
        pools.append(Pool(row["forum"], row["query"], "body" in row["asked"], grades))
    return pools


# -- forums ------------------------------------------------------------------------------------------------------------


def reddit_of_pools() -> Iterator[Question]:
    """Yield the questions of the pools, and the first others."""
    pools = [pool for pool in read_pools() if pool.forum == "reddit"]
    wanted = {pool.query for pool in pools}.union(*(pool.grades for pool in pools))
    others = 0
    for question in reddit_questions():
        if question.id in wanted or others < REDDIT_OTHERS:
            others += question.id not in wanted
            yield question


def _folder(name: str, encoder: str) -> Path:
    return WORK / f"encoders-{name}-{encoder.replace(' ', '-')}.forum"


def is_built(name: str, encoder: str) -> bool:
    """Return whether a forum with the vectors of an encoder is complete."""
    return _folder(name, encoder).with_suffix(".complete").exists()


def build(name: str, encoder: str, questions: Callable[[], Iterable[Question]] | None = None) -> Path:
    """Return the folder of a forum with the vectors of an encoder, built where it is not complete.

    Args:
        questions: what a forum holds that is none of ``FORUMS``.
    """
    folder = _folder(name, encoder)
    mark = folder.with_suffix(".complete")
    if is_built(name, encoder):
        return folder
    first = _folder(name, "general")
    if ENCODERS[encoder] is None:
        shutil.rmtree(folder, ignore_errors=True)
        with Forum.create(folder) as forum:
            if questions is not None:
                forum.add(questions())
            elif name == "reddit":
                forum.add(reddit_of_pools())
            else:
                archive = {"devops": "devops-stackexchange/posts.csv.gz", "slicer": "slicer-discourse/topics.jsonl.gz"}
                forum.load(need_data(archive.get(name, "travel-stackexchange")), options=ImportOptions())
            forum.encode()
    else:
        if not folder.exists():
            shutil.copytree(first, folder)
        with BarProgress() as progress, Forum.open(folder, encoder=ENCODERS[encoder]) as forum:
            forum.encode(progress=progress)
    mark.touch()
    return folder


# -- measuring ---------------------------------------------------------------------------------------------------------


def ranked_by(pools: Sequence[Pool], encoder: str, ranker: str | None) -> Scores:
    """Return what whole forums find by a ranker."""
    scores: Scores = {}
    for name in FORUMS:
        with Forum.open(build(name, encoder)) as forum:
            for pool in pools:
                if pool.forum == name:
                    question, own = pool.question(forum), Filters(exclude_ids=frozenset({pool.query}))
                    query = Query(question.title, question.body, question.markup, LISTED, own, ranker)
                    scores[pool.key] = ndcg([identifier for identifier, _ in forum.indexes.ranking(query)], pool.grades)
    return scores


def ordered_by_cosine(pools: Sequence[Pool], encode: Encode) -> Scores:
    """Return the same of the judged candidates alone, ordered by their cosines.

    A condensed list by cosines is the same whatever else the forum holds: no forum has to be encoded for it.
    """
    scores: Scores = {}
    for name in FORUMS:
        with Forum.open(build(name, "general"), settings=ForumSettings(has_vectors=False)) as forum:
            of_forum = [pool for pool in pools if pool.forum == name]
            ids = sorted({identifier for pool in of_forum for identifier in pool.grades})
            vectors = dict(zip(ids, encode([forum.question(identifier) for identifier in ids]), strict=True))
            for pool in of_forum:
                query = encode([pool.question(forum)])[0]
                cosines = {identifier: float(vectors[identifier] @ query) for identifier in pool.grades}
                order = sorted(cosines, key=lambda identifier, of=cosines: (-of[identifier], identifier))  # type: ignore[misc]
                scores[pool.key] = ndcg(order, pool.grades)
    return scores


def encoder_of(settings: EncoderSettings) -> TextQuestions:
    """Return an encoder of whole questions."""
    encoder, whole = taken(settings)
    return TextQuestions(encoder, whole)


def by_forum(scores: Scores) -> dict[str, float]:
    """Return the mean of each forum and of all queries, in hundredths."""
    rows = {name: [score for key, score in scores.items() if key.startswith(f"{name}/")] for name in FORUMS}
    rows["all"] = list(scores.values())
    return {name: round(100 * statistics.fmean(values), 1) for name, values in rows.items()}


def difference(first: Scores, second: Scores) -> dict[str, float]:
    """Return second less first in hundredths, with its 95 % interval over queries."""
    interval = bootstrap_difference([second[key] for key in first], list(first.values()))
    bounds = {"mean": interval.mean, "low": interval.low, "high": interval.high}
    return {name: round(100 * bound, 2) for name, bound in bounds.items()}


def main() -> None:
    """Build the forums, or measure."""
    parser = option_parser(__doc__)
    parser.add_argument("--build", action="store_true")
    if parser.parse_args().build:
        for encoder in ENCODERS:
            for name in FORUMS:
                began = time.monotonic()
                build(name, encoder)
                print(f"{name} by {encoder} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        return
    pools = [pool for pool in read_pools() if any(pool.grades.values())]
    systems = {"words": ranked_by(pools, "general", "words")}
    for encoder in ENCODERS:
        systems[encoder] = ranked_by(pools, encoder, "meaning")
        systems[f"{encoder}, the search"] = ranked_by(pools, encoder, None)
    for name, settings in (("float32", FLOAT32), ("int8", INT8)):
        systems[f"minilm, {name}, pools alone"] = ordered_by_cosine(pools, encoder_of(settings).encode)
    for name, scores in systems.items():
        print(name, by_forum(scores), flush=True)
    compared = (
        ("minilm, float32, pools alone", "minilm, int8, pools alone"),
        ("words", "general, the search"),
        ("minilm", "minilm, the search"),
    )
    body = {
        "queries": len(pools),
        "systems": {name: {"ndcg_at_5": by_forum(scores)} for name, scores in systems.items()},
        "differences": {f"{b} − {a}": difference(systems[a], systems[b]) for a, b in compared},
    }
    write("encoders", "OMP_NUM_THREADS=1 python -m benchmarks.encoders", body)


if __name__ == "__main__":
    main()

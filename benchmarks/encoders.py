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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from recipes.folders import WORK, need_data

from askalike.cli.display import BarProgress
from askalike.forum import Forum, ForumSettings, ImportOptions
from askalike.index.encoder_settings import EncoderSettings
from askalike.index.text_questions import TextQuestions, taken
from askalike.types import Filters, Query, Question
from benchmarks.record import option_parser, reddit_questions, write

FORUMS = ("devops", "reddit", "slicer", "travel")
REDDIT_OTHERS = 10_000
INT8 = EncoderSettings("minilm", precision="int8")
ENCODERS: dict[str, EncoderSettings | None] = {"general": None, "minilm": INT8}
FLOAT32 = EncoderSettings("minilm", precision="float32")
CUT, LISTED = 5, 1_000
RESAMPLES = 10_000

Encode = Callable[[Sequence[Question]], NDArray[np.float32]]
Grades = Mapping[str, float]
Outcomes = dict[str, float]


def ndcg(ranked: Sequence[str], grades: Grades) -> float:
    """Return nDCG@5 of the judged ones of a list, gain 2^grade − 1.

    >>> round(ndcg(["b", "unjudged", "a"], {"a": 1, "b": 0}), 4)  # 1/log2(3) against 1
    0.6309
    """
    gains = [2 ** grades[one] - 1 for one in ranked if one in grades][:CUT]
    ideal = sorted((2**grade - 1 for grade in grades.values()), reverse=True)[:CUT]
    return _discounted(gains) / _discounted(ideal)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / float(np.log2(place + 2)) for place, gain in enumerate(gains))


def read_pools(*, is_complete: bool = False) -> list[dict[str, Any]]:
    """Return the queries with their grades; without those that say nothing of order."""
    lines = need_data("judged-pools/pools.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    for one in found:
        one["grades"] = {str(it["id"]): float(it["grade"]) for it in one["candidates"]}
    return [one for one in found if is_complete or any(one["grades"].values())]


# -- forums ------------------------------------------------------------------------------------------------------------


def reddit_of_pools() -> Iterator[Question]:
    """Yield the questions of the pools, and the first others."""
    wanted = {one["query"] for one in read_pools(is_complete=True) if one["forum"] == "reddit"}
    wanted |= {it for one in read_pools(is_complete=True) if one["forum"] == "reddit" for it in one["grades"]}
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


def outcomes(pools: Sequence[Mapping[str, Any]], encoder: str, ranker: str | None) -> Outcomes:
    """Return forum/query → nDCG@5 of a ranker."""
    found: Outcomes = {}
    for name in FORUMS:
        with Forum.open(build(name, encoder)) as forum:
            for one in pools:
                if one["forum"] == name:
                    title, body, markup = asked(forum, one)
                    excluded = Filters(exclude_ids=frozenset({one["query"]}))
                    ranked = forum.ranking(Query(title, body, markup, LISTED, excluded, ranker))
                    found[f"{name}/{one['query']}"] = ndcg([it for it, _ in ranked], one["grades"])
    return found


def asked(forum: Forum, pool: Mapping[str, Any]) -> tuple[str, str, Any]:
    """Return title, body and markup of what is asked."""
    question = forum.question(pool["query"])
    return question.title, question.body if "body" in pool["asked"] else "", question.markup


def cosines(pools: Sequence[Mapping[str, Any]], encode: Encode) -> dict[str, dict[str, float]]:
    """Return forum/query → the cosine of each judged candidate."""
    found: dict[str, dict[str, float]] = {}
    for name in FORUMS:
        with Forum.open(build(name, "general"), settings=ForumSettings(has_vectors=False)) as forum:
            of_forum = [one for one in pools if one["forum"] == name]
            ids = sorted({it for one in of_forum for it in one["grades"]})
            documents = dict(zip(ids, encode([forum.question(it) for it in ids]), strict=True))
            for one in of_forum:
                title, body, markup = asked(forum, one)
                query = encode([Question("", title, body, markup)])[0]
                found[f"{name}/{one['query']}"] = {it: float(documents[it] @ query) for it in one["grades"]}
    return found


def reordered(pools: Sequence[Mapping[str, Any]], near: Mapping[str, Mapping[str, float]]) -> Outcomes:
    """Return forum/query → nDCG@5 of the judged candidates alone, ordered by their cosines.

    A condensed list by cosines is the same whatever else the forum holds: no forum has to be encoded for it.
    """
    found: Outcomes = {}
    for one in pools:
        of_query = near[f"{one['forum']}/{one['query']}"]
        order = sorted(of_query, key=lambda it: (-of_query[it], it))
        found[f"{one['forum']}/{one['query']}"] = ndcg(order, one["grades"])
    return found


def encoder_of(settings: EncoderSettings) -> TextQuestions:
    """Return an encoder of whole questions."""
    encoder, whole = taken(settings)
    return TextQuestions(encoder, whole)


def by_forum(found: Outcomes) -> dict[str, float]:
    """Return the mean of each forum and of all queries, in hundredths."""
    rows = {name: [value for key, value in found.items() if key.startswith(f"{name}/")] for name in FORUMS}
    rows["all"] = list(found.values())
    return {name: round(100 * statistics.fmean(values), 1) for name, values in rows.items()}


def difference(first: Outcomes, second: Outcomes) -> dict[str, float]:
    """Return the mean difference of two systems over the same queries, with its 95 % interval by the bootstrap."""
    values = np.array([second[key] - first[key] for key in first])
    drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return {name: round(100 * float(one), 2) for name, one in (("mean", values.mean()), ("low", low), ("high", high))}


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
    pools = read_pools()
    systems = {"words": outcomes(pools, "general", "words")}
    for encoder in ENCODERS:
        systems[encoder] = outcomes(pools, encoder, "meaning")
        systems[f"{encoder}, the search"] = outcomes(pools, encoder, None)
    for name, settings in (("float32", FLOAT32), ("int8", INT8)):
        cosine_of = cosines(pools, encoder_of(settings).encode)
        systems[f"minilm, {name}, pools alone"] = reordered(pools, cosine_of)
    for name, of_queries in systems.items():
        print(name, by_forum(of_queries), flush=True)
    compared = (
        ("minilm, float32, pools alone", "minilm, int8, pools alone"),
        ("words", "general, the search"),
        ("minilm", "minilm, the search"),
    )
    body = {
        "queries": len(pools),
        "systems": {name: {"ndcg_at_5": by_forum(found)} for name, found in systems.items()},
        "differences": {f"{b} − {a}": difference(systems[a], systems[b]) for a, b in compared},
        "outcomes": {name: {key: round(one, 4) for key, one in found.items()} for name, found in systems.items()},
    }
    write("encoders", "OMP_NUM_THREADS=1 python -m benchmarks.encoders", body)


if __name__ == "__main__":
    main()

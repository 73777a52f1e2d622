"""What finding all likely pairs of a forum costs, and how many of the exact ones are found.

Command: ``python -m benchmarks.likely_pairs [--questions N]`` (the first questions of Reddit) or ``--forum FOLDER``, as
``benchmarks.scale --keep`` leaves one. All questions are compared as ``Pairs.duplicates`` does, in one process a core.
The exact pairs are those of questions drawn by chance, each scored beside the 300 nearest of all vectors, without
codes, and the 300 best by all of its words: the likeliest other texts, as far as they have a probability of .1. A pair
that was found from its other side counts as found.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from recipes.folders import WORK

from askalike import Forum
from askalike.forum.pairs import LEAST_SCORE, PARTNERS, _as_query, _plain
from askalike.search import Searcher
from askalike.types import Question
from benchmarks.record import create_reddit_forum, option_parser, processor_total_s, write

COMMAND: Final = "python -m benchmarks.likely_pairs"
DEPTH: Final = 300
BLOCK: Final = 20
"""Questions that are compared exactly at a time, each with twice ``DEPTH`` others."""
LEAST: Final = (LEAST_SCORE, 0.3, 0.5)

Ends = tuple[int, int]


class _Exact:
    """An index of vectors whose searches are exact."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, "search_exactly" if name == "search" else name)


def exact_pairs(forum: Forum, questions: dict[int, Question]) -> dict[Ends, float]:
    """Return the exact pairs of some questions, by their numbers."""

    def pairs_of(searcher: Searcher) -> dict[Ends, float]:
        queries = {number: _as_query(question, DEPTH) for number, question in questions.items()}
        plain = _plain(searcher, queries)
        join = replace(plain.settings.join, depth=DEPTH, scored=2 * DEPTH)
        local = cast(Any, plain.engine)
        engine = replace(local, vectors=_Exact(local.vectors))
        plain = replace(plain, engine=engine, settings=replace(plain.settings, join=join))
        pairs: dict[Ends, float] = {}
        for number, candidates in zip(queries, plain.closest(list(queries.values())), strict=True):
            keys, scores = candidates.keys.tolist(), candidates.scores.tolist()
            firsts = forum.pairs.store.firsts(keys)
            best: dict[int, float] = {}
            for key, score in zip(keys, scores, strict=True):
                first = firsts.get(key, key)
                if first != number and len(best) < PARTNERS:
                    best.setdefault(first, score)
            pairs |= {
                (min(number, first), max(number, first)): score for first, score in best.items() if score >= LEAST_SCORE
            }
        return pairs

    return forum.indexes.with_searcher(pairs_of)


def measure(folder: Path, sample: int) -> dict[str, Any]:
    """Compare all questions of a forum, and some exactly."""
    for path in folder.glob("pairs.sqlite*"):
        path.unlink()
    with Forum.open(folder) as forum:
        clock, spent = [time.perf_counter()], [processor_total_s()]
        for work in (forum.pairs.read_texts, forum.pairs.compare):
            work()
            clock.append(time.perf_counter())
            spent.append(processor_total_s())
        numbers = list(forum.store.nums_by_id([question.id for question in forum.questions()]).values())
        drawn = random.Random(0).sample(numbers, min(sample, len(numbers)))
        firsts = forum.pairs.store.firsts(drawn)
        drawn = [number for number in drawn if firsts.get(number, number) == number]  # copies are their first's
        exact: dict[Ends, float] = {}
        for start in range(0, len(drawn), BLOCK):
            exact |= exact_pairs(forum, dict(forum.store.questions_by_num(drawn[start : start + BLOCK])))
        pairs = {(pair.first, pair.second) for pair in forum.pairs.store.pairs_of(minimum=LEAST_SCORE)}
    return {
        "questions": len(numbers),
        "seconds": {
            name: round(clock[place + 1] - clock[place], 1) for place, name in enumerate(("reading texts", "comparing"))
        },
        "processor_s": {
            "reading texts": round(spent[1] - spent[0], 1),
            "comparing": round(spent[2] - spent[1], 1),
            "a question, ms": round(1000 * (spent[2] - spent[0]) / len(numbers), 2),
        },
        "pairs": len(pairs),
        "load_15_min_at_end": round(os.getloadavg()[2], 2),
        "questions compared exactly": len(drawn),
        "exact pairs": recall(exact, pairs),
    }


def recall(exact: Mapping[Ends, float], pairs: Container[Ends]) -> dict[str, Any]:
    """Return the share of the exact pairs that were found, by least probability."""
    shares: dict[str, Any] = {}
    for least in LEAST:
        likely = [ends for ends, score in exact.items() if score >= least]
        share = sum(ends in pairs for ends in likely) / max(1, len(likely))
        shares[f"from {least}"] = {"there are": len(likely), "found": round(share, 4)}
    return shares


def main() -> None:
    """Measure one forum."""
    parser = option_parser(__doc__)
    parser.add_argument("--questions", type=int, default=224_741)
    parser.add_argument("--sample", type=int, default=600)
    parser.add_argument("--forum", type=Path, help="an existing forum; its pairs are found anew")
    options = parser.parse_args()
    folder = options.forum
    if folder is None:
        folder = WORK / "likely-pairs.forum"
        create_reddit_forum(folder, options.questions).close()
    body = measure(folder, options.sample)
    print(json.dumps(body, indent=1))
    size = body["questions"]
    write(f"likely-pairs-{size}", f"{COMMAND} --questions {size}", body)


if __name__ == "__main__":
    main()

"""Whether questions of one group ask the same, read by hand; and what groups cost with 225,000 questions.

Command: ``python -m benchmarks.groups``; ``--reading``, ``--slicer`` or ``--cost`` for a part. One
language model read pairs of groups (``groups-judged.jsonl``) by the guide of the judged pools, without being told any
probability; of two readings the mean counts, and 1.75 is enough. By how the pairs were drawn:

- ``shown``: of the groups of travel that were shown, 120 of 164 pairs; ``from 0.6``: 50 of the others that a minimum of
  0.6 adds. They were drawn after what links count was chosen, and no choice was made by them. ``newly shown``: all that
  the present weights show besides and nobody had read, so that every pair that is shown was read.
- ``without links``: all 160 pairs within groups at a minimum of 0.6, made as if the forum had no links. By these and by
  pairs of groups in which each link was taken at its word (``linked, by group``, ``linked, by pair``), it was chosen
  what links and names count.
- ``slicer``: of the groups of the Slicer forum, which has no duplicate links; ``slicer, afresh``: 45 of the 66 pairs
  that were not read when what one author posts again was set apart, which was chosen by the others.

The cost is taken over Reddit's questions with pairs drawn at random, since comparing them all takes hours: chains of 3
to 12 questions, five times as many likely pairs for a question as travel has.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Collection, Mapping
from itertools import combinations, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from recipes.folders import WORK, build_once, need_data
from recipes.scorer.pairs import WORDS_ALONE

from askalike import Forum, Link
from askalike.forum.groups import DEFAULT_MINIMUM
from askalike.search.thresholds import wilson
from askalike.store.pairs import Pair
from benchmarks.record import RESULTS, option_parser, stamp, write

JUDGED = Path(__file__).with_name("groups-judged.jsonl")
MINIMA = (0.6, 0.7, 0.8)
LEAST_GRADE = 1.75
CHAINS = 0.31
Ends = tuple[str, str]


def compared(name: str, archive: str, *, has_links: bool) -> Forum:
    """Return a forum whose questions were compared; it is built once."""

    def build(folder: Path) -> None:
        with Forum.create(folder) as forum:
            forum.load(need_data(archive))
            if not has_links:
                forum.store.delete_links(forum.store.links())

    forum = Forum.open(build_once(WORK / name, build))
    while forum.pairs.advance(60.0):
        pass
    return forum


def within(forum: Forum, minimum: float) -> set[Ends]:
    """Return the pairs within groups."""
    groups = forum.groups.find(minimum)
    return {(min(pair), max(pair)) for group in groups for pair in combinations(group.members, 2)}


def share(pairs: Collection[Ends], grades: Mapping[Ends, float], **more: Any) -> dict[str, Any]:
    """Return how many of those of some pairs that were read ask the same."""
    read = [grades[pair] for pair in pairs if pair in grades]
    good = sum(grade >= LEAST_GRADE for grade in read)
    row = {"pairs": len(read), "grade 2 or 3": good, "in groups": len(pairs), **more}
    return row | ({"share": good / len(read), "interval": wilson(good, len(read))} if read else {})


def read_judged() -> list[dict[str, Any]]:
    """Return the pairs that were read."""
    return [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]


def reading() -> dict[str, Any]:
    """Return how many pairs of groups were read as the same."""
    grades = {(row["first"], row["second"]): fmean(row["grades"]) for row in read_judged()}
    alone, linked = (
        compared(f"groups-{name}.forum", "travel-stackexchange", has_links=name == "linked")
        for name in ("without-links", "linked")
    )
    return {
        "shown": share(within(linked, DEFAULT_MINIMUM), grades, minimum=DEFAULT_MINIMUM),
        "without links": {
            str(minimum): share(within(alone, minimum), grades, groups=len(alone.groups.find(minimum)))
            for minimum in MINIMA
        },
    }


def slicer() -> dict[str, Any]:
    """Return how many pairs of Slicer's groups were read as the same."""
    judged = [row for row in read_judged() if row["forum"] == "slicer"]
    grades = {(row["first"], row["second"]): fmean(row["grades"]) for row in judged}
    afresh = {(row["first"], row["second"]) for row in judged if row["drawn"] == "slicer, afresh"}
    forum = compared("groups-slicer.forum", "slicer-discourse/topics.jsonl.gz", has_links=True)
    shown = within(forum, DEFAULT_MINIMUM)
    return share(shown, grades, groups=len(forum.groups.find()), afresh=share(shown & afresh, grades))


def cost() -> dict[str, Any]:
    """Return what groups cost over Reddit's questions."""
    path = WORK / "groups-reddit.forum"
    shutil.rmtree(path, ignore_errors=True)
    forum = Forum.create(path, settings=WORDS_ALONE)
    forum.load(need_data("reddit/questions.jsonl.gz"))
    nums = list(forum.store.nums_by_id([question.id for question in forum.questions()]).values())
    forum.pairs.read_texts()
    rng = random.Random(0)
    rng.shuffle(nums)
    pairs: list[Pair] = []
    place = 0
    while len(pairs) < CHAINS * len(nums):
        chain = nums[place : place + rng.randint(3, 12)]
        place += len(chain)
        pairs += [Pair(min(ends), max(ends), rng.uniform(0.5, 1.0)) for ends in pairwise(chain)]
        pairs += [Pair(min(ends), max(ends), rng.uniform(0.1, 1.0)) for ends in zip(chain, chain[2:], strict=False)]
    with forum.pairs.store.writing() as store:
        store.put(pairs)
    began = time.perf_counter()
    nodes = forum.groups.nodes(0.5)
    first_s = time.perf_counter() - began
    changed = []
    for number in range(20):
        pair = pairs[number * 997]
        ends = forum.store.questions_by_num([pair.first, pair.second])
        ids = (ends[pair.first].id, ends[pair.second].id)
        forum.judge(*ids, "different") if number % 2 else forum.store.put_links([Link(*ids)])
        began = time.perf_counter()
        forum.groups.nodes(0.5)
        changed.append(time.perf_counter() - began)
    return {
        "questions": len(nums),
        "pairs": len(pairs),
        "groups": len(nodes),
        "first, s": round(first_s, 2),
        "after one link or judgement, ms": {
            "median": round(1000 * sorted(changed)[10], 1),
            "most": round(1000 * max(changed), 1),
        },
    }


def main() -> None:
    """Measure, and write ``results/groups.json``."""
    parser = option_parser(__doc__)
    parts = {"reading": reading, "slicer": slicer, "cost": cost}
    for name in parts:
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    before = json.loads((RESULTS / "groups.json").read_text(encoding="utf-8"))
    body = {name: before[name] for name in parts}
    for name in [name for name in parts if getattr(options, name)] or parts:
        body[name] = {**parts[name](), **stamp()}
    write("groups", "python -m benchmarks.groups", body)


if __name__ == "__main__":
    main()

"""Whether questions of one group ask the same, read by hand; and what groups cost with 225,000 questions.

Command: ``python -m benchmarks.groups``; ``--reading`` or ``--cost`` for one of both. The reading takes travel with and
without its links, and what one language model read of pairs of its groups (``groups-judged.jsonl``), by the guide of
the judged pools and without being told any probability:

- ``without links``: all 160 pairs within groups at a minimum of 0.6, made as if the forum had no links; a tenth twice.
- ``linked, by group``: pairs of groups as the forum shows them, a group first, then a pair in it.
- ``linked, by pair``: pairs of these groups, each pair as likely, so that the largest groups are most of them.

The cost is taken over Reddit's questions with pairs drawn at random, since comparing them all takes hours: chains of 3
to 12 questions, five times as many likely pairs for a question as travel has.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import time
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from askalike import Forum, ForumSettings, Link
from askalike.forum.reliability import wilson
from askalike.store.pairs import Pair
from benchmarks.record import WORK, need_data, write

JUDGED = Path(__file__).with_name("groups-judged.jsonl")
MINIMA = (0.6, 0.7, 0.8)
LEAST_GRADE = 2
CHAINS = 0.31


def compared(name: str, *, has_links: bool) -> Forum:
    """Return travel's forum, compared; one that was left by an earlier run is taken as it is."""
    path = WORK / name
    if not path.exists():
        forum = Forum.create(path)
        forum.load(need_data("travel-stackexchange"))
        if not has_links:
            forum.remove_links(forum.links())
        forum.close()
    forum = Forum.open(path)
    while forum.pairs.advance(60.0):
        pass
    return forum


def within(forum: Forum, minimum: float) -> set[tuple[str, str]]:
    """Return the pairs within groups."""
    return {(min(pair), max(pair)) for group in forum.groups(minimum) for pair in combinations(group.members, 2)}


def _linked(forum: Forum, kind: str) -> set[tuple[str, str]]:
    ends = [(link.source_id, link.target_id) for link in forum.links() if link.kind == kind]
    return {(min(pair), max(pair)) for pair in ends}


def share(grades: list[int]) -> dict[str, Any]:
    """Return how many of some pairs ask the same."""
    good = sum(grade >= LEAST_GRADE for grade in grades)
    found = {"pairs": len(grades), "grade 2 or 3": good}
    return found | ({"share": good / len(grades), "interval": wilson(good, len(grades))} if grades else {})


def reading() -> dict[str, Any]:
    """Return how many pairs of groups were read as the same."""
    judged = [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]
    twice = [one["grades"] for one in judged if len(one["grades"]) > 1]
    alone, linked = (
        compared(f"groups-{name}.forum", has_links=name == "linked") for name in ("without-links", "linked")
    )
    links = {kind: _linked(linked, kind) for kind in ("related", "duplicate")}
    related = links["related"] - links["duplicate"]
    of = {"without links": [one for one in judged if one["drawn"] == "without links"]}
    rows = {}
    for minimum in MINIMA:
        pairs = within(alone, minimum)
        read = {(one["first"], one["second"]): one["grades"][0] for one in of["without links"]}
        read = {pair: grade for pair, grade in read.items() if pair in pairs}
        rows[str(minimum)] = {
            "groups": len(alone.groups(minimum)),
            "all": {**share(list(read.values())), "in groups": len(pairs)},
            "without what people linked as related": share([g for pair, g in read.items() if pair not in related]),
            "that nobody linked": share(
                [g for pair, g in read.items() if pair not in links["related"] | links["duplicate"]]
            ),
        }
    shown = linked.groups()
    return {
        "without links": rows,
        "linked, by group": share([one["grades"][0] for one in judged if one["drawn"] == "linked, by group"]),
        "linked, by pair": share([one["grades"][0] for one in judged if one["drawn"] == "linked, by pair"]),
        "read twice": {"pairs": len(twice), "same grade": sum(one[0] == one[1] for one in twice)},
        "shown": {
            "kinds": Counter(group.kind for group in shown),
            "largest": {
                kind: max(len(group.members) for group in shown if group.kind == kind)
                for kind in sorted({group.kind for group in shown})
            },
        },
    }


def cost() -> dict[str, Any]:
    """Return what groups cost over Reddit's questions."""
    path = WORK / "groups-reddit.forum"
    shutil.rmtree(path, ignore_errors=True)
    forum = Forum.create(path, settings=ForumSettings(has_vectors=False))
    forum.load(need_data("reddit/questions.jsonl.gz"))
    nums = list(forum.numbers([question.id for question in forum.questions()]).values())
    began = time.perf_counter()
    forum.pairs.advance(0.0)  # reads all texts in slices; compares no more than one
    while forum.pairs.store.next_unread(1):
        forum.pairs.advance(0.0)
    texts_s = time.perf_counter() - began
    rng = random.Random(0)
    rng.shuffle(nums)
    pairs, place = [], 0
    while len(pairs) < CHAINS * len(nums):
        chain = nums[place : place + rng.randint(3, 12)]
        place += len(chain)
        pairs += [Pair(min(ends), max(ends), rng.uniform(0.5, 1.0)) for ends in pairwise(chain)]
        pairs += [Pair(min(ends), max(ends), rng.uniform(0.1, 1.0)) for ends in zip(chain, chain[2:], strict=False)]
    with forum.pairs.store.writing() as store:
        store.put(pairs)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    nodes = forum.group_nodes(0.5)
    first_s = time.perf_counter() - began
    changed = []
    for number in range(20):
        pair = pairs[number * 997]
        held = forum.questions_by_number([pair.first, pair.second])
        ids = (held[pair.first].id, held[pair.second].id)
        forum.judge(*ids, "different") if number % 2 else forum.add_links([Link(*ids)])
        began = time.perf_counter()
        forum.group_nodes(0.5)
        changed.append(time.perf_counter() - began)
    began = time.perf_counter()
    listed = len(list(forum.describe_groups(nodes[:20])))
    return {
        "questions": len(nums),
        "pairs": len(pairs),
        "groups": len(nodes),
        "reading all texts, s": round(texts_s, 1),
        "first, s": round(first_s, 2),
        "memory of the first, MB": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024),
        "after one link or judgement, ms": {
            "median": round(1000 * sorted(changed)[10], 1),
            "most": round(1000 * max(changed), 1),
        },
        "a page of groups, ms": round(1000 * (time.perf_counter() - began) / max(1, listed) * 20, 1),
    }


def main() -> None:
    """Measure, and write ``results/groups.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reading", action="store_true")
    parser.add_argument("--cost", action="store_true")
    wanted = parser.parse_args()
    kept = Path("results/groups.json")
    body = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    body = {name: body[name] for name in ("reading", "cost") if name in body}
    if wanted.reading or not wanted.cost:
        body["reading"] = reading()
    if wanted.cost or not wanted.reading:
        body["cost"] = cost()
    write("groups", "python -m benchmarks.groups", body)


if __name__ == "__main__":
    main()

"""Draws queries of forums with the best candidates of several systems, for readers who grade them by the guide.

Commands: ``python -m benchmarks.reading draw FOLDER --readers N FORUM=COUNT …`` writes what each reader reads; a reader
writes ``grades-N.tsv`` beside it (query's key, candidate's key, grade); ``python -m benchmarks.reading take FOLDER``
checks that every pair was graded once, and adds them to ``judged-drawn.jsonl``.

Queries are drawn by chance from a forum's questions, without those that were read before; every other one is asked by
its title alone. Its candidates, in random order, are the first five of four systems (BM25, the default search with the
package's encoder, MiniLM's cosine, the default search with MiniLM), and two drawn from the thirty after them. Where all
questions of a forum have vectors of MiniLM (``benchmarks.encoders --build``) it chooses among all of them, elsewhere
among the hundred best of the first stage. Readers are not told which system found what. Every tenth query is read by
two readers.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from recipes.scorer.pairs import ARCHIVES, DRAWN, Site, graded
from recipes.scorer.pairs import drawn as drawn_before

from askalike.forum import Forum, ForumSettings
from askalike.search.scorer import SENTENCES, scorers
from askalike.text.markup import excerpt, plain_text
from askalike.types import Filters, Query, Question
from benchmarks import encoders
from benchmarks.record import option_parser

FIRST: Final = 5
"""So many candidates of each system."""
AMONG: Final = 100
"""So many of the first stage, where MiniLM has not read the whole forum."""
FURTHER: Final = (2, 30)
"""So many candidates drawn from so many further down."""
TWICE: Final = 10
SHOWN: Final = {"query": 1_200, "candidate": 700}
"""Characters of a body that a reader sees."""
WHOLE: Final = ("travel", "slicer", "devops")
"""Forums whose questions all have vectors of MiniLM."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A query with its candidates, and the rank of each in the list of each system that gave it."""

    forum: str
    query: str
    asked: str
    candidates: dict[str, dict[str, int]]


def drawn(name: str, count: int, chance: random.Random) -> Iterator[Drawn]:
    """Yield queries of a forum."""
    site = Site(name)
    before = {(forum, query) for _, forum, query, _, _ in chain(graded(), drawn_before())}
    whole = Forum.open(encoders.build(name, "minilm"), settings=ForumSettings()) if name in WHOLE else None
    ids = [one.id for one in site.draw(4 * count, chance.randrange(2**30)) if (name, one.id) not in before]
    for place, identifier in enumerate(chance.sample(ids, min(count, len(ids)))):
        one = site.forum.question(identifier)
        asked = "title" if place % 2 else "title and body"
        query = Query(one.title, "" if place % 2 else one.body, markup=one.markup)
        lists = listed(site, query, identifier) if whole is None else searched(site.forum, whole, query, identifier)
        found: dict[str, dict[str, int]] = {}
        for system, ranked in lists.items():
            for rank, other in enumerate(ranked[:FIRST], 1):
                found.setdefault(other, {})[system] = rank
        further = [it for it in lists["minilm, probability"][FIRST : FIRST + FURTHER[1]] if it not in found]
        found |= {it: {} for it in chance.sample(further, min(FURTHER[0], len(further)))}
        yield Drawn(name, identifier, asked, found)
    if whole is not None:
        whole.close()


def searched(general: Forum, whole: Forum, query: Query, own: str) -> dict[str, list[str]]:
    """Return what whole forums find, by system."""

    def by(forum: Forum, ranker: str | None) -> list[str]:
        filters = Filters(exclude_ids=frozenset({own}))
        asked = Query(query.title, query.body, query.markup, FIRST + FURTHER[1], filters, ranker)
        return [it for it, _ in forum.ranking(asked)]

    return {
        "words": by(general, "words"),
        "general, probability": by(general, None),
        "minilm, cosine": by(whole, "meaning"),
        "minilm, probability": by(whole, None),
    }


def listed(site: Site, query: Query, own: str) -> dict[str, list[str]]:
    """Return how each system orders the best of the first stage."""
    pairs = site.pairs("other", query, own, {}, AMONG, with_minilm=True)
    if pairs is None or pairs.sentences is None or pairs.minilm is None:
        return {"minilm, probability": []}
    known = scorers()
    values = {
        "words": pairs.bm25,
        "general, probability": known[SENTENCES].logits(pairs.general),
        "minilm, cosine": pairs.minilm,
        "minilm, probability": known[SENTENCES].logits(pairs.sentences),
    }
    return {name: [pairs.ids[at] for at in np.argsort(-scores, kind="stable")] for name, scores in values.items()}


# -- what readers read -------------------------------------------------------------------------------------------------


def shown(one: Question, kind: str, *, has_body: bool = True) -> str:
    """Return a question as a reader sees it."""
    body = excerpt(" ".join(plain_text(one.body, one.markup).split()), SHOWN[kind]) if has_body else ""
    return f"{one.title}\n{body}".strip()


def written(all_drawn: Sequence[Drawn], folder: Path, readers: int, chance: random.Random) -> None:
    """Write what each reader reads, and the key."""
    order = list(all_drawn)
    chance.shuffle(order)
    forums = {name: Site(name).forum for name in {one.forum for one in order}}
    texts: list[list[str]] = [[] for _ in range(readers)]
    key: list[dict[str, Any]] = []
    for number, one in enumerate(order):
        forum, candidates = forums[one.forum], list(one.candidates)
        chance.shuffle(candidates)
        own = [number % readers]
        if number % TWICE == 0 and readers > 1:
            own.append((number + 1 + number // TWICE % (readers - 1)) % readers)
        lines = [
            f"=== QUERY {number} ({one.forum}; asked by {one.asked}"
            f"{'; the body only settles what was meant' if one.asked == 'title' else ''})",
            shown(forum.question(one.query), "query"),
        ]
        for place, other in enumerate(candidates):
            lines += [f"--- CAND {number}.{place}", shown(forum.question(other), "candidate")]
        for reader in own:
            texts[reader].append("\n".join(lines))
        key.append(
            {"forum": one.forum, "query": one.query, "asked": one.asked, "readers": own}
            | {"candidates": [{"id": it, "seen_by": one.candidates[it]} for it in candidates]}
        )
    folder.mkdir(parents=True, exist_ok=True)
    for reader, parts in enumerate(texts):
        (folder / f"read-{reader}.txt").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (folder / "key.json").write_text(json.dumps(key), encoding="utf-8")


# -- what they wrote ---------------------------------------------------------------------------------------------------


def grades_of(path: Path) -> dict[str, int]:
    """Return candidate's key → grade of one reader.

    Raises:
        ValueError: a line is none, or a pair is graded twice.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        query, candidate, grade = line.split("\t")
        name = candidate if "." in candidate else f"{query}.{candidate}"
        if grade.strip() not in {"0", "1", "2", "3"} or name.split(".")[0] != query or name in found:
            raise ValueError(f"{path.name}, line {number}: {line!r}")
        found[name] = int(grade)
    return found


def taken(folder: Path, prefix: str) -> list[dict[str, Any]]:
    """Return the judged queries.

    Raises:
        ValueError: a pair was graded by other readers than it was given to.
    """
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    readings = {int(path.stem.split("-")[1]): grades_of(path) for path in folder.glob("grades-*.tsv")}
    found, used = [], 0
    for number, one in enumerate(key):
        candidates = []
        for place, candidate in enumerate(one["candidates"]):
            grades = [readings[reader].get(f"{number}.{place}") for reader in one["readers"]]
            if None in grades:
                raise ValueError(f"{number}.{place} was not graded by all of {one['readers']}")
            used += len(grades)
            candidates.append({"id": candidate["id"], "grades": grades, "seen_by": candidate["seen_by"]})
        readers = [f"{prefix}{reader}" for reader in one["readers"]]
        found.append({name: one[name] for name in ("forum", "query", "asked")} | {"readers": readers})
        found[-1]["candidates"] = candidates
    if used != sum(map(len, readings.values())):
        raise ValueError(f"{sum(map(len, readings.values())) - used} grades are of no pair")
    return found


def main() -> None:
    """Draw, or take what was read."""
    parser = option_parser(__doc__)
    parser.add_argument("action", choices=["draw", "take"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("counts", nargs="*", metavar="FORUM=COUNT")
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prefix", default="", help="before a reader's number, in what is taken")
    given = parser.parse_intermixed_args()
    if given.action == "take":
        found = taken(given.folder, given.prefix)
        with DRAWN.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in found)
        print(f"{len(found)} queries, {sum(len(one['candidates']) for one in found)} pairs")
        return
    chance = random.Random(given.seed)
    counts = dict(one.split("=") for one in given.counts)
    if unknown := counts.keys() - ARCHIVES.keys():
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(ARCHIVES)}")
    all_drawn: list[Drawn] = []
    for name, count in counts.items():
        all_drawn += drawn(name, int(count), chance)
        print(f"{name}: {len(all_drawn)} queries so far", file=sys.stderr, flush=True)
    written(all_drawn, given.folder, given.readers, chance)


if __name__ == "__main__":
    main()

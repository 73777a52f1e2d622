"""A canonical question by all of its duplicates that a search finds, and by the likeliest alone.

Command: ``python -m benchmarks.evidence FORUM``, FORUM being an indexed forum with duplicate links
(``askalike index ../shared/data/travel-stackexchange --into FORUM``). A query is a question that is linked as a
duplicate; it is left out of the forum itself, and its canonical question is to be found. "earlier" leaves out what was
linked to the same question later than the query; "all" keeps it. Reciprocal rank among ten hits;
differences are paired over queries. Writes ``results/evidence.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from askalike import Filters, Forum, Query
from askalike.evaluation.forum.links import duplicate_task, read_duplicate_links
from askalike.evaluation.significance import bootstrap_mean
from askalike.forum import ForumSettings
from askalike.search.settings import JoinSettings, SearchSettings
from benchmarks.record import compare, hundredths, option_parser, write

HITS: Final = 10
SPLITS: Final = ("dev", "test")
DAMPINGS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
KNOWN: Final = ("earlier", "all")


@dataclass(frozen=True, slots=True)
class Search:
    """A query, its canonical question, and what is left out; ``others`` are its further duplicates that are there."""

    query: Query
    canonical: str
    others: int


def searches(forum: Forum, split: str, known: str) -> list[Search]:
    """Return the searches of a split.

    Args:
        known: of ``KNOWN``: which other duplicates of the canonical question are there.
    """
    links = read_duplicate_links(forum)
    place_of = {identifier: place for place, identifier in enumerate(links.questions)}  # oldest first
    duplicates_of: dict[str, list[str]] = {}
    for duplicate, original in links.pairs:
        duplicates_of.setdefault(original, []).append(duplicate)
    cases: list[Search] = []
    for identifier, question in duplicate_task(forum, split, links=links).queries.items():
        for duplicate, original in links.pairs:
            if duplicate != identifier or original not in links.questions:
                continue
            later = {
                other
                for other in duplicates_of[original]
                if known == "earlier" and place_of[other] > place_of[identifier]
            }
            excluded = frozenset({identifier, *later})
            query = Query(question.title, question.body, question.markup, HITS, Filters(exclude_ids=excluded))
            cases.append(Search(query, original, len(set(duplicates_of[original]) - excluded)))
    return cases


def reciprocal_ranks(forum: Forum, cases: Sequence[Search]) -> list[float]:
    """Return 1 / the rank of each canonical question among the hits, 0 where it is none."""
    values: list[float] = []
    for search in cases:
        ids = [hit.question.id for hit in forum.search(search.query).hits]
        values.append(1 / (ids.index(search.canonical) + 1) if search.canonical in ids else 0.0)
    return values


def compare_dampings(values: Mapping[float, Sequence[float]], cases: Sequence[Search]) -> dict[str, Any]:
    """Return each damping's mean, and its difference to the best duplicate alone, by whether there are others."""
    rows: dict[str, Any] = {}
    groups = {
        "all queries": list(range(len(cases))),
        "with another duplicate": [place for place, search in enumerate(cases) if search.others],
        "without another": [place for place, search in enumerate(cases) if not search.others],
    }
    for group, places in groups.items():
        if not places:
            continue
        alone = [values[0.0][place] for place in places]
        of_damping: dict[str, Any] = {}
        for damping, all_values in values.items():
            own = [all_values[place] for place in places]
            of_damping[str(damping)] = {"mrr": hundredths(bootstrap_mean(own)), **compare(own, alone)}
        rows[group] = {"queries": len(places), "damping": of_damping}
    return rows


def main() -> None:
    """Measure and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("forum", type=Path, help="an indexed forum with duplicate links")
    path = parser.parse_args().forum
    values: dict[tuple[str, str], dict[float, list[float]]] = {}
    cases: dict[tuple[str, str], list[Search]] = {}
    encoder = ""
    for damping in DAMPINGS:
        join = replace(JoinSettings(), damping=damping)
        with Forum.open(path, settings=ForumSettings(search=replace(SearchSettings(), join=join))) as forum:
            encoder = forum.indexes.state().model
            for split in SPLITS:
                for known in KNOWN:
                    case = split, known
                    cases.setdefault(case, searches(forum, split, known))
                    values.setdefault(case, {})[damping] = reciprocal_ranks(forum, cases[case])
    body: dict[str, Any] = {split: {} for split in SPLITS}
    for (split, known), of_damping in values.items():
        body[split][known] = compare_dampings(of_damping, cases[split, known])
        for group, row in body[split][known].items():
            print(split, known, group, row["queries"], {key: part["mrr"][0] for key, part in row["damping"].items()})
    write("evidence", f"python -m benchmarks.evidence {path.name}", {"encoder": encoder, "splits": body})


if __name__ == "__main__":
    main()

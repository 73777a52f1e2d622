"""What an asker is shown: never a question that is marked a duplicate, but its original, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from askalike.search.engine import DuplicateLinks
from askalike.search.pool import Scored
from askalike.search.query import Query
from askalike.search.rankers import LEXICAL
from askalike.search.searcher import Searcher
from askalike.search.settings import MAX_HITS
from askalike.search.stages import stage
from askalike.types import Correction, Explanation, Filters, Question, Suggestion

Originals = Callable[[str], Sequence[str]]
"""A question's id → the ids of what it is marked a duplicate of, in the order of their ids."""


def original_of(identifier: str, originals: Originals, seniority: Callable[[str], tuple[float, str]]) -> str:
    """Return the question that stands for another: the nearest that is no duplicate itself, of equals the first by id.

    Where marks lead into a circle, every question of it is a duplicate of every other: the most senior one stands
    for all of them, from whichever the way began.

    Args:
        seniority: of an id; the least is the most senior.

    >>> marks = {"c": ["b"], "b": ["a"], "x": ["y"], "y": ["x"]}
    >>> [original_of(one, lambda one: marks.get(one, []), lambda one: (0.0, one)) for one in "acxy"]
    ['a', 'a', 'x', 'x']
    """
    if not originals(identifier):
        return identifier
    found = reached(identifier, originals)
    for one in found:
        if not originals(one):
            return one
    circle = [one for one in found if one in reached(one, originals)]
    return min(circle, key=seniority)


def reached(identifier: str, originals: Originals) -> list[str]:
    """Return all that is reached over marks, nearest first; a question itself only where it is part of a circle.

    >>> reached("c", lambda one: {"c": ["b"], "b": ["a"]}.get(one, []))
    ['b', 'a']
    """
    seen: dict[str, None] = {}
    layer = [identifier]
    while layer:
        following = sorted({target for one in layer for target in originals(one)} - seen.keys())
        seen.update(dict.fromkeys(following))
        layer = following
    return list(seen)


SPARE = 5
"""Half as many again as are asked for, and so many more, are looked at: those with one original fall together."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What was found, best first.

    Args:
        ranker: the name of the one that answered.
        corrections: misspelt words of the query, and what was searched for instead.
        explanations: one for each of what was found where they were asked for, else none.
        notice: why words alone answered, though the forum has vectors, and what mends it; or "".
    """

    ranker: str
    found: tuple[Suggestion, ...] = ()
    corrections: tuple[Correction, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    notice: str = ""


def suggestions(
    searcher: Searcher,
    query: Query,
    k: int,
    filters: Filters,
    ranker: str | None = None,
    own: str = "",
    *,
    is_explained: bool = False,
) -> Suggestions:
    """Return the at most ``k`` best questions that are no duplicates themselves.

    A question that is marked a duplicate leads to its original (``original_of``), which has its score unless it was
    found with a better one itself, and has to satisfy the filters too.

    Args:
        own: the id of the question that asks: never suggested itself, nor found.

    Raises:
        SettingError, ForumError: as ``Searcher.ranking``.
    """
    wanted = replace(filters, exclude_ids=filters.exclude_ids | {own}) if own else filters
    limit = min(k + k // 2 + SPARE, MAX_HITS) if 1 <= k <= MAX_HITS else k
    while True:
        ranked = searcher.ranking(query, limit, wanted, ranker)
        links = searcher.engine.duplicate_links([question.id for _, question in ranked.found])
        shown = _shown(links, ranked.found, wanted, k)
        if len(shown) == k or len(ranked.found) < limit or limit == MAX_HITS:
            break
        limit = min(2 * limit, MAX_HITS)
    hits = searcher.hits(replace(ranked, found=[(scored, question) for scored, question, _ in shown]), links)
    found = tuple(Suggestion(hit, via) for hit, (_, _, via) in zip(hits, shown, strict=True))
    explained: list[Explanation] = []
    if is_explained and hits:
        with stage("answer"):
            explained = searcher.explanations(query, hits, ranker)
    answered = LEXICAL if ranked.notice else searcher.ranker_of(ranker)
    return Suggestions(answered, found, ranked.corrections, tuple(explained), ranked.notice)


def _shown(
    links: DuplicateLinks, found: Sequence[tuple[Scored, Question]], filters: Filters, k: int
) -> list[tuple[Scored, Question, Question | None]]:
    """Return the first ``k`` with duplicates replaced: score, question, and what it was found by if not itself."""
    shown: dict[str, tuple[Scored, Question, Question | None]] = {}
    for scored, question in found:
        original = _original(links, question)
        if original is not None and original.id not in shown and filters.admits(original):
            shown[original.id] = (scored, original, None if original.id == question.id else question)
            if len(shown) == k:
                break
    return list(shown.values())


def _original(links: DuplicateLinks, question: Question) -> Question | None:
    """Return the question that stands for this one, None where it was deleted meanwhile."""

    def seniority(identifier: str) -> tuple[float, str]:
        one = links.questions.get(identifier)
        return (one.created.timestamp() if one is not None and one.created is not None else inf, identifier)

    identifier = original_of(question.id, links.of, seniority)
    return question if identifier == question.id else links.questions.get(identifier)

"""A query for words that are spelled nearly as others: what misspelt words may have meant.

Source: the edits are those of Damerau 1964 and Levenshtein 1966: a letter put in, left out, changed, or two neighbours
turned round.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import tantivy

MOST_TERMS: Final = 16
"""So many terms are looked for, the first: each takes about as long as a search."""


def edits(term: str) -> int:
    """Return how many edits a term may be away: short ones would be near to everything.

    >>> [edits(term) for term in ("dns", "wify", "roter", "anntenna")]
    [0, 1, 1, 2]
    """
    return 0 if len(term) < 4 else 1 if len(term) < 8 else 2


def spelling_query(schema: Any, terms: Iterable[str], title: float, text: float) -> Any | None:
    """Return a query whose score is how many of the terms a question has a near one of; None where none can be near.

    Args:
        title, text: how much a near term there counts; 0 does not look there.
    """
    clauses: list[tuple[Any, Any]] = []
    for term in [term for term in terms if edits(term)][:MOST_TERMS]:
        for name, boost in (("title", title), ("text", text)):
            if boost:
                near = tantivy.Query.fuzzy_term_query(schema, name, term, distance=edits(term))
                clauses.append((tantivy.Occur.Should, tantivy.Query.const_score_query(near, boost)))
    return tantivy.Query.boolean_query(clauses) if clauses else None

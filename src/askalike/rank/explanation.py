"""How much each word counts to the encoder, in what was asked and in what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from askalike.models.ramn.comparison import word_matches
from askalike.rank.encoder import Encoder
from askalike.rank.query import Query
from askalike.text.markup import plain_text
from askalike.types import Explanation, Hit, WordWeight


def explanations(
    query: Query, hits: Sequence[Hit], encoder: Encoder | None, *, has_matches: bool = False
) -> list[Explanation]:
    """Return one explanation for each hit, in their order; without words where the model cannot weigh them.

    Args:
        has_matches: tell too what each word of the query is most like in a hit.
    """
    title = _weights(query.title, encoder)
    body = _weights(plain_text(query.body, query.markup), encoder)
    found = [Explanation(hit.question.id, title, body, _weights(hit.question.title, encoder)) for hit in hits]
    if not has_matches or encoder is None:
        return found
    asked = encoder.states(query)
    importance = asked.weights / asked.weights.max() if asked.words else asked.weights
    read = encoder.states_of([(-1 - place, hit.question) for place, hit in enumerate(hits)])
    return [
        replace(one, matches=word_matches(asked, other, importance)) for one, other in zip(found, read, strict=True)
    ]


def _weights(text: str, encoder: Encoder | None) -> tuple[WordWeight, ...]:
    found = [] if encoder is None else encoder.word_weights(text)
    return tuple(WordWeight(word, weight) for word, weight in found)

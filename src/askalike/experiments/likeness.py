"""How alike the states of words are that have nothing to do with each other: near 1, they tell no meaning.

Enters: a model, texts. Leaves: a cosine. May import: encode, types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from askalike.models.encoders.model import Model
from askalike.types import Question

__all__ = ["COLLAPSED", "likeness"]

COLLAPSED: Final = 0.9
"""From which likeness on the states tell next to nothing: attention autoencoders had 0.99 after a thousand questions,
0.4 after five thousand and 0.1 after fifty thousand."""
_MOST: Final = 500


def likeness(model: Model, questions: Sequence[Question]) -> float:
    """Return the mean cosine of each word's state with that of the word half of all words further on; 0 without words.

    Args:
        questions: of many, 500 evenly spread ones are read.
    """
    step = max(1, len(questions) // _MOST)
    found = [one.states for one in model.states(questions[::step][:_MOST]) if one.words]
    if not found:
        return 0.0
    states = np.concatenate(found)
    unit = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-12)
    return float(np.einsum("td,td->t", unit, np.roll(unit, len(unit) // 2, axis=0)).mean())

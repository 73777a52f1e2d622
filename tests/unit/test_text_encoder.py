"""What an encoder of texts returns is checked, and brought to length 1."""

from __future__ import annotations

import numpy as np
import pytest

from askalike.errors import EncoderError
from askalike.models.text_encoder import checked


def test_vectors_are_brought_to_length_1_however_large_or_small_their_numbers_are() -> None:
    for factor in (1e-30, 1.0, 1e30):
        vectors = checked(np.array([[3.0, 4.0]]) * factor, 1, 2, "mine")
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, [[0.6, 0.8]], atol=1e-6)


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([[1.0, float("nan")]], "not finite for text 1 of 1"),
        ([[1.0]], r"shape \(1, 1\) for 1 texts, expected \(1, 2\)"),
        ([1.0, 2.0], r"shape \(2,\)"),
        ([[1.0, 2.0], [3.0]], "no array of numbers"),
        ([["1", "2"]], "no array of numbers"),
        (None, "no array of numbers"),
    ],
)
def test_what_is_no_finite_vector_for_each_text_is_refused(vectors: object, said: str) -> None:
    with pytest.raises(EncoderError, match=said):
        checked(vectors, 1, 2, "mine")

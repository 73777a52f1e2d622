"""Average precision: how early all the relevant documents come.

Enters: gains in rank order. Leaves: a number in [0, 1]. May import: nothing of askalike.

Source: Buckley and Voorhees, "Evaluating Evaluation Measure Stability", SIGIR 2000, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["average_precision"]


def average_precision(gains: Sequence[int], relevant: int) -> float:
    """Return the precision at the rank of each relevant document, summed and divided by the number of relevant ones.

    ``AP = (1 / R) · Σ_{i : gains_i > 0} (relevant ones among the first i) / i``

    A relevant document that is not in the list adds 0. Which documents R counts is the protocol's affair.

    Args:
        gains: gain of the document at rank 1, 2, …; relevant when > 0.
        relevant: R ≥ the number of relevant documents in ``gains``.

    Returns:
        A number in [0, 1]; 0 when R is 0.

    Example:
        Relevant at ranks 1 and 3 of two relevant documents, (1/1 + 2/3) / 2; the same of four, (1/1 + 2/3) / 4:

        >>> round(average_precision([1, 0, 1], 2), 4), round(average_precision([1, 0, 1], 4), 4)
        (0.8333, 0.4167)
    """
    if relevant == 0:
        return 0.0
    found = 0
    total = 0.0
    for rank, gain in enumerate(gains, start=1):
        if gain > 0:
            found += 1
            total += found / rank
    return total / relevant

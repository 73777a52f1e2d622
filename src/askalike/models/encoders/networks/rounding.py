"""Matrix products with a round number of rows.

In bfloat16, torch hands products to oneDNN, which generates code for every shape that it meets: milliseconds and a
megabyte each. A packed batch has another number of texts at every step. With rows rounded up, a few shapes stand for
all. What is computed in the rows too many is left alone; where rows are summed over, the ones too many have to be zero.

Enters: rows of a larger tensor. Leaves: the same rows and some that follow them in memory. May import: torch.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

__all__ = ["GRAIN", "is_rounding", "round_far_up", "round_up", "with_more"]

GRAIN: Final = 32
"""Rows are a multiple of this; fewer stay as many as they are."""


def is_rounding(words: Tensor) -> bool:
    """Return whether products of such tensors are worth rounding: on the CPU, in less than float32."""
    return words.device.type == "cpu" and torch.get_float32_matmul_precision() != "highest"


def round_up(rows: int) -> int:
    """Return the next multiple of ``GRAIN``, or a number that is smaller than it.

    >>> round_up(7), round_up(32), round_up(33)
    (7, 32, 64)
    """
    return rows if rows < GRAIN else -(-rows // GRAIN) * GRAIN


def round_far_up(rows: int) -> int:
    """Return a number of rows of which there are few: at most an eighth more.

    >>> [round_far_up(rows) for rows in (7, 33, 500, 4097, 5000)]
    [7, 64, 512, 4608, 5120]
    """
    grain = GRAIN
    while 16 * grain <= rows:
        grain *= 2
    return rows if rows < GRAIN else -(-rows // grain) * grain


def with_more(part: Tensor, whole: Tensor) -> Tensor:
    """Return consecutive rows of a tensor with those that follow, up to a round number; as they are where it ends.

    Args:
        part: rows of ``whole``, (b, D).
        whole: (N, D), or a part of its columns.

    >>> whole = torch.arange(100).view(50, 2)
    >>> len(with_more(whole[3:36], whole)), len(with_more(whole[3:], whole)), with_more(whole[3:36], whole)[-1].tolist()
    (47, 47, [98, 99])
    """
    room = (whole.storage_offset() - part.storage_offset()) // part.stride(0) + len(whole)
    return part.as_strided((min(round_up(len(part)), room), part.shape[1]), part.stride())

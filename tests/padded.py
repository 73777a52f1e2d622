"""Batches of texts with padding, as torch's own recurrences read them, beside the packed ones of the networks."""

from __future__ import annotations

from typing import Any

import torch

from askalike.models.encoders.networks.packing import Packing


def pack(padded: Any, packing: Packing) -> Any:
    """Return the words of a padded batch (T, B, …) as the networks read them, (N, …)."""
    return padded[packing.step, packing.order[packing.place]]


def unpack(packed: Any, packing: Packing, steps: int) -> Any:
    """Return packed (N, …) as (steps, B, …), zero where a text has ended."""
    padded = packed.new_zeros(steps, packing.batch, *packed.shape[1:])
    return padded.index_put((packing.step, packing.order[packing.place]), packed)


def pooled(encoder: Any, inputs: Any, lengths: Any) -> Any:
    """Return one vector for each text of a padded batch.  # (B, D)"""
    packing = Packing.of(lengths)
    return encoder.pooled(pack(inputs, packing), packing)


def states(encoder: Any, inputs: Any, lengths: Any) -> Any:
    """Return every state of a padded batch.  # (T, B, D)"""
    packing = Packing.of(torch.as_tensor(lengths))
    return unpack(encoder.packed_states(pack(torch.as_tensor(inputs), packing), packing), packing, len(inputs))

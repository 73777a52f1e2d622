"""The siamese network as the paper writes it: every place of every text, nothing left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from askalike.models.siamese.config import SiameseConfig
from askalike.models.siamese.model import TrigramTexts

TABLE: dict[str, SiameseConfig] = {
    "SCQA": SiameseConfig(90, 4, (3, 2, 4), (3, 2, 1), 6),
    "SCQA that pools in the first block alone": SiameseConfig(190, 4, (3, 2, 3), (14, 1, 1), 5),
    "SCQA in wide windows of several cells": SiameseConfig(400, 10, (2, 3), (22, 2), 4),
    "SCQA in windows of a prime width": SiameseConfig(90, 3, (2, 2), (13, 1), 4),
    "SCQA of one block": SiameseConfig(40, 10, (3,), (4,), 5),
    "DSQA": SiameseConfig(90, 4, (3, 2, 4), (3, 2, 1), 6, is_shared=False),
}


def texts_of(config: SiameseConfig, sizes: list[int], seed: int = 0) -> TrigramTexts:
    """Return texts with so many distinct trigrams each, of which the last ones of the vocabulary are some."""
    random = np.random.default_rng(seed)
    some = [np.sort(random.choice(config.vocabulary_size, size, replace=False)) for size in sizes]
    places = np.concatenate([*some, np.zeros(0, np.int64)]).astype(np.int32)
    counts = random.integers(1, 4, len(places)).astype(np.float32)
    return TrigramTexts(places, counts, np.cumsum([0, *sizes]).astype(np.int64))


def dense(texts: TrigramTexts, config: SiameseConfig, parameters: Mapping[str, Any], start: str = "") -> Any:
    """Return the raw vectors of texts, background and all.  # (N, D)"""
    kind = parameters[f"{start}dense"].dtype
    whole = torch.zeros(len(texts), 1, config.vocabulary_size, dtype=kind)
    for row in range(len(texts)):
        part = slice(int(texts.starts[row]), int(texts.starts[row + 1]))
        whole[row, 0, torch.from_numpy(texts.places[part]).long()] = torch.from_numpy(texts.counts[part]).to(kind)
    for number, pooling in enumerate(config.poolings, start=1):
        kernel, bias = (parameters[f"{start}{name}_{number}"] for name in ("kernel", "bias"))
        whole = functional.max_pool1d(functional.conv1d(whole, kernel, bias), pooling).relu()
    flat = whole.transpose(1, 2).flatten(1)
    return functional.linear(flat, parameters[f"{start}dense"], parameters[f"{start}dense_bias"])

"""Models made by hand: small enough to be worked out, and quick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from askalike.models.encoders.model import Model
from askalike.models.encoders.settings import EncoderConfig, ModelSettings
from askalike.models.vocabulary import Vocabulary

SYNONYMS = ({"wifi", "wireless", "wlan"}, {"drops", "disconnects", "lost"}, {"printer"}, {"offline", "silent"})
"""Words of one set have one direction, at a right angle to the others'; every other word is unknown, a zero vector."""


def synonym_model(groups: Sequence[set[str]] = SYNONYMS, *, has_counts: bool = True) -> Model:
    """Return a model by which a text's vector is the mean of its words' directions; word i was counted i² times."""
    encoder = EncoderConfig("rcnn", len(groups), len(groups), order=1, gate="none", pooling="mean")
    parameters = {"input": np.eye(len(groups)), "output_bias": np.zeros(len(groups))}
    directions: Mapping[str, int] = {word: number for number, group in enumerate(groups) for word in sorted(group)}
    embedding = np.zeros((len(directions) + 1, len(groups)))
    for row, number in enumerate(directions.values(), start=1):
        embedding[row, number] = 1.0
    counts = np.arange(len(embedding), dtype=np.int64) ** 2 if has_counts else None
    settings = ModelSettings(encoder, unknown="zero")
    return Model.build(settings, Vocabulary(directions), embedding, parameters, counts=counts)


def gated_model(seed: int = 0) -> Model:
    """Return a model with a gate, of random numbers, so that its words have weights."""
    words = ["printer", "offline", "wifi", "drops", "the", "is"]
    encoder = EncoderConfig("rcnn", 4, 6)
    chance = np.random.default_rng(seed)
    parameters = {name: chance.normal(0, 0.6, shape) for name, shape in encoder.shapes().items()}
    return Model.build(ModelSettings(encoder), Vocabulary(words), chance.normal(0, 1, (len(words) + 1, 4)), parameters)

"""What can be chosen of each objective, as a recipe has it; read without torch.

Enters: choices of a recipe. Leaves: checked options. May import: checking, errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from askalike.errors import SettingError
from askalike.training.checking import check_choice, check_number, check_whole

__all__ = [
    "CONTEXTS",
    "OBJECTIVES",
    "VIEWS",
    "ContrastiveOptions",
    "DecodingOptions",
    "MaxMarginOptions",
    "ObjectiveName",
    "Options",
    "ReconstructionOptions",
]

CONTEXTS: Final = ("title", "body", "similar")
"""What a title is written from: the title itself, the body, the title or body of a question marked with it."""

VIEWS: Final = ("title-body", "marked", "answers")
"""Two views of the same thing: title and body, two questions that were marked, a question and its answer."""


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """Of the encoder-decoder.

    Args:
        contexts: names in ``CONTEXTS``, each once.
        batch_size: titles in a batch, ≥ 1.
        held_out: questions that are never learned from, to measure perplexity on; a tenth of all at most.

    Raises:
        SettingError: a value that cannot be used.
    """

    contexts: tuple[str, ...] = CONTEXTS
    batch_size: int = 256
    held_out: int = 2_000

    def __post_init__(self) -> None:
        for name in self.contexts:
            check_choice("a name in contexts", name, CONTEXTS)
        if not self.contexts or len(set(self.contexts)) != len(self.contexts):
            raise SettingError(f"contexts {list(self.contexts)}, but expected at least one, each once", "set contexts")
        check_whole("batch_size", self.batch_size, 1)
        check_whole("held_out", self.held_out, 0)


@dataclass(frozen=True, slots=True)
class MaxMarginOptions:
    """Of max-margin.

    Args:
        batch_size: pairs in a batch, ≥ 1.
        negatives: random questions for each pair and epoch, K ≥ 1.
        margin: δ > 0.

    Raises:
        SettingError: a value that cannot be used.
    """

    batch_size: int = 25
    negatives: int = 20
    margin: float = 0.2

    def __post_init__(self) -> None:
        check_whole("batch_size", self.batch_size, 1)
        check_whole("negatives", self.negatives, 1)
        check_number("margin", self.margin, above=0)


@dataclass(frozen=True, slots=True)
class ContrastiveOptions:
    """Of symmetric InfoNCE.

    Args:
        views: name in ``VIEWS`` → how often an epoch goes over them, ≥ 0; 0.5 takes half of them each time.
        batch_size: pairs of views in a batch, ≥ 2.
        temperature: τ > 0.
        hard_negatives: of each question, at most so many.
        topical: share of the batches that hold questions of one topic, or of few: negatives that are harder to tell
            from the partner than random ones.

    Raises:
        SettingError: a value that cannot be used.
    """

    views: Mapping[str, float]
    batch_size: int = 256
    temperature: float = 0.05
    hard_negatives: int = 0
    topical: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.views, Mapping) or not self.views:
            raise SettingError(f"views is {self.views!r}, but expected a table", "write views = { title-body = 1.0 }")
        for name, share in self.views.items():
            check_choice("a name in views", name, VIEWS)
            check_number(f"views.{name}", share, least=0)
        if not sum(self.views.values()):
            raise SettingError(f"views {dict(self.views)}, but expected a share above 0", "set a larger share")
        check_whole("batch_size", self.batch_size, 2)
        check_number("temperature", self.temperature, above=0)
        check_whole("hard_negatives", self.hard_negatives, 0)
        check_number("topical", self.topical, least=0, most=1)


@dataclass(frozen=True, slots=True)
class ReconstructionOptions:
    """Of the autoencoder; its decoder follows from the encoder's kind.

    Args:
        batch_size: texts in a batch, ≥ 1.
        held_out: questions that are never learned from, to measure perplexity on; a tenth of all at most.

    Raises:
        SettingError: a value that cannot be used.
    """

    batch_size: int = 48
    held_out: int = 2_000

    def __post_init__(self) -> None:
        check_whole("batch_size", self.batch_size, 1)
        check_whole("held_out", self.held_out, 0)


Options: TypeAlias = DecodingOptions | MaxMarginOptions | ContrastiveOptions | ReconstructionOptions

ObjectiveName = Literal["decoding", "max-margin", "contrastive", "reconstruction"]

OBJECTIVES: Final[Mapping[str, type[Options]]] = {
    "decoding": DecodingOptions,
    "max-margin": MaxMarginOptions,
    "contrastive": ContrastiveOptions,
    "reconstruction": ReconstructionOptions,
}
"""Objective → its options."""

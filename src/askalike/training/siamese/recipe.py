"""How a siamese model is trained: its sizes, how texts are read, which pairs are learned from, and how. ::

    ranker = "scqa"     or "dsqa", whose sides share nothing
    reads = "joined"

    [network]           sizes, see ``models.siamese.config``
    [pairs]             the loss, see ``PairOptions``
    [loop]              how it is made smaller, see ``SgdSettings``

Source: Das et al. 2016 (ACL), table 1: batches of 100, learning rate 0.01, momentum 0.05.
Reading: a sample is a question with an answer and a label, and a batch has 100 of them. For each question there is one
positive and one negative: the paper speaks of both kinds and of no ratio.
Reading: the margin "generally varies between 0 to 1", and is not stated; the default is 0. Vectors that are all alike
lose (1 - m) / 2 a sample, and next to nothing leads away from there; a wider margin makes that place cheaper. What
keeps the learning rate of table 1 from leading there is what parameters begin as (``models.siamese.network``, LOG.md).
Reading: a batch's loss is summed in equation 2 and averaged by the library of the authors; the default is the mean,
which dev sets prefer (docs/papers/readings.md).
Reading: the paper does not clip gradients, and its epochs are those that validation is best with.
Differs: there are twelve epochs, and three without a lower loss on pairs that were held out end it. The paper's curve
is flat after 60; here that loss goes on falling a little, and dev MAP falls with it from the tenth epoch on (LOG.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

from askalike.errors import SettingError
from askalike.models.siamese.config import SIAMESE_KINDS, Initial, SiameseConfig, SiameseReads
from askalike.settings import check_settings, read_settings, read_table
from askalike.text.settings import TextSettings
from askalike.training.settings import SgdSettings

HELD_OUT_LOSS: Final = "held-out loss"
"""The mean loss of the samples of pairs that are never learned from."""

Reduction = Literal["mean", "sum"]
"""What of the samples' losses a step makes smaller."""

Order = Literal["frequency", "shuffled"]
"""How trigrams stand along the vector: the most frequent first, or as the seed shuffles them."""

_NO_CLIP: Final = 1e9


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Of the loss over questions with answers.

    Args:
        batch_size: samples in a batch, half of them positive, half negative; even, ≥ 4.
        margin: m in [0, 1): a cosine up to which another question's answer costs nothing.
        held_out: pairs that are never learned from, to measure the loss on; a tenth of all at most.
        reduction: a batch's loss is the ``mean`` of its samples' or their ``sum``.

    Raises:
        SettingError: a value that cannot be used.
    """

    batch_size: int = 100
    margin: float = 0.0
    held_out: int = 2_000
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        check_settings(self)
        if self.batch_size % 2:
            raise SettingError(
                f"batch_size is {self.batch_size}, but expected an even number: half of a batch is positive",
                "set batch_size",
            )


def _loop() -> SgdSettings:
    return SgdSettings(epochs=12, learning_rate=0.01, clip=_NO_CLIP, patience=3, stop_on=HELD_OUT_LOSS, momentum=0.05)


@dataclass(frozen=True, slots=True)
class SiameseRecipe:
    """Everything that decides how a siamese model is trained, but for data and seed.

    Args:
        kernel_width, channels, poolings, output_size, is_shared: of the network, see ``SiameseConfig``.
        text: language, stop words, stems, code.
        reads: title and body of a question as one text, or its title alone.
        min_count: a trigram must occur this often in what is learned from, ≥ 1.
        max_size: at most this many trigrams, the most frequent ones, ≥ 1; None for all.
        order: how trigrams stand: ``frequency`` or ``shuffled``.
        initial: what parameters begin as: ``he`` or ``even``, see ``models.siamese.network``.
        pairs: the loss.
        loop: how it is made smaller; ``stop_on`` may be "mrr", where there are dev sets.

    Raises:
        SettingError: a value that cannot be used.
    """

    kernel_width: int = 10
    channels: tuple[int, ...] = (8, 8, 8)
    poolings: tuple[int, ...] = (5, 5, 4)
    output_size: int = 128
    is_shared: bool = True
    text: TextSettings = field(default_factory=TextSettings)
    reads: SiameseReads = "joined"
    min_count: int = 1
    max_size: int | None = None
    order: Order = "frequency"
    initial: Initial = "he"
    pairs: PairOptions = field(default_factory=PairOptions)
    loop: SgdSettings = field(default_factory=_loop)

    def __post_init__(self) -> None:
        check_settings(self)
        self.network(1 << 40)  # whatever the vocabulary will be, the rest is checked now

    def network(self, vocabulary_size: int) -> SiameseConfig:
        """Return the network for so many trigrams.

        Raises:
            SettingError: a value that cannot be used, or widths that leave nothing of so few trigrams.
        """
        return SiameseConfig(
            vocabulary_size,
            kernel_width=self.kernel_width,
            channels=self.channels,
            poolings=self.poolings,
            output_size=self.output_size,
            is_shared=self.is_shared,
        )

    @property
    def ranker(self) -> str:
        """Return the ranker of a forum that the model is."""
        return next(name for name, is_shared in SIAMESE_KINDS.items() if is_shared == self.is_shared)

    def to_json(self) -> str:
        """Return the recipe as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def is_meant(stored: Mapping[str, Any]) -> bool:
        """Return whether a TOML file's contents are such a recipe."""
        ranker = stored.get("ranker")
        return isinstance(ranker, str) and ranker in SIAMESE_KINDS

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> SiameseRecipe:
        """Return the recipe of a TOML file's contents; how words are made of text, a forum says.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used; names the place.
        """
        own = {key: value for key, value in stored.items() if key not in ("ranker", "network", "pairs", "loop")}
        sizes = read_table(stored, "network", {})
        for place, names, given in (("top level", _PLAIN, own), ("network", _SIZES, sizes)):
            if unknown := sorted(set(given) - set(names)):
                raise SettingError(f"{place}: {', '.join(unknown)} is unknown, expected only: {', '.join(names)}")
        loop = read_settings(SgdSettings, {**_plain(_loop()), **read_table(stored, "loop", {})}, "loop")
        pairs = read_settings(PairOptions, read_table(stored, "pairs", {}), "pairs")
        is_shared = SIAMESE_KINDS[stored["ranker"]]
        return read_settings(cls, {**own, **sizes, "is_shared": is_shared, "pairs": pairs, "loop": loop}, "recipe")


_PLAIN: Final = ("reads", "min_count", "max_size", "order", "initial")
_SIZES: Final = ("kernel_width", "channels", "poolings", "output_size")


def _plain(settings: SgdSettings) -> dict[str, Any]:
    return {entry.name: getattr(settings, entry.name) for entry in fields(settings)}

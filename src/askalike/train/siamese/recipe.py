"""How a siamese model is trained: its sizes, how texts are read, which pairs are learned from, and how.

Enters: choices. Leaves: a checked ``SiameseRecipe``. May import: siamese's config and settings, text's settings,
train's checks and loop settings.

Source: Das et al. 2016 (ACL), table 1: batches of 100, learning rate 0.01, momentum 0.05; section 8.1: "saturated after
epoch 60".
Reading: a sample is a question with an answer and a label, and a batch has 100 of them. For each question there is one
positive and one negative: the paper speaks of both kinds and of no ratio.
Reading: the margin "generally varies between 0 to 1", and is not told; the default is 0. Vectors that are all alike
lose (1 - m) / 2 a sample, and next to nothing leads away from there; a wider margin makes that place cheaper. In a
trial on 2,700 pairs, with the learning rate of table 1, the first epochs led there with both, and out of it after two
epochs with 0, after five with 0.5.
Reading: the paper does not clip gradients, and its epochs are those that validation is best with; here patience is 10,
so that the beginning may take its time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from askalike.errors import SettingError
from askalike.siamese.config import SiameseConfig
from askalike.siamese.settings import SiameseReads, check_reads
from askalike.text.settings import TextSettings
from askalike.train.checking import check_number, check_whole
from askalike.train.loop_settings import SgdSettings

__all__ = ["HELD_OUT_LOSS", "PairOptions", "SiameseRecipe"]

HELD_OUT_LOSS: Final = "held-out loss"
"""The mean loss of the samples of pairs that are never learned from."""

_NO_CLIP: Final = 1e9


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Of the loss over questions with answers.

    Args:
        batch_size: samples in a batch, half of them positive, half negative; even, ≥ 4.
        margin: m in [0, 1): a cosine up to which another question's answer costs nothing.
        held_out: pairs that are never learned from, to measure the loss on; a tenth of all at most.

    Raises:
        SettingError: a value that cannot be used.
    """

    batch_size: int = 100
    margin: float = 0.0
    held_out: int = 2_000

    def __post_init__(self) -> None:
        check_whole("batch_size", self.batch_size, 4)
        if self.batch_size % 2:
            raise SettingError(
                f"batch_size is {self.batch_size}, but expected an even number: half of a batch is positive",
                "set batch_size",
            )
        check_number("margin", self.margin, least=0, below=1)
        check_whole("held_out", self.held_out, 0)


def _loop() -> SgdSettings:
    return SgdSettings(epochs=60, learning_rate=0.01, clip=_NO_CLIP, patience=10, stop_on=HELD_OUT_LOSS, momentum=0.05)


@dataclass(frozen=True, slots=True)
class SiameseRecipe:
    """Everything that decides how a siamese model is trained, but for data and seed.

    Args:
        kernel_width, channels, poolings, output_size, is_shared: of the network, see ``SiameseConfig``.
        text: language, stop words, stems, code.
        reads: title and body of a question as one text, or its title alone.
        min_count: a trigram must occur this often in what is learned from, ≥ 1.
        max_size: at most this many trigrams, the most frequent ones, ≥ 1; None for all.
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
    pairs: PairOptions = field(default_factory=PairOptions)
    loop: SgdSettings = field(default_factory=_loop)

    def __post_init__(self) -> None:
        check_reads(self.reads)
        check_whole("min_count", self.min_count, 1)
        if self.max_size is not None:
            check_whole("max_size", self.max_size, 1)
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

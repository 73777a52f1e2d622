"""What a siamese model is besides its numbers: sizes, widths, whether its two sides are one, and how texts are read.

::

    input length   L_1 = V                          (one number for each trigram)
    convolution    L_i - K + 1                      (no padding)
    max pooling    L_{i+1} = ⌊(L_i - K + 1) / p_i⌋  (what is left over at the end is dropped)

Source: Das et al. 2016 (ACL), sections 3.2 to 3.5 and table 1.
Reading: table 1 has one width of max pooling, 100, and a depth of 3. Three blocks that each pool by 100 would need a
vector of more than a million trigrams, and the paper's has 48,536. The default takes 100 for what the three blocks pool
together, 5 · 5 · 4: the blocks stay alike, as in figure 2, and 482 places remain. ``poolings=(100, 1, 1)`` is the
reading in which the first block alone pools, by 100, to 485 places; ``(485, 1, 1)`` the one in which it pools to 100.
Reading: the paper speaks of "a filter" and gives no number of filters. One would leave a block 11 numbers to learn; the
default is 8 in each block.
Reading: the order of the trigrams along the vector is not stated, and decides which of them a filter sees together.
Here they stand by falling frequency.
Reading: padding is not spoken of, and there is none. So what is dropped at the end of the vector are some of the rarest
trigrams: with the default widths fewer than 100.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Final, Literal, NamedTuple, get_args

from askalike.errors import SettingError
from askalike.settings import check_settings, read_stored
from askalike.text.settings import TextSettings

MAX_BLOCKS: Final = 8
SIDES: Final = ("question", "answer")
"""The sides of a network that does not share its parameters."""

SIAMESE_KINDS: Final[Mapping[str, bool]] = {"scqa": True, "dsqa": False}
"""Which there are, by the names of their recipes and rankers, and whether their sides share parameters."""

Initial = Literal["he", "even"]
INITIALS: Final[tuple[Initial, ...]] = get_args(Initial)
"""What parameters can begin as, see ``network.build``."""

_WIDEST_CELL: Final = 10


class BlockShape(NamedTuple):
    """The lengths of one block: convolution, max pooling, ReLU.

    A window of pooling is worked on in cells, parts of it of equal width: the largest divisor of the window's width
    that is at most 10. A cell's convolution is one product of matrices.
    """

    length: int
    """places that enter, L"""
    inputs: int
    """numbers at each of them, C_in"""
    outputs: int
    """numbers at each window, C_out"""
    kernel: int
    """K"""
    pooling: int
    """places of the convolution in a window, p"""

    @property
    def windows(self) -> int:
        """Return how many places leave, P."""
        return max(0, self.length - self.kernel + 1) // self.pooling

    @property
    def cell(self) -> int:
        """Return the places of the convolution in a cell, S.

        >>> [BlockShape(1000, 1, 1, 10, pooling).cell for pooling in (4, 10, 100, 485, 97)]
        [4, 10, 10, 5, 1]
        """
        return max(width for width in range(1, _WIDEST_CELL + 1) if self.pooling % width == 0)

    @property
    def reach(self) -> int:
        """Return how many places that enter a cell of convolution sees, R = S + K - 1."""
        return self.cell + self.kernel - 1

    @property
    def cells(self) -> int:
        """Return how many cells a window has."""
        return self.pooling // self.cell


@dataclass(frozen=True, slots=True)
class SiameseConfig:
    """A siamese network, but for the values of its parameters.

    Args:
        vocabulary_size: trigrams that are known, V ≥ 1.
        kernel_width: places that a filter sees, K ≥ 1.
        channels: filters of each block, ≥ 1.
        poolings: places of each block's convolution of which the largest is kept, ≥ 1.
        output_size: dimensions of a vector, D ≥ 1.
        is_shared: question and answer go through the same parameters: SCQA; otherwise each has its own: DSQA.

    >>> config = SiameseConfig(48_536)
    >>> [(block.length, block.windows) for block in config.blocks()]
    [(48536, 9705), (9705, 1939), (1939, 482)]
    >>> list(config.shapes().items())[-2:]
    [('dense', (128, 3856)), ('dense_bias', (128,))]
    """

    vocabulary_size: int
    kernel_width: int = 10
    channels: tuple[int, ...] = (8, 8, 8)
    poolings: tuple[int, ...] = (5, 5, 4)
    output_size: int = 128
    is_shared: bool = True

    def __post_init__(self) -> None:
        check_settings(self, "siamese ")
        if len(self.channels) != len(self.poolings) or not 1 <= len(self.channels) <= MAX_BLOCKS:
            raise SettingError(
                f"{len(self.channels)} channels and {len(self.poolings)} poolings, but expected as many of both, 1 to "
                f"{MAX_BLOCKS}",
                "give one of each for each block",
            )
        if not self.blocks()[-1].windows:
            raise SettingError(
                f"kernels of width {self.kernel_width} and poolings {list(self.poolings)} leave nothing of "
                f"{self.vocabulary_size} trigrams",
                "pool less, or learn from more texts",
            )

    def blocks(self) -> tuple[BlockShape, ...]:
        """Return the lengths of each block."""
        found: list[BlockShape] = []
        length, inputs = self.vocabulary_size, 1
        for outputs, pooling in zip(self.channels, self.poolings, strict=True):
            found.append(BlockShape(length, inputs, outputs, self.kernel_width, pooling))
            length, inputs = found[-1].windows, outputs
        return tuple(found)

    def sides(self) -> tuple[str, ...]:
        """Return which sides have parameters of their own; none where they share them."""
        return () if self.is_shared else SIDES

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every parameter.

        A ``kernel_i`` has (C_out, C_in, K); ``dense`` a row for each output and a column for each window of the last
        block and channel, channels of a window together. Where sides do not share, names begin with ``question.`` and
        ``answer.``.
        """
        own: dict[str, tuple[int, ...]] = {}
        for number, block in enumerate(blocks := self.blocks(), start=1):
            own[f"kernel_{number}"] = (block.outputs, block.inputs, block.kernel)
            own[f"bias_{number}"] = (block.outputs,)
        own["dense"] = (self.output_size, blocks[-1].windows * blocks[-1].outputs)
        own["dense_bias"] = (self.output_size,)
        return {prefix(side) + name: shape for side in self.sides() or ("",) for name, shape in own.items()}

    def parameter_count(self) -> int:
        """Return how many numbers are learned.

        >>> SiameseConfig(48_536).parameter_count()  # 88 + 648 + 648 + 482 · 8 · 128 + 128
        495080
        """
        return sum(prod(shape) for shape in self.shapes().values())


def prefix(side: str) -> str:
    """Return what the names of a side's parameters begin with.

    >>> prefix("answer"), prefix("")
    ('answer.', '')
    """
    return f"{side}." if side else ""


SiameseReads = Literal["joined", "title"]


@dataclass(frozen=True, slots=True)
class SiameseSettings:
    """A siamese model, but for its trigrams and numbers.

    Args:
        reads: title and body of a question as one text (``joined``), or its ``title`` alone.
    """

    network: SiameseConfig
    text: TextSettings = field(default_factory=TextSettings)
    reads: SiameseReads = "joined"

    def __post_init__(self) -> None:
        check_settings(self, "siamese ")

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON can hold them."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> SiameseSettings:
        """Return the settings that ``to_json`` stored.

        Raises:
            SettingError: a name too many or too few, or a value that cannot be used.
        """
        return read_stored(cls, stored, "settings of a siamese model")

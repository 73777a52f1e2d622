"""SCQA and DSQA, but for the network: letter trigrams, sizes, and the recipe of a training.

**Trigrams.** A misspelled or inflected word keeps most of them.

::

    table → #table# → #ta, tab, abl, ble, le#

**Sizes.** ::

    input length   L_1 = V                          (one number for each trigram)
    convolution    L_i - K + 1                      (no padding)
    max pooling    L_{i+1} = ⌊(L_i - K + 1) / p_i⌋  (what is left over at the end is dropped)

Source: Das et al. 2016 (ACL), "Together We Stand: Siamese Networks for Similar Question Retrieval", sections 3.1 ("word
hashing"; the name and the delimiter are those of Huang et al. 2013, CIKM, section 3.2) to 3.5, section 7
("lower-casing, stemming, stopword and special character removal") and table 1: batches of 100, learning rate 0.01,
momentum 0.05.
Reading: a question's title and description are joined to one text: the paper says that its questions have both, and
feeds one vector of a question to the network. A text is its trigrams with repetitions, as the "term vectors" of the
paper count terms.
Reading: table 1 has one width of max pooling, 100, and a depth of 3. Three blocks that each pool by 100 would need a
vector of more than a million trigrams, and the paper's has 48,536. The default takes 100 for what the three blocks pool
together, 5 · 5 · 4: the blocks stay alike, as in figure 2, and 482 places remain. ``poolings = [100, 1, 1]`` is the
reading in which the first block alone pools, by 100, to 485 places; ``[485, 1, 1]`` the one in which it pools to 100.
Reading: the paper speaks of "a filter" and gives no number of filters. One would leave a block 11 numbers to learn; the
default is 8 in each block.
Reading: the order of the trigrams along the vector is not stated, and decides which of them a filter sees together.
Here they stand by falling frequency. Padding is not spoken of, and there is none: what is dropped at the end of the
vector are some of the rarest trigrams, with the default widths fewer than 100.
Reading: a sample is a question with an answer and a label, and a batch has 100 of them. For each question there is one
positive and one negative: the paper speaks of both kinds and of no ratio.
Reading: the margin "generally varies between 0 to 1", and is not stated; the default is 0. Vectors that are all alike
lose (1 - m) / 2 a sample, and next to nothing leads away from there; a wider margin makes that place cheaper.
Reading: the paper does not clip gradients, and its epochs are those that validation is best with.
Differs: there are twelve epochs, and three without a lower loss on pairs that were held out end it. The paper's curve
is flat after 60; here that loss goes on falling a little, and dev MAP falls with it from the tenth epoch on.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from msgspec import Meta
from scipy.sparse import csr_array

from askalike.errors import SettingError
from askalike.models.vocabulary import Vocabulary
from askalike.settings import BelowOne, HeldOut, Size, check_fields, fit, read_settings
from askalike.text.analyzer import Analyzer
from askalike.text.characters import MARKS, normalised
from askalike.text.markup import readable
from askalike.text.settings import SNOWBALL
from askalike.training.recipe import SgdSettings
from askalike.types import Answer, Question

DELIMITER: Final = "#"
"""Stands before and after a word; no word holds it."""
RECIPE: Final = Path(__file__).with_name("scqa.toml")
HELD_OUT_LOSS: Final = "held-out loss"
"""The mean loss of the samples of pairs that are never learned from."""
SIDES: Final = ("question", "answer")
"""The sides of a network that does not share its parameters."""

_SPECIAL = re.compile(rf"[^\w{MARKS}'\s]|_")
_REMEMBERED_WORDS: Final = 1 << 16


@lru_cache(maxsize=_REMEMBERED_WORDS)
def trigrams(word: str) -> tuple[str, ...]:
    """Return the letter trigrams of a word between two delimiters, in order; a word of n characters has n.

    A digit and a combining mark count as letters. A word of one character is one trigram.

    >>> trigrams("table"), trigrams("c"), trigrams("中")
    (('#ta', 'tab', 'abl', 'ble', 'le#'), ('#c#',), ('#中#',))
    """
    marked = f"{DELIMITER}{word}{DELIMITER}"
    return tuple(marked[begin : begin + 3] for begin in range(len(word)))


class TrigramReader:
    """Turns questions and answers into the trigrams of their terms, in order and with repetitions.

    Special characters are taken out before terms are made, so that a path or a version is its words alone: ``22.04`` is
    ``22`` and ``04``, ``c++`` is ``c``. An apostrophe is left to the analyzer, which knows contractions. Letters are
    those of any script; an ideograph is a word, and so one trigram.

    >>> reader = TrigramReader()
    >>> reader.words("The user's tables: /boot/grub.cfg, 22.04 & C++")
    ['user', 'tabl', 'boot', 'grub', 'cfg', '22', '04', 'c']
    >>> reader.question(Question("1", "Slow C++", "On trains"))
    ['#sl', 'slo', 'low', 'ow#', '#c#', '#tr', 'tra', 'rai', 'ain', 'in#']
    """

    def __init__(self) -> None:
        self._settings: Final = SNOWBALL
        self._analyzer: Final = Analyzer(self._settings)

    def words(self, text: str) -> list[str]:
        """Return the words whose trigrams are read, in order and with repetitions."""
        return self._analyzer.terms(_SPECIAL.sub(" ", normalised(text)))

    def question(self, question: Question) -> list[str]:
        """Return the trigrams of a question, title and body joined."""
        return self._trigrams(question.title, question.body, question.markup)

    def answer(self, answer: Answer) -> list[str]:
        """Return the trigrams of an answer."""
        return self._trigrams("", answer.body, answer.markup)

    def _trigrams(self, title: str, body: str, markup: Any) -> list[str]:
        words = self.words(title) + self.words(readable(body, markup, with_code=self._settings.with_code))
        return list(chain.from_iterable(map(trigrams, words)))


def count_trigrams(texts: Iterable[Iterable[str]], vocabulary: Vocabulary) -> csr_array:
    """Return how often each trigram occurs in each text, float32; column i is the vocabulary's id i + 1.  # (N, V)

    >>> count_trigrams([["#ab", "ab#", "#ab"], ["#zz"]], Vocabulary(["ab#", "#ab"])).toarray().tolist()
    [[1.0, 2.0], [0.0, 0.0]]
    """
    ids = [np.array(vocabulary.ids(text), np.int32) for text in texts]
    known = [text[text > 0] - 1 for text in ids]
    starts = np.append(0, np.cumsum([len(text) for text in known]))
    places = np.concatenate([np.zeros(0, np.int32), *known])
    counts = csr_array((np.ones(len(places), np.float32), places, starts), shape=(len(ids), len(vocabulary) - 1))
    counts.sum_duplicates()
    return counts


class BlockShape(NamedTuple):
    """The lengths of one block: convolution, max pooling, ReLU."""

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
    def reach(self) -> int:
        """Return how many places that enter a window sees, R = p + K - 1."""
        return self.pooling + self.kernel - 1


Reduction = Literal["mean", "sum"]
_NO_CLIP: Final = 1e9


def _loop() -> SgdSettings:
    return SgdSettings(epochs=12, learning_rate=0.01, clip=_NO_CLIP, patience=3, stop_on=HELD_OUT_LOSS, momentum=0.05)


@dataclass(frozen=True, slots=True)
class ScqaSettings:
    """A siamese network and its training, but for trigrams, data and seed.

    Args:
        kernel_width: places that a filter sees, K ≥ 1.
        channels: filters of each block, ≥ 1.
        poolings: places of each block's convolution of which the largest is kept, ≥ 1.
        output_size: dimensions of a vector, D ≥ 1.
        is_shared: question and answer go through the same parameters: SCQA; otherwise each has its own: DSQA.
        batch_size: samples in a batch, half of them positive, half negative; even, ≥ 4.
        margin: m in [0, 1): a cosine up to which another question's answer costs nothing.
        held_out: pairs that are never learned from, to measure the loss on; a tenth of all at most.
        reduction: a batch's loss is the ``mean`` of its samples' or their ``sum``.
        loop: how the loss is made smaller.
    """

    kernel_width: Annotated[int, Meta(ge=1, le=1_000)] = 10
    channels: tuple[Annotated[int, Meta(ge=1, le=1_024)], ...] = (8, 8, 8)
    poolings: tuple[Annotated[int, Meta(ge=1, le=100_000)], ...] = (5, 5, 4)
    output_size: Size = 128
    is_shared: bool = True
    batch_size: Annotated[int, Meta(ge=4, le=65_536)] = 100
    margin: BelowOne = 0.0
    held_out: HeldOut = 2_000
    reduction: Reduction = "mean"
    loop: SgdSettings = field(default_factory=_loop)

    def __post_init__(self) -> None:
        check_fields(self, "scqa ")
        if len(self.channels) != len(self.poolings) or not self.channels:
            raise SettingError(
                f"{len(self.channels)} channels and {len(self.poolings)} poolings, but expected as many of both",
                "give one of each for each block",
            )
        if self.batch_size % 2:
            raise SettingError(
                f"batch_size is {self.batch_size}, but expected an even number: half of a batch is positive",
                "set batch_size",
            )

    @classmethod
    def read(cls, path: Path) -> ScqaSettings:
        """Return the settings of a TOML file; what it does not name has its default.

        Raises:
            SettingError: there is no such file, or it cannot be used; names the place.
        """
        try:
            stored = tomllib.loads(path.read_text(encoding="utf-8"))
            loop = read_settings(
                SgdSettings, {**asdict(_loop()), **fit(stored.get("loop", {}), dict[str, Any], "loop")}, "loop"
            )
            return read_settings(cls, {**stored, "loop": loop}, "top level")
        except OSError as error:
            raise SettingError(f"recipe {path} cannot be read: {error.strerror}", "look at its path") from error
        except (ValueError, RecursionError, OverflowError) as error:
            raise SettingError(f"recipe {path} is no TOML: {error}", "correct it") from error
        except SettingError as error:
            raise SettingError(f"recipe {path}: {error.message}", error.hint) from error

    def to_json(self) -> str:
        """Return the settings as text."""
        return json.dumps(asdict(self), sort_keys=True)

    def blocks(self, size: int) -> tuple[BlockShape, ...]:
        """Return the lengths of each block over so many trigrams.

        >>> [(block.length, block.windows) for block in ScqaSettings().blocks(48_536)]
        [(48536, 9705), (9705, 1939), (1939, 482)]

        Raises:
            SettingError: nothing is left at the end.
        """
        blocks: list[BlockShape] = []
        length, inputs = size, 1
        for outputs, pooling in zip(self.channels, self.poolings, strict=True):
            blocks.append(BlockShape(length, inputs, outputs, self.kernel_width, pooling))
            length, inputs = blocks[-1].windows, outputs
        if not length:
            raise SettingError(
                f"kernels of width {self.kernel_width} and poolings {list(self.poolings)} leave nothing of {size} "
                "trigrams",
                "pool less, or learn from more texts",
            )
        return tuple(blocks)

    def shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every parameter over so many trigrams.

        A ``kernel_i`` has (C_out, C_in, K); ``dense`` a row for each output and a column for each window of the last
        block and channel, channels of a window together. Where sides do not share, names begin with ``question.`` and
        ``answer.``.

        >>> shapes = ScqaSettings().shapes(48_536).values()
        >>> int(sum(map(np.prod, shapes)))  # 88 + 648 + 648 + 482 · 8 · 128 + 128
        495080
        """
        own: dict[str, tuple[int, ...]] = {}
        for number, block in enumerate(blocks := self.blocks(size), start=1):
            own[f"kernel_{number}"] = (block.outputs, block.inputs, block.kernel)
            own[f"bias_{number}"] = (block.outputs,)
        own["dense"] = (self.output_size, blocks[-1].windows * blocks[-1].outputs)
        own["dense_bias"] = (self.output_size,)
        starts = ("",) if self.is_shared else tuple(f"{side}." for side in SIDES)
        return {start + name: shape for start in starts for name, shape in own.items()}

"""What a model is besides its words and numbers: its encoder, and how it reads texts.

Settings that cannot be used raise SettingError when they are made.

The parameters of every encoder are a flat mapping from name to float32 array, the same in torch, in NumPy and on
disk; ``EncoderConfig.shapes`` holds their names and shapes.

Source: Lei et al. 2016 (NAACL), section 4.1, for the RCNN and its gates; Zhang and Wu 2018 (AAAI), "Attention
Autoencoders", for attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from typing import Annotated, Final, Literal, get_args

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.vocabulary import Reads
from askalike.settings import BelowOne, Size, check_fields, read_settings
from askalike.text.settings import LANGUAGES

Kind = Literal["rcnn", "lstm", "gru", "cnn", "attention"]
Gate = Literal["vector", "scalar", "fixed", "constant", "none"]
Pooling = Literal["last", "normalised-last", "mean", "normalised-mean", "max"]
Unknown = Literal["vector", "zero", "dropped"]

ENCODER_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
GATES: Final[tuple[Gate, ...]] = get_args(Gate)
POOLINGS: Final[tuple[Pooling, ...]] = get_args(Pooling)
MAX_CNN_WIDTH: Final = 4
MAX_LAYERS: Final = 16
STACKED: Final[tuple[Kind, ...]] = ("gru", "attention")
"""Kinds that may have several layers, each over the states of the one before."""


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """An encoder, but for the values of its parameters.

    Args:
        kind: the network: ``rcnn``, ``lstm``, ``gru``, ``cnn`` or ``attention``.
        input_size: dimensions of a word vector, D_in ≥ 1.
        hidden_size: dimensions of a state and of the pooled vector, D ≥ 1; for attention D = D_in.
        order: filter width n in words: ≥ 1 for the RCNN, 1 to ``MAX_CNN_WIDTH`` for the CNN; the others ignore it.
        gate: how the RCNN's decay λ is found: a ``vector`` or a ``scalar`` λ_t for each word, a ``fixed`` λ in the same
            equations, ``none`` (λ = 0, which is a CNN of width n), or the ``constant`` decay of Lei et al. 2015, whose
            patterns have no factors 1 - λ. The others ignore it.
        decay: λ of the gates ``fixed`` and ``constant``, in [0, 1).
        pooling: how the states become one vector: the ``last`` one, as it is or brought to length 1
            (``normalised-last``), their ``mean``, the mean of the states after each was brought to length 1
            (``normalised-mean``), or the ``max`` of each dimension.
        layers: 1 to ``MAX_LAYERS`` for the kinds in ``STACKED``, 1 for the others.

    >>> EncoderConfig("rcnn", input_size=3, hidden_size=2, gate="scalar").shapes()
    {'input': (5, 3), 'recurrent': (1, 2), 'gate_bias': (1,), 'output_bias': (2,)}
    >>> list(EncoderConfig("gru", input_size=3, hidden_size=2, layers=2).shapes())[3:6]
    ['bias_hh', 'weight_ih_2', 'weight_hh_2']
    """

    kind: Kind
    input_size: Size
    hidden_size: Size
    order: Annotated[int, Meta(ge=1, le=64)] = 2
    gate: Gate = "vector"
    decay: BelowOne = 0.5
    pooling: Pooling = "last"
    layers: Annotated[int, Meta(ge=1, le=16)] = 1

    def __post_init__(self) -> None:
        check_fields(self, "encoder ")
        if self.kind == "cnn" and self.order > MAX_CNN_WIDTH:
            raise SettingError(
                f"a CNN of width {self.order}, but expected 1 to {MAX_CNN_WIDTH}", "set order to 2, 3 or 4"
            )
        if self.layers > (most := MAX_LAYERS if self.kind in STACKED else 1):
            raise SettingError(
                f"encoder layers is {self.layers}, but expected at most {most} for the kind {self.kind}",
                f"set layers; more than 1 is for: {', '.join(STACKED)}",
            )
        if self.kind == "attention" and self.input_size != self.hidden_size:
            raise SettingError(
                f"attention over words of {self.input_size} numbers with states of {self.hidden_size}, but expected "
                "the same for both",
                "set hidden_size to the size of the word vectors",
            )

    @property
    def gate_size(self) -> int:
        """Return G, how many gates are computed for a word: D for a vector gate, 1 for a scalar one, otherwise 0."""
        if self.kind != "rcnn":
            return 0
        return {"vector": self.hidden_size, "scalar": 1}.get(self.gate, 0)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every parameter, in the order of the file.

        ``input`` holds W_1 … W_n stacked, then W^λ; ``weight`` of the CNN the oldest word first; LSTM and GRU have
        torch's layouts (i, f, g, o and r, z, n). Of attention, ``attention_1`` holds W^q, W^k, W^v of layer 1 stacked,
        ``inner_1`` and ``outer_1`` W_1 and W_2, all with a row for each output; a norm has its gain, then its bias.
        Layers of a GRU after the first have their number in the name.
        """
        d_in, d, gates = self.input_size, self.hidden_size, self.gate_size
        if self.kind == "cnn":
            return {"weight": (d, self.order * d_in), "bias": (d,)}
        if self.kind == "rcnn":
            gated = {"recurrent": (gates, d), "gate_bias": (gates,)} if gates else {}
            return {"input": (self.order * d + gates, d_in), **gated, "output_bias": (d,)}
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(1, self.layers + 1):
            shapes |= self._attention_shapes(layer) if self.kind == "attention" else self._recurrent_shapes(layer)
        return shapes

    def _attention_shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        d = self.hidden_size
        return {
            f"attention_{layer}": (3 * d, d),
            f"attention_norm_{layer}": (2, d),
            f"inner_{layer}": (d, d),
            f"inner_bias_{layer}": (d,),
            f"outer_{layer}": (d, d),
            f"outer_bias_{layer}": (d,),
            f"outer_norm_{layer}": (2, d),
        }

    def _recurrent_shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        d, rows = self.hidden_size, (4 if self.kind == "lstm" else 3) * self.hidden_size
        d_in, number = (self.input_size, "") if layer == 1 else (d, f"_{layer}")
        return {
            f"weight_ih{number}": (rows, d_in),
            f"weight_hh{number}": (rows, d),
            f"bias_ih{number}": (rows,),
            f"bias_hh{number}": (rows,),
        }

    def check_shapes(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Raise SettingError where a parameter is missing, unknown or of another shape."""
        expected, shapes = self.shapes(), {name: array.shape for name, array in arrays.items()}
        if shapes != expected:
            raise SettingError(
                f"encoder parameters {shapes}, but expected {expected}",
                "use the parameters and the config that were saved together",
            )

    def parameter_count(self) -> int:
        """Return how many numbers are learned, word vectors not counted.

        >>> EncoderConfig("rcnn", input_size=200, hidden_size=400).parameter_count()
        400800
        """
        return sum(prod(shape) for shape in self.shapes().values())

    def to_json(self) -> dict[str, str | int | float]:
        """Return the choices as a flat mapping that JSON can hold, without ``layers`` where there is one."""
        stored = asdict(self)
        if self.layers == 1:
            del stored["layers"]
        return stored


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A model, but for its words and numbers.

    Args:
        reads: what of a question is encoded: its title and its body, each on its own; its title alone; or both joined
            to one text.
        word_limit: words of a title or body that are read, or of both where they are joined, the first ones, ≥ 1.
        unknown: what stands for a word outside the vocabulary: one learned ``vector``, the ``zero`` vector, or nothing:
            it is ``dropped``, as if the text did not have it.
        stems: the Snowball language to whose stems words are brought, or "" for words as they are written.
    """

    encoder: EncoderConfig
    reads: Reads = "title and body"
    word_limit: Annotated[int, Meta(ge=1, le=100_000)] = 100
    unknown: Unknown = "vector"
    stems: str = ""

    def __post_init__(self) -> None:
        check_fields(self, "model setting ")
        if self.stems not in ("", *LANGUAGES):
            raise SettingError(
                f"model setting stems is {self.stems!r}, but expected one of: {', '.join(LANGUAGES)}",
                'choose a listed language, or "" for words as they are written',
            )

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON can hold them."""
        return asdict(self) | {"encoder": self.encoder.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> ModelSettings:
        """Return the settings that ``to_json`` stored; those that are absent take their default.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used.
        """
        return read_settings(cls, stored, "model settings")

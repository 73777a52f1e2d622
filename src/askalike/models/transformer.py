"""Sentence transformers in ONNX Runtime: texts → vectors.

Texts run in batches, each on one thread, and the batches of a large call side by side on the cores that the process
may use. A text is padded to a length that follows from itself alone and runs beside texts of that length, so that its
vector is the same, to the bit, on any number of cores, whatever else is encoded with it.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019; Song et al., "MPNet", 2020
(relative positions); Reimers and Gurevych, "Sentence-BERT", 2019 (pooling).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, optional_module
from askalike.models.text_encoder import READ_OF_PAIRS, send_no_telemetry, text_of
from askalike.models.transformer_folder import Array, Dense, Pooling, TransformerFolder, read_folder, types_of
from askalike.models.transformer_graph import Precision, serialized_graph
from askalike.processes import cores, side_by_side
from askalike.types import Question

Batch = tuple[list[int], Array]
"""Places of texts, and what was made of them, a row each.  # (B,), (B, D)"""

PIECES_A_BATCH: Final = 256
"""Padded pieces that run together. Small batches stay in the processor's cache: of 137 pieces a text, 8 texts together
are 1.6 times as fast as 64."""

MOST_THREADS: Final = 8
"""Each takes some 75 MB of MiniLM in 8 bits, 130 in float32."""

PADDED_TO: Final = 8
"""A text is padded to a multiple of so many pieces."""

MASKED: Final = np.float32(-1e9)
_ANOTHER: Final = "take another model"


class Transformer:
    """A sentence transformer: every text is a vector of length 1, the dot product of two is their cosine.

    Args:
        folder: as ``read_folder`` returns it.
        precision: ``int8`` multiplies 8-bit weights and states (twice as fast, cosine .998 to float32).
        threads: batches that run side by side; as many as there are cores, at most ``MOST_THREADS``, if not given.

    Raises:
        SettingError: there is no such precision.
        MissingExtraError: onnx or tokenizers is not installed.
        DamagedModelError: the tokenizer cannot be read, or does not fit the word vectors.
    """

    def __init__(
        self, folder: TransformerFolder, *, precision: Precision = "float32", threads: int | None = None
    ) -> None:
        self._folder = folder
        self._network = _network(folder, precision, threads)
        self.name = f"sentence-transformers:{folder.path.name}@{folder.digest[:12]}" + (
            "" if precision == "float32" else f"+{precision}"
        )
        width = folder.shape.hidden_size * len(folder.pooling)
        self.dimensions = folder.dense[-1].weight.shape[0] if folder.dense else width

    @classmethod
    def load(cls, path: str | Path, *, precision: Precision = "float32", threads: int | None = None) -> Transformer:
        """Read a folder of the sentence-transformers kind.

        Raises:
            ModelError, MissingExtraError: as ``read_folder`` and the class.
        """
        return cls(read_folder(Path(path)), precision=precision, threads=threads)

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries, in their order.  # (N, D) float32"""
        return self._encode(texts, self._folder.prompts.get("query", ""))

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents, in their order.  # (N, D) float32"""
        prompts = self._folder.prompts
        return self._encode(texts, prompts.get("document", prompts.get("passage", "")))

    def _encode(self, texts: Sequence[str], prompt: str) -> Array:
        """Return the vectors of texts behind a prompt.

        Raises:
            DamagedModelError: a text cannot be read, or its vector has numbers that are not finite.
        """
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)  # (N, D)
        for places, pooled in self._network.run([prompt + text for text in texts], self._pool):
            vectors[places] = pooled
        if not np.isfinite(vectors).all():
            raise DamagedModelError(f"{self._folder.path} gives vectors with numbers that are not finite", _ANOTHER)
        return vectors

    def _pool(self, states: Array, mask: NDArray[np.bool_]) -> Array:
        vectors = np.concatenate([POOLINGS[name](states, mask) for name in self._folder.pooling], axis=1)  # (B, D)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            for layer in self._folder.dense:
                vectors = _projected(layer, vectors)
            return normalised(vectors)


class CrossEncoder:
    """A model that reads two texts together and gives one number: higher where they fit better.

    Args:
        folder: as ``read_folder(…, is_of_pairs=True)`` returns it.
        precision, threads: as ``Transformer``.

    Raises:
        MissingExtraError, DamagedModelError: as ``Transformer``.
    """

    def __init__(
        self, folder: TransformerFolder, *, precision: Precision = "float32", threads: int | None = None
    ) -> None:
        assert folder.head is not None
        self.name = f"cross-encoder:{folder.path.name}@{folder.digest[:12]}"
        self._head = folder.head
        self._network = _network(folder, precision, threads)

    def score(self, query: Question, questions: Sequence[Question]) -> list[float]:
        """Return a number for each question, read with the query as text; see ``score_texts``."""
        texts = [text_of(question, READ_OF_PAIRS) for question in questions]
        return self.score_texts(text_of(query, READ_OF_PAIRS), texts)

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text, as sentence-transformers' ``CrossEncoder.predict`` does."""
        scores = np.zeros(len(texts))
        for places, scores_of_batch in self._network.run([(query, text) for text in texts], self._score_states):
            scores[places] = scores_of_batch
        if self._head.is_probability:
            scores = 1 / (1 + np.exp(-scores))
        return scores.tolist()

    def _score_states(self, states: Array, _: NDArray[np.bool_]) -> Array:
        inner = states[:, 0] @ self._head.weight.T + self._head.bias  # (B, D)
        inner = np.maximum(inner, 0) if self._head.is_relu else np.tanh(inner)
        scores: Array = inner @ self._head.out + self._head.constant  # (B,)
        return scores


class Pieces(NamedTuple):
    """A text, or a pair of texts, as a network reads it.

    Args:
        ids: of the pieces in the vocabulary, special pieces among them.
        types: 0 for a piece of the first text, 1 for one of the second; None for a single text.
    """

    ids: Sequence[int]
    types: Sequence[int] | None = None


Tokenize = Callable[[Sequence[Any]], list[Pieces]]


class Network:
    """Texts, or pairs of texts, → the states of their pieces; any thread may ask.

    Args:
        session: of ONNX Runtime, over a graph of ``transformer_graph``.
        tokenize: makes pieces of texts or pairs.
        max_pieces: the longest text that the graph reads.
        type_count: kinds of pieces that the graph tells apart; 0 where it reads single texts.
        first_position: the row of the first piece's position vector.
        relative_bias: what a distance adds to the attention, in models with relative positions.
        threads: batches that run side by side; as many as there are cores, at most ``MOST_THREADS``, if not given.
    """

    def __init__(
        self,
        session: Any,
        tokenize: Tokenize,
        *,
        max_pieces: int,
        type_count: int = 0,
        first_position: int = 0,
        relative_bias: RelativeBias | None = None,
        threads: int | None = None,
    ) -> None:
        self._session = session
        self._tokenize = tokenize
        self._max_pieces = max_pieces
        self._type_count = type_count
        self._first_position = first_position
        self._relative_bias = relative_bias
        self._threads = threads or min(MOST_THREADS, cores())

    def run(
        self, texts: Sequence[Any], reduce: Callable[[Array, NDArray[np.bool_]], Array], threads: int | None = None
    ) -> Iterator[Batch]:
        """Yield the places of texts, and what is made of the states of their pieces.

        Args:
            reduce: of states (B, T, D) and which of them are pieces (B, T); called in threads.
            threads: in place of the network's own.
        """
        pieces = self._tokenize(texts)
        widths = [min(-(-len(text.ids) // PADDED_TO) * PADDED_TO, self._max_pieces) for text in pieces]

        def run_batch(places: list[int]) -> Batch:
            return places, reduce(*self._states([pieces[place] for place in places], widths[places[0]]))

        yield from side_by_side(run_batch, batches(widths), threads or self._threads)

    def token_states(self, texts: Sequence[Any]) -> list[tuple[Sequence[int], Array]]:
        """Return the ids of each text's pieces, special pieces among them, with their states.  # (T,), (T, D)"""
        pieces = self._tokenize(texts)
        states_of: list[tuple[Sequence[int], Array]] = [(text.ids, np.zeros((0, 0), np.float32)) for text in pieces]
        for places, states in self.run(texts, lambda states, _: states):  # (B, T, D)
            for row, place in enumerate(places):
                ids = states_of[place][0]
                states_of[place] = (ids, states[row, : len(ids)].copy())  # so that it does not hold the whole batch
        return states_of

    def _states(self, texts: Sequence[Pieces], width: int) -> tuple[Array, NDArray[np.bool_]]:
        ids = np.zeros((len(texts), width), dtype=np.int64)  # (B, T)
        types = np.zeros_like(ids)  # (B, T)
        mask = np.zeros((len(texts), width), dtype=bool)  # (B, T)
        for row, text in enumerate(texts):
            ids[row, : len(text.ids)] = text.ids
            if text.types is not None:
                types[row, : len(text.ids)] = text.types
            mask[row, : len(text.ids)] = True
        bias = np.where(mask, np.float32(0), MASKED)[:, None, None, :]  # (B, 1, 1, T)
        if self._relative_bias is not None:
            bias = bias + self._relative_bias.of(width)  # (B, H, T, T)
        inputs = {"ids": ids, "positions": np.arange(width) + self._first_position, "bias": bias}
        if self._type_count:
            inputs["types"] = np.minimum(types, self._type_count - 1)
        return self._session.run(None, inputs)[0], mask


def _network(folder: TransformerFolder, precision: Precision, threads: int | None) -> Network:
    types = types_of(folder)
    return Network(
        session(serialized_graph(folder, precision)),
        _tokenizer(folder),
        max_pieces=folder.max_pieces,
        type_count=0 if types is None else len(types),
        first_position=folder.shape.first_position,
        relative_bias=RelativeBias(folder) if folder.shape.family == "mpnet" else None,
        threads=threads,
    )


def normalised(vectors: Array) -> Array:
    """Return vectors at length 1; those without a direction stay zeros.  # (N, D)"""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Array = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units


def batches(widths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts that run together: of one width, widest first, at most ``PIECES_A_BATCH`` pieces.

    >>> list(batches([8, 16, 8, 16, 16]))
    [[1, 3, 4], [0, 2]]
    """
    by_width: dict[int, list[int]] = {}
    for place, width in enumerate(widths):
        by_width.setdefault(width, []).append(place)
    for width in sorted(by_width, reverse=True):
        places, count = by_width[width], max(1, PIECES_A_BATCH // max(1, width))
        for start in range(0, len(places), count):
            yield places[start : start + count]


def _mean(states: Array, mask: NDArray[np.bool_]) -> Array:
    weights = mask[..., None].astype(np.float32)
    total: Array = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
    return total


def _mean_by_root(states: Array, mask: NDArray[np.bool_]) -> Array:
    counts = mask.sum(axis=1, keepdims=True).astype(np.float32)
    pooled: Array = _mean(states, mask) * np.sqrt(counts)
    return pooled


def _maximum(states: Array, mask: NDArray[np.bool_]) -> Array:
    pooled: Array = np.where(mask[..., None], states, MASKED).max(axis=1)
    return pooled


def _last(states: Array, mask: NDArray[np.bool_]) -> Array:
    pooled: Array = states[np.arange(len(states)), mask.sum(axis=1) - 1]
    return pooled


POOLINGS: Final[Mapping[Pooling, Callable[[Array, NDArray[np.bool_]], Array]]] = {
    "mean": _mean,
    "cls": lambda states, _: states[:, 0],
    "max": _maximum,
    "mean_sqrt_len_tokens": _mean_by_root,
    "lasttoken": _last,
}
"""Name → from states (B, T, D) and which of them are pieces (B, T) to vectors (B, D)."""


def _projected(layer: Dense, vectors: Array) -> Array:
    outputs = vectors @ layer.weight.T
    if layer.bias is not None:
        outputs = outputs + layer.bias
    return np.tanh(outputs) if layer.is_tanh else outputs


class RelativeBias:
    """What MPNet adds to the attention between two positions, by their distance.

    Distances share 32 buckets for each direction's half: one each below 8, wider ones up to 128 and beyond.
    """

    def __init__(self, folder: TransformerFolder) -> None:
        self._table = folder.weights["encoder.relative_attention_bias.weight"]  # (buckets, H)
        self._biases: dict[int, Array] = {}

    def of(self, length: int) -> Array:
        """Return the bias for texts of so many pieces.  # (1, H, T, T)"""
        biases = self._biases.get(length)
        if biases is None:
            if len(self._biases) >= 16:
                self._biases.clear()
            places = np.arange(length)
            buckets = relative_buckets(places[None, :] - places[:, None], len(self._table))
            biases = self._biases[length] = np.ascontiguousarray(self._table[buckets].transpose(2, 0, 1)[None])
        return biases


def relative_buckets(distances: NDArray[np.int64], buckets: int, most: int = 128) -> NDArray[np.int64]:
    """Return the bucket of each distance (key's place less query's).

    >>> relative_buckets(np.array([0, -1, 1, -200, 200]), 32).tolist()
    [0, 1, 17, 15, 31]
    """
    half = buckets // 2
    exact = half // 2
    far = np.abs(distances)
    with np.errstate(divide="ignore"):
        wide = exact + (np.log(far / exact) / math.log(most / exact) * (half - exact)).clip(0, half).astype(np.int64)
    bucket: NDArray[np.int64] = np.where(far < exact, far, np.minimum(wide, half - 1)) + half * (distances > 0)
    return bucket


def _tokenizer(folder: TransformerFolder) -> Tokenize:
    missing = "the package tokenizers is not installed, which reads sentence transformers"
    tokenizers = optional_module("tokenizers", missing, "transformers")
    try:
        tokenizer = tokenizers.Tokenizer.from_str(folder.tokenizer)
    except Exception as error:  # tokenizers raises nothing more precise
        raise DamagedModelError(
            f"tokenizer.json of {folder.path} cannot be read: {error}", "take the folder again from where it came"
        ) from error
    rows = len(folder.weights["embeddings.word_embeddings.weight"])
    if not 0 < tokenizer.get_vocab_size() <= rows:
        raise _unfit(folder, f"has {tokenizer.get_vocab_size()} pieces, but there are {rows} word vectors")
    tokenizer.enable_truncation(folder.max_pieces)
    tokenizer.no_padding()

    def tokenize(texts: Sequence[Any]) -> list[Pieces]:
        try:
            pieces = [Pieces(text.ids, text.type_ids) for text in tokenizer.encode_batch(texts)]
        except Exception as error:  # tokenizers raises nothing more precise
            raise _unfit(folder, f"cannot read a text: {error}") from error
        if any(len(text.ids) > folder.max_pieces or max(text.ids, default=0) >= rows for text in pieces):
            raise _unfit(folder, f"gives pieces beyond the {rows} word vectors, or more than {folder.max_pieces}")
        return pieces

    return tokenize


def _unfit(folder: TransformerFolder, what: str) -> DamagedModelError:
    return DamagedModelError(f"tokenizer.json of {folder.path} {what:.300}", "take the files of one model")


def session(graph: bytes) -> Any:
    """Return a session of ONNX Runtime over a graph, which runs on the caller's thread."""
    return _session(graph, is_exact=saturates())


@cache
def saturates() -> bool:
    """Return whether ONNX Runtime's fastest product of 8-bit numbers is cut off at 2¹⁵ - 1 on this processor.

    x86-64 without VNNI adds two products in 16 bits. Vectors would then depend on the processor, at a cosine of .997
    to the exact ones; ONNX Runtime has an exact product too, which takes 15 % longer there.
    """
    numbers = {"a": np.full((1, 2), 255, np.uint8), "b": np.full((2, 1), 127, np.int8)}
    return int(_session(_PRODUCT, is_exact=False).run(None, numbers)[0][0, 0]) != 2 * 255 * 127


_PRODUCT: Final = (
    b'\x08\x08\x12\x00:>\n\x18\n\x01a\n\x01b\x12\x01c"\rMatMulInteger\x12\x01gZ\t\n\x01a\x12\x04\n\x02\x08\x02'
    b"Z\t\n\x01b\x12\x04\n\x02\x08\x03b\t\n\x01c\x12\x04\n\x02\x08\x06B\x04\n\x00\x10\r"
)
"""An ONNX graph: ``MatMulInteger`` of unsigned ``a`` and signed ``b``, 8 bits each."""


def _session(graph: bytes, *, is_exact: bool) -> Any:
    send_no_telemetry()
    import onnxruntime  # here: what searches words alone does not pay for loading it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False  # texts differ in length, and the arena keeps the largest of each
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", str(int(is_exact)))
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

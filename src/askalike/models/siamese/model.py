"""A trained siamese model without torch: questions as letter trigrams in, vectors out.

**Trigrams.** A misspelled or inflected word keeps most of them.

::

    table → #table# → #ta, tab, abl, ble, le#

Source: Das et al. 2016 (ACL), section 3.1, "word hashing"; section 7: "lower-casing, stemming, stopword and special
character removal". The name and the delimiter are those of Huang et al. 2013 (CIKM), section 3.2.

Reading: a question's title and description are joined to one text: the paper says that its questions have both, and
feeds one vector of a question to the network. Repetitions count, so that the order of the two does not matter.

**Network.** It computes what ``network`` does. A text has some hundred trigrams of tens of thousands. Where a cell of a
convolution sees no place that differs from the background (zero for the trigrams, one vector g_i for what leaves block
i), it gives the background of the next block::

    g_0 = 0,   g_i = relu(b_i + Σ_k W_i[:, :, k] g_{i-1})

So only cells that see something else are worked on. Which those are depends on where trigrams stand, not on parameters.

**Similarity.** cos(v(a), v(b)).

Source: Das et al. 2016 (ACL), sections 3 and 5.
Reading: a question is compared with a question. Where sides share nothing (DSQA) both go through the question's side:
the answer's has never seen a question. The paper does not say.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.model import check_size, unit_rows
from askalike.models.encoders.weights import Packed, packed_of
from askalike.models.folder import Contents, Manifest, naming, read_model, write_folder
from askalike.models.siamese.config import SIDES, BlockShape, SiameseConfig, SiameseReads, SiameseSettings, prefix
from askalike.models.vocabulary import Vocabulary
from askalike.text.analyzer import Analyzer
from askalike.text.characters import MARKS, normalised
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.types import Answer, Question

DELIMITER: Final = "#"
"""Stands before and after a word; no word holds it."""

_SPECIAL = re.compile(rf"[^\w{MARKS}'\s]|_")
_MOST_WORDS: Final = 1 << 16  # remembered


@lru_cache(maxsize=_MOST_WORDS)
def trigrams(word: str) -> tuple[str, ...]:
    """Return the letter trigrams of a word between two delimiters, in order; a word of n characters has n.

    A digit and a combining mark count as letters. A word of one character is one trigram.

    >>> trigrams("table"), trigrams("c"), trigrams("中")
    (('#ta', 'tab', 'abl', 'ble', 'le#'), ('#c#',), ('#中#',))
    """
    marked = f"{DELIMITER}{word}{DELIMITER}"
    return tuple(marked[begin : begin + 3] for begin in range(len(word)))


class TrigramReader:
    """Turns text into the trigrams of its terms. Safe to share between threads.

    Special characters are taken out before terms are made, so that a path or a version is its words alone: ``22.04`` is
    ``22`` and ``04``, ``c++`` is ``c``. An apostrophe is left to the analyzer, which knows contractions. Letters are
    those of any script; an ideograph is a word, and so one trigram. The settings say whether stop words are dropped and
    words stemmed.

    Reading: a text is its trigrams with repetitions, as the "term vectors" of the paper count terms.

    >>> reader = TrigramReader(TextSettings())
    >>> reader.words("The user's tables: /boot/grub.cfg, 22.04 & C++")
    ['user', 'tabl', 'boot', 'grub', 'cfg', '22', '04', 'c']
    >>> reader.trigrams("The tables, in C++")
    ['#ta', 'tab', 'abl', 'bl#', '#c#']
    """

    def __init__(self, settings: TextSettings) -> None:
        self._analyzer = Analyzer(settings)

    def words(self, text: str) -> list[str]:
        """Return the words whose trigrams are read, in order and with repetitions."""
        return self._analyzer.terms(_SPECIAL.sub(" ", normalised(text)))

    def trigrams(self, text: str) -> list[str]:
        """Return the trigrams of a plain text, in order and with repetitions."""
        return list(chain.from_iterable(map(trigrams, self.words(text))))


@dataclass(frozen=True, slots=True)
class TrigramTexts:
    """Texts over V trigrams, each as the places that are not zero and the numbers there.

    Args:
        places: of the trigrams that occur, rising within a text; place i is the vocabulary's word of id i + 1.  # (M,)
        counts: how often each occurs.  # (M,)
        starts: where each text begins; the last number is M.  # (N + 1,)

    >>> texts = TrigramTexts.of([["#ab", "ab#", "#ab"], ["#zz"], ["ab#"]], Vocabulary(["ab#", "#ab"]))
    >>> texts.places.tolist(), texts.counts.tolist(), texts.starts.tolist()
    ([0, 1, 0], [1.0, 2.0, 1.0], [0, 2, 2, 3])
    >>> texts.keys(np.array([2, 0]), 2).tolist()  # text 2 first: place 0; then text 0, 2 places on
    [0, 2, 3]
    """

    places: NDArray[np.int32]
    counts: NDArray[np.float32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sizes(self) -> NDArray[np.int64]:
        """Return how many trigrams of each text are known, each counted once.  # (N,)"""
        return np.diff(self.starts)

    @classmethod
    def of(cls, texts: Iterable[Iterable[str]], vocabulary: Vocabulary) -> TrigramTexts:
        """Return texts given by their trigrams; those outside the vocabulary are dropped."""
        ids, starts = array("i"), array("q", [0])
        for text in texts:
            ids.extend(vocabulary.ids(text))
            starts.append(len(ids))
        return cls.counted(np.array(ids, np.int32), np.array(starts, np.int64), len(vocabulary))

    @classmethod
    def counted(cls, ids: NDArray[np.int32], starts: NDArray[np.int64], size: int) -> TrigramTexts:
        """Return texts given by ids of a vocabulary, with repetitions, one text after the other; 0 is dropped.

        Args:
            ids: below ``size``.  # (W,)
            starts: where each text begins; the last number is W.  # (N + 1,)
            size: ids that there are, the one for unknown trigrams included.
        """
        keys = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * size + ids
        distinct, counts = np.unique(keys[ids > 0], return_counts=True)
        begins = np.searchsorted(distinct, np.arange(len(starts)) * size)
        places = distinct % size - 1
        return cls(places.astype(np.int32), counts.astype(np.float32), begins.astype(np.int64))

    def some(self, rows: NDArray[np.int64]) -> TrigramTexts:
        """Return some of the texts, in the order of ``rows``."""
        entries = self.entries(rows)
        starts = np.concatenate([[0], np.cumsum(self.sizes()[rows])])
        return TrigramTexts(self.places[entries], self.counts[entries], starts.astype(np.int64))

    def entries(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where in ``places`` and ``counts`` the numbers of some texts stand, one text after the other."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        before = np.cumsum(lengths) - lengths
        found: NDArray[np.int64] = np.repeat(self.starts[rows] - before, lengths)
        found += np.arange(len(found))
        return found

    def keys(self, rows: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """Return the places of some texts laid end to end, each ``length`` long; rising."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        keys: NDArray[np.int64] = np.repeat(np.arange(len(rows)) * length, lengths)
        keys += self.places[self.entries(rows)]
        return keys


class SiameseReader:
    """Trigrams of questions and answers.

    >>> question = Question("1", "Slow wifi", "On trains")
    >>> len(SiameseReader(TextSettings(), "joined").question(question))  # slow, wifi, train
    13
    >>> SiameseReader(TextSettings(), "title").question(question)
    ['#sl', 'slo', 'low', 'ow#', '#wi', 'wif', 'ifi', 'fi#']
    """

    def __init__(self, text: TextSettings, reads: SiameseReads) -> None:
        self._settings: Final = text
        self._reads: Final = reads
        self._reader: Final = TrigramReader(text)

    def text(self, plain: str) -> list[str]:
        """Return the trigrams of a plain text."""
        return self._reader.trigrams(plain)

    def trigrams(self, words: Iterable[str]) -> list[str]:
        """Return the trigrams of words, as they are read of a text."""
        return list(chain.from_iterable(map(trigrams, words)))

    def question(self, question: Question) -> list[str]:
        """Return the trigrams of a question."""
        return self.trigrams(self.question_words(question))

    def question_words(self, question: Question) -> list[str]:
        """Return the words whose trigrams are read of a question."""
        title = self._reader.words(question.title)
        if self._reads == "title":
            return title
        body = readable(question.body, question.markup, with_code=self._settings.with_code)
        return title + self._reader.words(body)

    def answer(self, answer: Answer) -> list[str]:
        """Return the trigrams of an answer."""
        return self.text(readable(answer.body, answer.markup, with_code=self._settings.with_code))


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """What of one block is worked on.

    Args:
        source: places that enter and differ from the background, one number for each cell that sees one.  # (E,)
        target: where in that cell it stands, cells laid end to end, each R long.  # (E,)
        cells: how many cells are worked on, A.
        slots: where each cell stands in its window, windows laid end to end; None where a cell is a window.  # (A,)
        windows: how many windows are worked on.
    """

    shape: BlockShape
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    cells: int
    slots: NDArray[np.int64] | None
    windows: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is worked on for some texts.

    Args:
        ends: windows of the last block that were worked on, texts laid end to end.
    """

    texts: int
    blocks: tuple[BlockPlan, ...]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.int64], texts: int, shapes: Sequence[BlockShape]) -> Plan:
        """Return the plan for texts whose trigrams are at ``keys``, texts laid end to end, rising."""
        blocks: list[BlockPlan] = []
        for shape in shapes:
            block, keys = _block(keys, texts, shape)
            blocks.append(block)
        return cls(texts, tuple(blocks), keys)

    @property
    def share(self) -> list[float]:
        """Return the share of each block's windows that is worked on."""
        return [block.windows / max(1, self.texts * block.shape.windows) for block in self.blocks]


def _block(keys: NDArray[np.int64], texts: int, shape: BlockShape) -> tuple[BlockPlan, NDArray[np.int64]]:
    """Return a block's plan, and the keys of the windows that leave it.

    >>> shape = BlockShape(13, 1, 1, kernel=3, pooling=2)  # window w sees the places 2w to 2w + 3; there are five
    >>> block, windows = _block(np.array([1, 6, 12]), 1, shape)  # 12 is left over at the end
    >>> windows.tolist(), block.source.tolist(), block.target.tolist()
    ([0, 2, 3], [0, 1, 1], [1, 8, 6])
    """
    per_text = shape.windows * shape.cells
    text, place = np.divmod(keys, shape.length)
    cell = (place // shape.cell)[:, None] - np.arange(-(-shape.reach // shape.cell))
    offset = place[:, None] - cell * shape.cell
    is_seen = (cell >= 0) & (cell < per_text) & (offset < shape.reach)
    seen = (text[:, None] * per_text + cell)[is_seen]
    is_active = np.zeros(texts * per_text, np.bool_)
    is_active[seen] = True
    active = np.flatnonzero(is_active)
    number = np.empty(texts * per_text, np.int64)  # only those of active cells are written, and read
    number[active] = np.arange(len(active))
    target = number[seen] * shape.reach + offset[is_seen]
    source = np.nonzero(is_seen)[0]
    if shape.cells == 1:
        return BlockPlan(shape, source, target, len(active), None, len(active)), active
    window = active // shape.cells
    is_first = np.diff(window, prepend=-1) > 0
    slots = (np.cumsum(is_first) - 1) * shape.cells + active % shape.cells
    windows = window[is_first]
    return BlockPlan(shape, source, target, len(active), slots, len(windows)), windows


_Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Block:
    """One block, ready to be run.

    Args:
        table: a cell's convolution as one product.  # (R·C_in, S·C_out)
        bias: of each filter.  # (C_out,)
        outside: what enters where nothing was seen.  # (C_in,)
        inside: what the convolution makes of that.  # (C_out,)
    """

    table: _Array
    bias: _Array
    outside: _Array
    inside: _Array

    def run(self, seen: _Array, plan: BlockPlan) -> _Array:
        """Return the windows that were worked on.  # (N, C_out)"""
        shape = plan.shape
        inputs = np.empty((plan.cells * shape.reach, shape.inputs), np.float32)
        inputs[:] = self.outside
        inputs[plan.target] = seen[plan.source]
        found = _largest(inputs.reshape(plan.cells, len(self.table)) @ self.table, shape.cell)
        found += self.bias
        if plan.slots is not None:
            filled = np.empty((plan.windows * shape.cells, shape.outputs), np.float32)
            filled[:] = self.inside
            filled[plan.slots] = found
            found = _largest(filled.reshape(plan.windows, shape.cells * shape.outputs), shape.cells)
        np.maximum(found, 0, out=found)
        return found


class Runtime:
    """A network's sides; any number of threads may use it at once.

    Args:
        parameters: by the names of ``config.shapes()``, float32.
    """

    def __init__(self, config: SiameseConfig, parameters: Mapping[str, _Array]) -> None:
        self._config: Final = config
        self._parameters: Final = parameters
        self._blocks = {side: self._prepared(side) for side in config.sides() or ("",)}

    def encode(self, texts: TrigramTexts, rows: NDArray[np.int64], side: str = SIDES[0]) -> _Array:
        """Return the vector of each text, zero for one without known trigrams.  # (B, D)"""
        config = self._config
        side = "" if config.is_shared else side
        plan = Plan.of(texts.keys(rows, config.vocabulary_size), len(rows), config.blocks())
        seen = texts.counts[texts.entries(rows)][:, None]
        for block, worked_on in zip(self._blocks[side], plan.blocks, strict=True):
            seen = block.run(seen, worked_on)
        last = config.blocks()[-1]
        whole = np.empty((len(rows) * last.windows, last.outputs), np.float32)
        whole[:] = np.maximum(self._blocks[side][-1].inside, 0)
        whole[plan.ends] = seen
        own = prefix(side)
        dense, bias = self._parameters[f"{own}dense"], self._parameters[f"{own}dense_bias"]
        found = whole.reshape(len(rows), dense.shape[1]) @ dense.T + bias
        found[texts.sizes()[rows] == 0] = 0
        return found

    def _prepared(self, side: str) -> list[_Block]:
        found = []
        outside = np.zeros(1, np.float32)
        for number, shape in enumerate(self._config.blocks(), start=1):
            kernel = self._parameters[f"{prefix(side)}kernel_{number}"]
            bias = self._parameters[f"{prefix(side)}bias_{number}"]
            inside = (bias + kernel.sum(axis=2) @ outside).astype(np.float32)
            found.append(_Block(_table(kernel, shape), bias, outside, inside))
            outside = np.maximum(inside, 0)
        return found


def _table(kernel: _Array, shape: BlockShape) -> _Array:
    """Return a cell's convolution as one matrix.  # (R·C_in, S·C_out)

    >>> _table(np.array([[[2.0, 3.0]]], np.float32), BlockShape(9, 1, 1, kernel=2, pooling=2)).tolist()
    [[2.0, 0.0], [3.0, 2.0], [0.0, 3.0]]
    """
    table = np.zeros((shape.reach, shape.inputs, shape.cell, shape.outputs), np.float32)
    for place in range(shape.cell):
        table[place : place + shape.kernel, :, place] = kernel.transpose(2, 1, 0)
    return table.reshape(shape.reach * shape.inputs, shape.cell * shape.outputs)


def _largest(rows: _Array, places: int) -> _Array:
    """Return the largest of each number over the places that a row holds, laid end to end.

    >>> _largest(np.array([[1, 5, 3, 2]], np.float32), 2).tolist()
    [[3.0, 5.0]]
    """
    width = rows.shape[1] // places
    found = rows[:, :width].copy()
    for place in range(1, places):
        np.maximum(found, rows[:, place * width : (place + 1) * width], out=found)
    return found


_PRECISION: Final = "float32"
_AGAIN: Final = "take the files of one model from where they came"
_Item = TypeVar("_Item")


class SiameseModel:
    """A siamese network with its trigrams: made by ``SiameseModel.load`` or, after training, by ``SiameseModel.build``.

    A model does not change, and any number of threads may use it at once. A text without known trigrams has the zero
    vector, which is as near to everything as to nothing: its cosine is 0.

    Args:
        vocabulary: the known trigrams, most frequent first.
        parameters: with names and shapes of ``settings.network.shapes()``, float32.

    Raises:
        SettingError: as many trigrams as the network does not have, or parameters that do not fit or are not finite.
    """

    def __init__(
        self,
        settings: SiameseSettings,
        vocabulary: Vocabulary,
        parameters: Mapping[str, NDArray[np.float32]],
        origin: Manifest,
    ) -> None:
        if len(vocabulary.words) != settings.network.vocabulary_size:
            raise SettingError(
                f"{len(vocabulary.words)} trigrams, but the network has {settings.network.vocabulary_size}", _AGAIN
            )
        found = {name: array.shape for name, array in parameters.items()}
        if found != settings.network.shapes():
            raise SettingError(f"siamese parameters {found}, but expected {settings.network.shapes()}", _AGAIN)
        self.settings: Final = settings
        self.vocabulary: Final = vocabulary
        self.origin: Final = origin
        self._packed = {name: Packed.of(array, _PRECISION) for name, array in parameters.items()}
        self._reader = SiameseReader(settings.text, settings.reads)
        self._runtime = Runtime(settings.network, self.parameters())

    @classmethod
    def build(
        cls,
        settings: SiameseSettings,
        vocabulary: Vocabulary,
        parameters: Mapping[str, NDArray[np.float32]],
        *,
        training_data: str = "",
        dev_scores: Mapping[str, float] | None = None,
    ) -> SiameseModel:
        """Return the model of trained numbers.

        Args:
            parameters: with names and shapes of ``settings.network.shapes()``.
            training_data: SHA-256 of the training data, in hexadecimal, or "" when unknown.
            dev_scores: measure → its value on the development set.

        Raises:
            SettingError: trigrams, shapes or numbers that do not fit.
        """
        return cls(settings, vocabulary, parameters, Manifest.of_origin(training_data, dev_scores))

    @classmethod
    def load(cls, path: Path | str) -> SiameseModel:
        """Return the model in a folder; nothing of it is run, and every file is checked.

        Raises:
            ModelNotFoundError: there is no model at ``path``.
            ModelVersionError: it was written by an incompatible version.
            DamagedModelError: a file is damaged, missing, or does not fit the others.
        """
        stored = read_model(Path(path), SiameseSettings.from_json)
        settings = stored.settings
        with naming(Path(path)):
            packed = packed_of(stored.arrays, settings.network.shapes(), lambda _: _PRECISION)
            try:
                parameters = {name: one.unpacked() for name, one in packed.items()}
                return cls(settings, stored.vocabulary, parameters, stored.manifest)
            except SettingError as error:
                raise DamagedModelError(error.message, error.hint) from error

    def save(self, path: Path | str) -> None:
        """Write the model's folder: whole or not at all. A model that is there is replaced by the complete new one.

        The same model gives the same bytes.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        contents = Contents(self.settings.to_json(), self.vocabulary.to_bytes(), self.parameters())
        write_folder(Path(path), contents, self.origin)

    @property
    def dimensions(self) -> int:
        """Return D, the dimensions of a vector."""
        return self.settings.network.output_size

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        """Return the network's parameters, to go on training from; not to be changed."""
        return {name: packed.unpacked() for name, packed in self._packed.items()}

    def encode(self, questions: Sequence[Question], batch_size: int = 100) -> NDArray[np.float32]:
        """Return one vector of length 1 for each question, zero for one without known trigrams.

        Args:
            batch_size: texts that are worked on at once, ≥ 1; it changes speed and memory, not vectors.

        Returns:
            (N, D) float32, in the order of the questions.
        """
        return self._encoded(questions, self._reader.question, batch_size, SIDES[0])

    def encode_text(self, texts: Sequence[str], batch_size: int = 100) -> NDArray[np.float32]:
        """Return one vector of length 1 for each plain text, read as a question's title is.  # (N, D) float32"""
        return self._encoded(texts, self._reader.text, batch_size, SIDES[0])

    def encode_answers(self, answers: Sequence[Answer], batch_size: int = 100) -> NDArray[np.float32]:
        """Return one vector of length 1 for each answer, through the answer's side.  # (N, D) float32"""
        return self._encoded(answers, self._reader.answer, batch_size, SIDES[1])

    def without_words(self, question: Question, most: int = 100) -> tuple[list[str], NDArray[np.float32]]:
        """Return distinct words that are read of a question, in their order, and its vector without each of them.

        A word is left out with all its repetitions.

        Args:
            most: only so many words are left out, the first, since a text is encoded for each.

        Returns:
            W words, (W, D) float32.
        """
        read = self._reader.question_words(question)
        words = list(dict.fromkeys(read))[:most]
        rest = ([one for one in read if one != word] for word in words)
        return words, self._encoded([*rest], self._reader.trigrams, 100, SIDES[0])

    def _encoded(
        self, items: Sequence[_Item], read: Callable[[_Item], list[str]], batch_size: int, side: str
    ) -> NDArray[np.float32]:
        check_size(batch_size)
        found = np.zeros((len(items), self.dimensions), dtype=np.float32)
        for begin in range(0, len(items), batch_size):
            texts = TrigramTexts.of(map(read, items[begin : begin + batch_size]), self.vocabulary)
            found[begin : begin + batch_size] = self._runtime.encode(texts, np.arange(len(texts)), side)
        return unit_rows(found)

"""A student of a large encoder: texts → vectors in its teacher's space, by a sum of rows and one linear layer.

::

    h = Σ_w row(w) + Σ_(v,w) row(v, w) + Σ_u mean_g row(g)     words w, frequent pairs v w, n-grams g of unknown words u
    v = (W h + b) / |W h + b|

Source: Wieting et al. 2016 (EMNLP), "Charagram"; Bojanowski et al. 2017 (TACL), "Enriching word vectors with subword
information": character n-grams of ``<word>``.
Differs: only unknown words are read by their n-grams, and a word is their mean, not their sum.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.settings import Precision
from askalike.models.encoders.weights import Packed, arrays_of, packed_of
from askalike.models.folder import Contents, Manifest, naming, read_model, write_folder
from askalike.models.text_encoder import TextEncoder
from askalike.models.vocabulary import UNKNOWN, Vocabulary
from askalike.settings import check_settings, read_stored
from askalike.text.tokens import words

LONGEST_CARD: Final = 8000
"""Characters of a model card."""


@dataclass(frozen=True, slots=True)
class StudentSettings:
    """A student, but for the values of its tables.

    Args:
        row_size: d, numbers of a row.
        dimensions: D, those of the teacher's vectors.
        words: V, words with a row of their own.
        pairs: P, pairs of neighbouring words with a row of their own; 0 for none.
        buckets: G, rows that the character n-grams of unknown words share; 0 for none: unknown words are not read.
        word_limit: words of a text that are read, the first ones.
        teacher: the name of the encoder that was learned from.
        card: the model card, Markdown.

    >>> StudentSettings(256, 384, 60_000).shapes()
    {'words': (60000, 256), 'output': (384, 256), 'bias': (384,)}
    """

    row_size: int
    dimensions: int
    words: int
    pairs: int = 0
    buckets: int = 0
    word_limit: int = 160
    precision: Precision = "int8"
    teacher: str = ""
    card: str = ""

    def __post_init__(self) -> None:
        check_settings(self, "student ")
        if max(len(self.teacher), len(self.card)) > LONGEST_CARD:
            raise SettingError(f"a student's teacher or card is longer than {LONGEST_CARD} characters", "shorten it")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every array but the ids of the pairs; an empty table is left out."""
        found = {"words": (self.words, self.row_size), "pairs": (self.pairs, self.row_size)}
        found |= {"buckets": (self.buckets, self.row_size)}
        tables: dict[str, tuple[int, ...]] = {name: shape for name, shape in found.items() if shape[0]}
        return tables | {"output": (self.dimensions, self.row_size), "bias": (self.dimensions,)}

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON can hold them."""
        return {"kind": "student", **asdict(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> StudentSettings:
        """Return the settings that ``to_json`` stored.

        Raises:
            SettingError: a name too many or too few, or a value that cannot be used.
        """
        own = {name: value for name, value in stored.items() if (name, value) != ("kind", "student")}
        return read_stored(cls, own, "settings of a student")


GRAM_SIZES: Final = (3, 4, 5)
LONGEST_WORD: Final = 40
"""Characters of an unknown word that is read; longer ones are addresses, keys and noise."""


def buckets_of(word: str, buckets: int) -> list[int]:
    """Return the bucket of each character n-gram of ``<word>``: CRC-32 of its UTF-8, modulo the number of buckets.

    >>> len(buckets_of("visa", 100))  # <vi vis isa sa> <vis visa isa> <visa visa>
    9
    """
    marked = f"<{word}>"
    grams = (marked[at : at + size] for size in GRAM_SIZES for at in range(len(marked) - size + 1))
    return [zlib.crc32(gram.encode("utf-8", "replace")) % buckets for gram in grams]


class TextRows(NamedTuple):
    """The places of a text's rows.

    Args:
        words: in the table of words, in order.
        pairs: in the table of pairs.
        unknown: for each unknown word the buckets of its n-grams.
    """

    words: list[int]
    pairs: list[int]
    unknown: list[list[int]]

    def __bool__(self) -> bool:
        """Return whether anything of the text is known."""
        return bool(self.words or self.unknown)


class RowReader:
    """Texts → places of rows.

    Args:
        pairs: ids of the two words of each known pair, first word first.  # (P, 2)
        buckets: how many rows n-grams share; 0 leaves unknown words out.
        word_limit: words of a text that are read.

    Raises:
        SettingError: a pair that occurs twice or has a word that is not in the vocabulary.

    >>> reader = RowReader(Vocabulary(["new", "york"]), np.array([[1, 2]]), buckets=0, word_limit=10)
    >>> reader.read("New York, new zealand")
    TextRows(words=[0, 1, 0], pairs=[0], unknown=[])
    """

    def __init__(self, vocabulary: Vocabulary, pairs: NDArray[np.int64], buckets: int, word_limit: int) -> None:
        if pairs.ndim != 2 or pairs.shape[1] != 2 or (len(pairs) and not _fits(pairs, len(vocabulary))):
            raise SettingError(
                f"pairs of words of the shape {pairs.shape}, but expected two ids from 1 to {len(vocabulary) - 1} each",
                "take pairs of known words",
            )
        first, second = pairs.T.tolist()
        self._pairs = {pair: place for place, pair in enumerate(zip(first, second, strict=True))}
        if len(self._pairs) != len(pairs):
            raise SettingError("a pair of words that occurs twice", "take each pair once")
        self._vocabulary = vocabulary
        self._buckets = buckets
        self._word_limit = word_limit

    def words(self, text: str) -> list[str]:
        """Return the words that are read of a text."""
        return words(text)[: self._word_limit]

    def read(self, text: str) -> TextRows:
        """Return the places of a text's rows."""
        return self.rows(self.words(text))

    def rows(self, read: Sequence[str]) -> TextRows:
        """Return the places of the rows of words that were read of a text."""
        ids = self._vocabulary.ids(read)
        known = [number - 1 for number in ids if number != UNKNOWN]
        find = self._pairs.get
        near = pairwise(ids)
        pairs = [place for pair in near if (place := find(pair)) is not None] if self._pairs else []
        unknown = [
            buckets_of(word, self._buckets)
            for word, number in zip(read, ids, strict=True)
            if self._buckets and number == UNKNOWN and len(word) <= LONGEST_WORD
        ]
        return TextRows(known, pairs, unknown)


def _fits(pairs: NDArray[np.int64], ids: int) -> bool:
    return bool(pairs.min() > UNKNOWN and pairs.max() < ids)


Array = NDArray[np.float32]

TABLES: Final = ("words", "pairs", "buckets")
"""The tables whose rows are summed; ``output`` and ``bias`` stay float32."""

_PAIR_IDS: Final = "pair_ids"
_NO_PAIRS: Final = np.zeros((0, 2), dtype=np.int64)
_AGAIN: Final = "take the files of one model from where they came"


class Student:
    """A trained student. It does not change, and any number of threads may use it at once.

    A text of which nothing is known has the zero vector.

    Args:
        vocabulary: the words with rows, most frequent first.
        pair_ids: ids of the two words of each pair.  # (P, 2)
        arrays: with the names and shapes of ``settings.shapes()``.
        teacher: encodes documents where it is given; without it the student does.

    Raises:
        SettingError: sizes that do not fit each other, numbers that are not finite, or another teacher than its own.
    """

    def __init__(
        self,
        settings: StudentSettings,
        vocabulary: Vocabulary,
        pair_ids: NDArray[np.int64],
        arrays: Mapping[str, Packed],
        origin: Manifest,
        teacher: TextEncoder | None = None,
    ) -> None:
        if len(vocabulary.words) != settings.words or len(pair_ids) != settings.pairs:
            raise SettingError(
                f"{len(vocabulary.words)} words and {len(pair_ids)} pairs, but the settings have {settings.words} and "
                f"{settings.pairs}",
                _AGAIN,
            )
        found = {name: packed.values.shape for name, packed in arrays.items()}
        if found != settings.shapes():
            raise SettingError(f"student arrays {found}, but expected {settings.shapes()}", _AGAIN)
        if teacher is not None and (teacher.name, teacher.dimensions) != (settings.teacher, settings.dimensions):
            raise SettingError(
                f"the encoder {teacher.name} with {teacher.dimensions} dimensions is not the teacher of this student, "
                f"{settings.teacher} with {settings.dimensions}",
                "give its own teacher, or train a student of this one",
            )
        self.settings: Final = settings
        self.vocabulary: Final = vocabulary
        self.origin: Final = origin
        self._pair_ids = pair_ids
        self._arrays = dict(arrays)
        self._reader = RowReader(vocabulary, pair_ids, settings.buckets, settings.word_limit)
        self._output = arrays["output"].unpacked()  # (D, d)
        self._bias = arrays["bias"].unpacked()  # (D,)
        self._teacher = teacher

    @classmethod
    def build(
        cls,
        settings: StudentSettings,
        vocabulary: Vocabulary,
        pair_ids: NDArray[np.int64],
        arrays: Mapping[str, NDArray[np.floating]],
        *,
        training_data: str = "",
        dev_scores: Mapping[str, float] | None = None,
    ) -> Student:
        """Return the student of trained numbers, its tables rounded to the settings' precision.

        Raises:
            SettingError: as the class.
        """
        packed = {name: Packed.of(array, _precision(settings, name)) for name, array in arrays.items()}
        return cls(settings, vocabulary, pair_ids, packed, Manifest.of_origin(training_data, dev_scores))

    @classmethod
    def load(cls, path: Path | str, teacher: TextEncoder | None = None) -> Student:
        """Return the student in a folder; nothing of it is run, and every file is checked.

        Raises:
            ModelNotFoundError: there is no model at ``path``.
            ModelVersionError: it was written by an incompatible version.
            DamagedModelError: a file is damaged, missing, or does not fit the others.
            SettingError: ``teacher`` is another than the student's own.
        """
        stored = read_model(Path(path), StudentSettings.from_json)
        settings, arrays = stored.settings, dict(stored.arrays)
        with naming(Path(path)):
            pair_ids = _pair_ids(arrays, settings)
            packed = packed_of(arrays, settings.shapes(), lambda name: _precision(settings, name))
            try:
                alone = cls(settings, stored.vocabulary, pair_ids, packed, stored.manifest)
            except SettingError as error:
                raise DamagedModelError(error.message, error.hint) from error
        if teacher is None:
            return alone
        return cls(settings, stored.vocabulary, pair_ids, packed, stored.manifest, teacher)

    def save(self, path: Path | str) -> None:
        """Write the student's folder: whole or not at all. The same student gives the same bytes.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        arrays = self._stored()
        write_folder(Path(path), Contents(self.settings.to_json(), self.vocabulary.to_bytes(), arrays), self.origin)

    @cached_property
    def name(self) -> str:
        """Return ``student:TEACHER@REVISION``, ``+teacher`` behind it where the teacher encodes documents."""
        digest = hashlib.sha256(repr(self.settings).encode())
        digest.update(self.vocabulary.to_bytes())
        for name, array in sorted(self._stored().items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return f"student:{self.settings.teacher}@{digest.hexdigest()[:12]}" + ("+teacher" if self._teacher else "")

    @property
    def dimensions(self) -> int:
        """Return D, the teacher's."""
        return self.settings.dimensions

    @property
    def pair_ids(self) -> NDArray[np.int64]:
        """Return the ids of the two words of each pair; not to be changed.  # (P, 2)"""
        return self._pair_ids

    def arrays(self) -> dict[str, Array]:
        """Return the tables and the layer, to go on training from; not to be changed."""
        return {name: packed.unpacked() for name, packed in self._arrays.items()}

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries, in their order.  # (N, D) float32"""
        found = [self._reader.read(text) for text in texts]
        sums = np.zeros((len(texts), self.settings.row_size), dtype=np.float32)  # (N, d)
        for place, rows in enumerate(found):
            sums[place] = self._sum(rows)
        vectors = sums @ self._output.T + self._bias  # (N, D)
        vectors[[not rows for rows in found]] = 0
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents, in their order: the teacher's where it was given.  # (N, D) float32"""
        return self.encode_query(texts) if self._teacher is None else self._teacher.encode_document(texts)

    def _sum(self, rows: TextRows) -> Array:
        total = self._arrays["words"].rows(np.array(rows.words, dtype=np.intp)).sum(axis=0)  # (d,)
        if rows.pairs:
            total += self._arrays["pairs"].rows(np.array(rows.pairs, dtype=np.intp)).sum(axis=0)
        for grams in rows.unknown:
            total += self._arrays["buckets"].rows(np.array(grams, dtype=np.intp)).mean(axis=0)
        found: Array = total
        return found

    def _stored(self) -> dict[str, NDArray[np.generic]]:
        return arrays_of(self._arrays) | ({_PAIR_IDS: self._pair_ids} if len(self._pair_ids) else {})


def _precision(settings: StudentSettings, name: str) -> Precision:
    return settings.precision if name in TABLES else "float32"


def _pair_ids(arrays: dict[str, NDArray[np.generic]], settings: StudentSettings) -> NDArray[np.int64]:
    """Take the ids of pairs out of a file's arrays."""
    if not settings.pairs:
        return _NO_PAIRS
    found = arrays.pop(_PAIR_IDS, None)
    if found is None or found.dtype != np.int64 or found.shape != (settings.pairs, 2):
        what = "nothing" if found is None else f"{found.dtype.name} {found.shape}"
        raise DamagedModelError(
            f"weights hold {what} for {_PAIR_IDS}, but expected int64 ({settings.pairs}, 2)", _AGAIN
        )
    return found.astype(np.int64)

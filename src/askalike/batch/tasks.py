"""What one process does of a batch: it reads files of the batch's folder and writes one, whole, under its name. ::

    OUT/
      batch.json             what was put in, and by which model
      model/ encoder.json    the model; neither where it is the package's own
      questions/part-N       a forum's questions; of Parquet files each is a part
      vectors/part-N         id, vector
      texts/part-N           id, hash of the whole text, the text as it is compared; terms/part-N.npy its frequencies
      rows/                  all questions as arrays, by their numbers: what every comparison reads
      compared/part-N        pairs that were found from the questions of one cell
      pairs.parquet          every pair once
      groups.parquet

What is there is done, and is never made again. Which questions are compared with each other::

    a, b share one of the two cells nearest to each, of n / 2000                 all pairs within a cell
    a, b share a word of the RAREST most informative ones of a, in at most MOST_IN_BLOCK questions

The best ``SCORED`` by the weighted sum of cosine and BM25 get a probability by the product's scorer, in the direction
from a to b; of both directions the greater counts, as in a forum (``forum.pairs``).
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from askalike._version import __version__
from askalike.data import default_model
from askalike.errors import AskalikeError, DamagedInputError, EncoderError, MissingExtraError, ModelNotFoundError
from askalike.files import sync_folder, writing_whole
from askalike.forum.calibrations import SAMPLE
from askalike.forum.engine import EncoderWords
from askalike.forum.groups import LEAST
from askalike.forum.linkage import Evidence, Linkage, Node
from askalike.forum.pairs import LEAST_SCORE
from askalike.forum.same_text import hashes_of
from askalike.index.encoder_settings import read_settings
from askalike.index.text_questions import TextQuestions, taken
from askalike.models.encoders.model import Model
from askalike.models.term_weighting import inverse_document_frequency
from askalike.processes import one_blas_thread
from askalike.search.features import IN_BODY, Cosines
from askalike.search.margin import standing
from askalike.search.scorer import Compared, ReadQuery, Scoring, probability
from askalike.search.settings import JoinSettings
from askalike.search.texts import HASH_BYTES, Text, hashed, reader_of, unpacked
from askalike.store.pairs import Pair
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Group, Question, WeakestPair

Kind = Literal["hello", "encode", "read", "join", "compare", "merge", "groups"]
ROWS_TOGETHER: Final = 1_024
IN_CELL: Final = 2_000
"""So many questions have a cell as their nearest, about."""
RAREST: Final = 12
"""So many of a question's most informative words make blocks."""
MOST_IN_BLOCK: Final = 2_000
TOGETHER: Final = 256
TRAINED: Final = 64
"""Vectors for each cell by which the cells are found."""
LEFT: Final = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")
"""What a file that is being written is called."""
K1, B, OF_TITLE = 1.2, 0.75, 0.25
"""BM25, and how much a match in the title counts besides."""


class Order(msgspec.Struct, frozen=True):
    """One task.

    Args:
        folder: of the batch.
        part: its number, or that of a cell.
        source: the file of questions that it reads.
        minimum: of groups.
    """

    kind: Kind
    folder: str
    part: int = 0
    source: str = ""
    minimum: float = 0.0


class Answer(msgspec.Struct, frozen=True):
    """What became of a task.

    Args:
        count: what it wrote.
        message, hint: of the error that ended it; "" where none did.
    """

    count: int = 0
    message: str = ""
    hint: str = ""
    version: str = __version__


class Folder:
    """The names of a batch's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = path / "batch.json"
        self.lock = path / "batch.lock"
        self.model = path / "model"
        self.encoder = path / "encoder.json"
        self.rows = path / "rows"
        self.joined = self.rows / "cells.npy"
        self.pairs = path / "pairs.parquet"
        self.groups = path / "groups.parquet"

    def part(self, kind: str, number: int, suffix: str = "parquet") -> Path:
        """Return the file of a part."""
        return self.path / kind / f"part-{number:05d}.{suffix}"

    def text(self) -> TextSettings:
        """Return how texts are read."""
        return TextSettings.from_json(json.loads(self.manifest.read_bytes())["text"])

    def margin(self) -> float:
        """Return the margin of the forum as a feature; 0 for Parquet files, of which it is not known."""
        return standing(json.loads(self.manifest.read_bytes()).get("margin"))


def answer(request: bytes) -> bytes:
    """Do a task, and return what became of it: what a worker does, on whichever machine."""
    order = msgspec.msgpack.decode(request, type=Order)
    try:
        with one_blas_thread():
            return msgspec.msgpack.encode(Answer(TASKS[order.kind](order)))
    except AskalikeError as error:
        return msgspec.msgpack.encode(Answer(0, error.message, error.hint))
    except OSError as error:
        found = f"{error.filename or order.folder}: {error.strerror or error}"
        return msgspec.msgpack.encode(Answer(0, found, "every worker needs the folder under this very path"))


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write that is at ``path`` at the end, and is not where it was not written whole."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")  # two machines may be at one part
    path.parent.mkdir(exist_ok=True)
    with writing_whole(temporary) as file:
        yield file
    temporary.replace(path)
    sync_folder(path.parent)


def _save(path: Path, array: NDArray[Any]) -> None:
    with whole(path) as file:
        np.save(file, array, allow_pickle=False)


def parquet_of() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            "Parquet files are read and written by pyarrow, which is not installed", "batch"
        ) from error
    return pyarrow, parquet


def questions_in(path: Path, columns: Sequence[str] = ("id", "title", "body", "markup")) -> Iterator[list[Question]]:
    """Yield the questions of a Parquet file, some at a time, with the columns that are there of these.

    Raises:
        DamagedInputError: it cannot be read, or has no such columns; or a value is none that a question has.
    """
    pyarrow, parquet = parquet_of()
    try:
        with parquet.ParquetFile(path) as file:
            held = set(file.schema_arrow.names)
            if not held >= {"id", "title"}:
                missing = ", ".join(sorted({"id", "title"} - held))
                raise DamagedInputError(f"{path} has no column {missing}", "expected id and title, and body and markup")
            for rows in file.iter_batches(ROWS_TOGETHER, columns=[name for name in columns if name in held]):
                yield msgspec.convert(
                    [_named(row) for row in rows.to_pylist()],
                    list[Question],
                    strict=False,
                )
    except (pyarrow.ArrowException, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise DamagedInputError(f"{path} cannot be read as questions: {error}", "write the file again") from error


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a row has; tables often number their questions, and an id is a text."""
    given = {name: value for name, value in row.items() if value is not None}
    return given | {"id": str(given["id"])} if type(given.get("id")) is int else given


# -- one part in, one part out -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Encoder:
    """What makes the vectors; ``model`` where it is one of askalike's own."""

    encode: Callable[[Sequence[Question]], NDArray[np.float32]]
    dimensions: int
    own: Model | None = None
    name: str = "general"

    @property
    def model(self) -> Model:
        """Return the model whose words have vectors."""
        assert self.own is not None
        return self.own


@lru_cache(1)
def encoder_in(folder: str) -> _Encoder:
    """Return the encoder that a batch names.

    Raises:
        ModelError: it cannot be read.
    """
    layout = Folder(Path(folder))
    settings = read_settings(layout.encoder)
    if settings is not None:
        found, now = taken(settings)
        if now.fingerprint != settings.fingerprint:
            raise EncoderError(
                f"{settings.written} is {now.name} on this machine, and the batch is by {settings.name}",
                "put the same model everywhere, or begin a batch in another folder",
            )
        texts = TextQuestions(found, settings)
        return _Encoder(texts.encode, settings.dimensions, None, settings.name)
    is_own = layout.model.is_dir()
    path = layout.model if is_own else default_model()
    if path is None:
        raise ModelNotFoundError("the package carries no model", "name one with --model")
    model = Model.load(path)
    return _Encoder(model.encode, model.dimensions, model, "own" if is_own else "general")


def _encode(order: Order) -> int:
    pyarrow, parquet = parquet_of()
    encoder = encoder_in(order.folder)
    kind = pyarrow.list_(pyarrow.float32(), encoder.dimensions)
    schema = pyarrow.schema([("id", pyarrow.string()), ("vector", kind)])
    written = 0
    with (
        whole(Folder(Path(order.folder)).part("vectors", order.part)) as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for questions in questions_in(Path(order.source)):
            flat = pyarrow.array(encoder.encode(questions).ravel())
            vectors = pyarrow.FixedSizeListArray.from_arrays(flat, encoder.dimensions)
            ids = pyarrow.array([one.id for one in questions], pyarrow.string())
            writer.write_table(pyarrow.table([ids, vectors], schema))
            written += len(questions)
    return written


def _read(order: Order) -> int:
    pyarrow, parquet = parquet_of()
    folder = Folder(Path(order.folder))
    read = reader_of(_analyzer(order.folder)).read
    ids: list[str] = []
    copies: list[bytes | None] = []
    texts: list[bytes] = []
    seen: dict[bytes, int] = {}
    for questions in questions_in(Path(order.source)):
        for one in questions:
            text, _, prepared = read(one.title, one.body, one.markup, is_whole=True)
            ids.append(one.id)
            copies.append(hashes_of(one)[0])
            texts.append(text.packed())
            for term in {*prepared.title, *prepared.body}:
                place = hashed(term)
                seen[place] = seen.get(place, 0) + 1
    counted = np.empty(len(seen), [("term", "<u8"), ("count", "<u4")])
    counted["term"], counted["count"] = _numbers(b"".join(seen)), list(seen.values())
    _save(folder.part("terms", order.part, "npy"), counted)
    columns = {"id": pyarrow.array(ids, pyarrow.string()), "copy": pyarrow.array(copies, pyarrow.binary())}
    with whole(folder.part("texts", order.part)) as file:
        parquet.write_table(pyarrow.table({**columns, "text": pyarrow.array(texts, pyarrow.binary())}), file)
    return len(ids)


@lru_cache(1)
def _analyzer(folder: str) -> Analyzer:
    return Analyzer(Folder(Path(folder)).text())


def _numbers(hashes: bytes) -> NDArray[np.uint64]:
    """Return the hashes of terms as numbers."""
    found = np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES)
    wide = np.zeros((len(found), 8), np.uint8)
    wide[:, :HASH_BYTES] = found
    return wide.view("<u8")[:, 0].astype(np.uint64)


# -- all parts together ------------------------------------------------------------------------------------------------


def _join(order: Order) -> int:
    """Write all questions as arrays: one task, for a pass over the parts."""
    folder = Folder(Path(order.folder))
    parts = range(order.part)
    ids, first = _ids(folder, parts)
    terms, counts = _frequencies(folder, parts)
    _write_texts(folder, parts, len(ids))
    vectors = _write_vectors(folder, parts, ids)
    _save(folder.rows / "first.npy", first)
    _save(folder.rows / "terms.npy", terms)
    _save(folder.rows / "counts.npy", counts)
    _write_blocks(folder, terms, counts, first)
    pyarrow, parquet = parquet_of()
    with whole(folder.rows / "ids.parquet") as file:
        parquet.write_table(pyarrow.table({"id": pyarrow.array(ids, pyarrow.string())}), file)
    _save(folder.joined, _cells(vectors, first))
    return len(ids)


def _column(folder: Folder, kind: str, parts: Sequence[int], name: str) -> Iterator[Any]:
    _, parquet = parquet_of()
    for number in parts:
        yield parquet.read_table(folder.part(kind, number), columns=[name])[name]


def _ids(folder: Folder, parts: Sequence[int]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the ids, and of each question the first one with its text."""
    ids = [one for column in _column(folder, "texts", parts, "id") for one in column.to_pylist()]
    if len(set(ids)) < len(ids):
        [(double, _)] = Counter(ids).most_common(1)
        raise DamagedInputError(f"the id {double[:80]!r} is there twice", "give each question an id of its own")
    first, met = np.arange(len(ids)), dict[bytes, int]()
    place = 0
    for column in _column(folder, "texts", parts, "copy"):
        for one in column.to_pylist():
            if one is not None:
                first[place] = met.setdefault(one, place)
            place += 1
    return ids, first


def _frequencies(folder: Folder, parts: Sequence[int]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    found = np.concatenate([np.load(folder.part("terms", number, "npy")) for number in parts])
    terms, places = np.unique(found["term"], return_inverse=True)
    return terms.astype(np.uint64), np.bincount(places, found["count"], len(terms)).astype(np.uint32)


def _write_texts(folder: Folder, parts: Sequence[int], size: int) -> None:
    offsets, place = np.zeros(size + 1, np.int64), 0
    with whole(folder.rows / "texts.bin") as file:
        for column in _column(folder, "texts", parts, "text"):
            for one in column.to_pylist():
                file.write(one)
                offsets[place + 1] = offsets[place] + len(one)
                place += 1
    _save(folder.rows / "offsets.npy", offsets)


def _write_vectors(folder: Folder, parts: Sequence[int], ids: Sequence[str]) -> NDArray[np.float16]:
    _, parquet = parquet_of()
    rows: list[NDArray[np.float16]] = []
    start = 0
    for number in parts:
        table = parquet.read_table(folder.part("vectors", number))
        here = table["id"].to_pylist()
        if here != list(ids[start : start + len(here)]):
            raise DamagedInputError(f"part {number} has changed since it was encoded", "begin a batch in a new folder")
        start += len(here)
        flat = table["vector"].combine_chunks().flatten().to_numpy()
        rows.append(flat.reshape(len(here), table["vector"].type.list_size).astype(np.float16))
    _save(folder.rows / "vectors.npy", np.concatenate(rows))
    found: NDArray[np.float16] = np.load(folder.rows / "vectors.npy", mmap_mode="r")
    return found


def _write_blocks(
    folder: Folder, terms: NDArray[np.uint64], counts: NDArray[np.uint32], first: NDArray[np.int64]
) -> None:
    """Write for each rare term the questions that have it, with what it counts in each."""
    is_rare = (counts > 1) & (counts <= MOST_IN_BLOCK)
    texts = _Texts(folder)
    owners: list[NDArray[np.int32]] = []
    named: list[NDArray[np.int32]] = []
    values: list[NDArray[np.float32]] = []
    lengths = np.zeros((len(first), 2))
    for num in range(len(first)):
        text = texts.get(num)
        lengths[num] = len(text.title) // HASH_BYTES, len(text.body) // HASH_BYTES
        if first[num] != num:
            continue
        places = np.searchsorted(terms, _numbers(text.title + text.body))
        kept = np.flatnonzero(is_rare[places])
        owners.append(np.full(len(kept), num, np.int32))
        named.append(places[kept].astype(np.int32))
        values.append((kept < lengths[num, 0]).astype(np.float32))
    owner = np.concatenate([np.zeros(0, np.int32), *owners])
    term = np.concatenate([np.zeros(0, np.int32), *named])
    is_titled = np.concatenate([np.zeros(0, np.float32), *values])
    mean_title, mean_text = (
        max(1.0, float(one.sum()) / max(1, len(one))) for one in (lengths[:, 0], lengths.sum(axis=1))
    )
    of_title = (K1 + 1) / (1 + K1 * (1 - B + B * lengths[:, 0] / mean_title))
    of_text = (K1 + 1) / (1 + K1 * (1 - B + B * lengths.sum(axis=1) / mean_text))
    value = of_text[owner] + OF_TITLE * is_titled * of_title[owner]
    order = np.argsort(term, kind="stable")
    _save(folder.rows / "members.npy", owner[order])
    _save(folder.rows / "values.npy", value[order].astype(np.float32))
    _save(folder.rows / "starts.npy", np.concatenate([[0], np.cumsum(np.bincount(term, minlength=len(terms)))]))


def _cells(vectors: NDArray[np.float16], first: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the nearest and the second cell of each question; no second one where it has no vector.  # (n, 2)"""
    size, dimensions = vectors.shape
    count = max(1, round(size / IN_CELL))
    found = np.full((size, 2), -1, np.int32)
    found[:, 0] = np.arange(size) % count  # of one without a vector, any
    chosen = np.random.default_rng(0).permutation(size)[: TRAINED * count]
    sample = vectors[np.sort(chosen)].astype(np.float32)
    if count == 1 or len(sample) < count:
        return found
    import faiss  # here, so that the command line does not load it

    clusters = faiss.Kmeans(dimensions, count, niter=10, seed=0, spherical=True, min_points_per_centroid=1)
    clusters.train(np.ascontiguousarray(sample))
    for start in range(0, size, 1 << 14):
        rows = vectors[start : start + (1 << 14)].astype(np.float32)
        _, near = clusters.index.search(rows, 2)
        said = rows.any(axis=1)
        found[start : start + len(rows)][said] = near[said]
    return found


class _Texts:
    """Questions as they are compared, by their numbers."""

    def __init__(self, folder: Folder) -> None:
        self._offsets = np.load(folder.rows / "offsets.npy")
        has_any = bool(self._offsets[-1])
        self._bytes = np.memmap(folder.rows / "texts.bin", np.uint8, "r") if has_any else np.zeros(0, np.uint8)

    def get(self, num: int) -> Text:
        """Return one.

        Raises:
            DamagedInputError: it is not as it was written.
        """
        found = unpacked(self._bytes[self._offsets[num] : self._offsets[num + 1]].tobytes())
        if found is None:
            raise DamagedInputError("rows/texts.bin is not as it was written", "remove the folder rows")
        return found


class _Rows:
    """All questions of a batch, read where they lie; what every comparison needs."""

    def __init__(self, folder: str) -> None:
        from scipy.sparse import csr_matrix

        def held(name: str) -> Any:
            return np.load(layout.rows / f"{name}.npy", mmap_mode="r")

        layout = Folder(Path(folder))
        self.vectors, self.first, self.cells = held("vectors"), np.array(held("first")), np.array(held("cells"))
        self.size = len(self.first)
        self.terms, self.counts = held("terms"), held("counts")
        self.texts = _Texts(layout)
        shape = (len(self.terms), self.size)
        self.blocks = csr_matrix((held("values"), held("members"), held("starts")), shape=shape)
        self.matrix = csr_matrix
        self.scratch = np.zeros(self.size, np.float32)
        encoder = encoder_in(folder)
        chosen = np.random.default_rng(0).choice(self.size, min(SAMPLE, self.size), replace=False)
        sample = np.array(self.vectors[np.sort(chosen)], np.float32)
        usual = Cosines.among(sample[np.any(sample, axis=1)])
        table = None if encoder.own is None else EncoderWords(encoder)
        self.scoring = Scoring(_analyzer(folder), table, usual, margin=layout.margin())
        self.join = JoinSettings().for_encoder(encoder.name)

    def members(self, cells: Sequence[int]) -> NDArray[np.int64]:
        """Return the first ones of their texts that one of these cells is near to."""
        is_near = np.isin(self.cells, [cell for cell in cells if cell >= 0]).any(axis=1)
        return np.flatnonzero(is_near & (self.first == np.arange(self.size)))

    def near(self, nums: NDArray[np.int64], pool: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the nearest of a pool to each, and their cosines, -1 for itself.  # (N, depth), (N, depth)"""
        found = np.array(self.vectors[nums], np.float32) @ np.array(self.vectors[pool], np.float32).T
        found[nums[:, None] == pool] = -1
        depth = min(self.join.depth, len(pool))
        best = np.argpartition(-found, depth - 1, axis=1)[:, :depth]
        return pool[best], np.take_along_axis(found, best, axis=1)


_rows = lru_cache(1)(_Rows)


def _compare(order: Order) -> int:
    """Write the likely pairs of the questions whose nearest cell this is."""
    rows = _rows(order.folder)
    mine = np.flatnonzero((rows.cells[:, 0] == order.part) & (rows.first == np.arange(rows.size)))
    found: list[tuple[int, int, float, float]] = []
    for second in np.unique(rows.cells[mine, 1]):
        some = mine[rows.cells[mine, 1] == second]
        pool = rows.members((order.part, int(second)))
        for start in range(0, len(some), TOGETHER):
            found += _compared(rows, some[start : start + TOGETHER], pool)
    first, other, score, cosine = (list(one) for one in zip(*found, strict=True)) if found else ([], [], [], [])
    pyarrow, parquet = parquet_of()
    numbers = {"first": pyarrow.array(first, pyarrow.int64()), "second": pyarrow.array(other, pyarrow.int64())}
    values = {"score": pyarrow.array(score, pyarrow.float64()), "cosine": pyarrow.array(cosine, pyarrow.float64())}
    with whole(Folder(Path(order.folder)).part("compared", order.part)) as file:
        parquet.write_table(pyarrow.table({**numbers, **values}), file)
    return len(found)


def _compared(rows: _Rows, nums: NDArray[np.int64], pool: NDArray[np.int64]) -> list[tuple[int, int, float, float]]:
    """Return the pairs of some questions with the likeliest, the lesser number first: score and cosine."""
    nearest, cosines = rows.near(nums, pool)
    texts = {num: rows.texts.get(num) for num in nums.tolist()}
    asked = list(texts.values())
    frequencies = [_frequency(rows, _numbers(text.title + text.body)) for text in asked]
    shared = _words(rows, asked, frequencies) @ rows.blocks
    pairs: list[tuple[int, int, float]] = []
    compared: list[Compared] = []
    for place, num in enumerate(nums.tolist()):
        start, stop = shared.indptr[place], shared.indptr[place + 1]
        here, words = shared.indices[start:stop], shared.data[start:stop]
        vector = np.array(rows.vectors[num], np.float32)
        keys, near = _best(rows, num, (here, words), vector, nearest[place][cosines[place] > 0])
        texts |= {key: rows.texts.get(key) for key in keys.tolist() if key not in texts}
        query = ReadQuery(asked[place], frequencies[place].tolist(), rows.size)
        given = vector if vector.any() else None
        compared.append(Compared(query, None, [texts[key] for key in keys.tolist()], given, near.tolist()))
        pairs += [(num, key, cosine) for key, cosine in zip(keys.tolist(), near.tolist(), strict=True)]
    scores = probability(rows.scoring.logits(compared)).tolist()
    return [
        (min(num, key), max(num, key), score, cosine)
        for (num, key, cosine), score in zip(pairs, scores, strict=True)
        if score >= LEAST_SCORE
    ]


def _frequency(rows: _Rows, terms: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return in how many questions each of these terms is; each is in one at least."""
    return (
        np.asarray(rows.counts[np.searchsorted(rows.terms, terms)], np.int64) if len(terms) else np.zeros(0, np.int64)
    )


def _words(rows: _Rows, asked: Sequence[Text], frequencies: Sequence[NDArray[np.int64]]) -> Any:
    """Return the most informative words of each text, as far as they are rare.  # (N, terms)"""
    starts, places, weights = [0], list[NDArray[np.int64]](), list[NDArray[np.float64]]()
    for text, known in zip(asked, frequencies, strict=True):
        titled = np.arange(len(known)) < len(text.title) // HASH_BYTES
        rarity = np.array([inverse_document_frequency(rows.size, one) for one in known.tolist()])
        weight = np.where(titled, 1.0, IN_BODY) * rarity
        best = np.argsort(-weight, kind="stable")[:RAREST]
        best = best[(known[best] > 1) & (known[best] <= MOST_IN_BLOCK)]
        places.append(np.searchsorted(rows.terms, _numbers(text.title + text.body)[best]))
        weights.append(weight[best])
        starts.append(starts[-1] + len(best))
    shape = (len(asked), len(rows.terms))
    return rows.matrix((np.concatenate(weights).astype(np.float32), np.concatenate(places), starts), shape=shape)


def _best(
    rows: _Rows,
    num: int,
    shared: tuple[NDArray[np.int32], NDArray[np.float32]],
    vector: NDArray[np.float32],
    nearest: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the candidates that are scored, best first by the weighted sum, and their cosines."""
    here, words = shared
    others = here != num
    here, words = here[others], words[others]
    depth = rows.join.depth
    by_words = here[np.argpartition(-words, depth - 1)[:depth]] if len(here) > depth else here
    keys = np.union1d(nearest, by_words).astype(np.int64)
    if not len(keys):
        return keys, np.zeros(0, np.float32)
    rows.scratch[here] = words
    share = rows.scratch[keys] / max(float(words.max(initial=0.0)), 1e-9)
    rows.scratch[here] = 0
    cosines = np.array(rows.vectors[keys], np.float32) @ vector
    weight = rows.join.cosine_weight if vector.any() else 0.0
    joined = weight * cosines + (1 - weight) * share
    order = np.lexsort((keys, -joined))[: rows.join.scored]
    order = order[joined[order] > 0]
    return keys[order], cosines[order]


def _merge(order: Order) -> int:
    """Write every pair once: questions with one text, then by probability."""
    pyarrow, parquet = parquet_of()
    folder = Folder(Path(order.folder))
    first = np.load(folder.rows / "first.npy")
    size = len(first)
    tables = [parquet.read_table(folder.part("compared", number)) for number in range(order.part)]
    one, other, score, cosine = (
        np.concatenate([table[name].to_numpy() for table in tables]) for name in ("first", "second", "score", "cosine")
    )
    best = np.lexsort((-score, one * size + other))
    keys = (one * size + other)[best]
    best = best[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(best) else best
    copies = np.flatnonzero(first != np.arange(size))
    one, other = np.concatenate([first[copies], one[best]]), np.concatenate([copies, other[best]])
    score = np.concatenate([np.ones(len(copies)), score[best]])
    cosine = np.concatenate([np.ones(len(copies)), cosine[best]])
    is_exact = np.arange(len(one)) < len(copies)
    ordered = np.lexsort((other, one, -score, ~is_exact))
    ids = parquet.read_table(folder.rows / "ids.parquet")["id"].combine_chunks()
    columns = {
        "id": ids.take(pyarrow.array(other[ordered])),
        "original_id": ids.take(pyarrow.array(one[ordered])),
        "probability": score[ordered],
        "cosine": cosine[ordered],
        "exact": is_exact[ordered],
        "number": other[ordered],
        "original_number": one[ordered],
    }
    with whole(folder.pairs) as file:
        parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    return len(ordered)


# -- groups ------------------------------------------------------------------------------------------------------------


def linked(pairs: Mapping[str, NDArray[Any]], size: int, minimum: float) -> list[Node]:
    """Return the groups of pairs, the largest first: of each connected part those of complete linkage.

    Nothing joins two connected parts, so that these are the groups of all pairs at once.

    Args:
        pairs: columns of ``pairs.parquet``.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    kept = np.flatnonzero(pairs["probability"] >= LEAST)
    one, other = pairs["original_number"][kept], pairs["number"][kept]
    score, is_exact = pairs["probability"][kept], pairs["exact"][kept]
    _, label = connected_components(
        coo_matrix((np.ones(len(kept), np.int8), (one, other)), (size, size)), directed=False
    )
    order = np.argsort(label[one], kind="stable")
    bounds = np.flatnonzero(np.diff(label[one][order])) + 1
    found: list[Node] = []
    for part in np.split(order, bounds) if len(order) else ():
        texts: dict[int, list[int]] = {}
        for place in part[is_exact[part]].tolist():
            texts.setdefault(int(one[place]), [int(one[place])]).append(int(other[place]))
        likely = [Pair(int(one[it]), int(other[it]), float(score[it])) for it in part[~is_exact[part]].tolist()]
        evidence = Evidence(likely, texts=[sorted(text) for text in texts.values()])
        found += [node for whole in Linkage(evidence, LEAST).nodes for node in whole.cut(minimum)]
    return sorted(found, key=lambda node: (-len(node.nums), node.nums))


def _groups(order: Order) -> int:
    """Write the groups: one task, since the pairs of some millions of questions fit one machine."""
    _, parquet = parquet_of()
    folder = Folder(Path(order.folder))
    table = parquet.read_table(folder.pairs)
    ids = parquet.read_table(folder.rows / "ids.parquet")["id"].to_pylist()
    pairs = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return write_groups(folder, (_group(node, ids) for node in linked(pairs, len(ids), order.minimum)))


def _group(node: Node, ids: Sequence[str]) -> Group:
    members = tuple(ids[num] for num in node.nums)
    if node.weakest is None:
        return Group(members, members[0], None, "same text")
    first, second = node.weakest
    return Group(members, members[0], WeakestPair(ids[first], ids[second], node.height))


def write_groups(folder: Folder, groups: Iterable[Group]) -> int:
    """Write groups, and return how many they are."""
    pyarrow, parquet = parquet_of()
    rows, number = [], 0
    for number, group in enumerate(groups, start=1):
        weakest = group.weakest
        shared = {
            "group": number,
            "kind": group.kind,
            "probability": None if weakest is None else weakest.probability,
            "weakest_id": None if weakest is None else weakest.first,
            "other_weakest_id": None if weakest is None else weakest.second,
        }
        rows += [{**shared, "id": one} for one in group.members]
    texts = [(name, pyarrow.string()) for name in ("kind", "weakest_id", "other_weakest_id", "id")]
    schema = pyarrow.schema([("group", pyarrow.int64()), ("probability", pyarrow.float64()), *texts])
    with whole(folder.groups) as file:
        parquet.write_table(pyarrow.Table.from_pylist(rows, schema), file, compression="zstd")
    return number


def _hello(order: Order) -> int:
    return len(Folder(Path(order.folder)).manifest.read_bytes())


TASKS: Final[Mapping[Kind, Callable[[Order], int]]] = {
    "hello": _hello,
    "encode": _encode,
    "read": _read,
    "join": _join,
    "compare": _compare,
    "merge": _merge,
    "groups": _groups,
}

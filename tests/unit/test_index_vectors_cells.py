"""Very large segments are divided into cells, of which the nearest to a query are read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.errors import DamagedForumError
from askalike.index.checked_file import write_file
from askalike.index.vectors import VectorIndex, cells
from askalike.index.vectors.cells import Cells, divided, read_cells
from askalike.index.vectors.codes import decode, encode
from askalike.index.vectors.nearest import directions

COUNT, D = 6_000, 130
RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((60, D), np.float32)


def clustered(count: int) -> NDArray[np.float32]:
    return CENTRES[RNG.integers(0, len(CENTRES), count)] + 0.7 * RNG.standard_normal((count, D), np.float32)


VECTORS, QUERIES = clustered(COUNT), clustered(20)


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "CELLS", 32)
        patch.setattr(cells, "DIVIDED", 2_000)
        yield


def filled(folder: Path, vectors: NDArray[np.float32]) -> VectorIndex:
    index = VectorIndex.create(folder, vectors.shape[1], applied=1, fingerprint="f")
    put(index, np.arange(len(vectors)), vectors)
    return index


def put(index: VectorIndex, nums: NDArray[np.int64], vectors: NDArray[np.float32], gone: Sequence[int] = ()) -> None:
    with index.writing() as writing:
        if len(nums):
            writing.put(nums, vectors)
        writing.remove(gone)
        writing.commit(replace(index.cursor, is_complete=True))


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    return filled(tmp_path / "vectors", VECTORS)


def has_cells(index: VectorIndex) -> list[bool]:
    return [part.codes is not None and part.codes.has_cells for part in index.snapshot()._now.snapshot.parts]


def recall(index: VectorIndex, limit: int = 10, **filters: Collection[int]) -> float:
    """Return the share of the exact answers that is found, with the same cosines."""
    shared = []
    for one, other in zip(
        index.search_exactly(QUERIES, limit, **filters), index.search(QUERIES, limit, **filters), strict=True
    ):
        assert len(other) == len(one)
        known = dict(one)
        assert all(known.get(num, score) == score for num, score in other)
        shared.append(len(known.keys() & dict(other).keys()) / max(1, len(one)))
    return float(np.mean(shared))


def test_each_vector_is_in_the_cell_of_the_nearest_direction_and_few_are_not_divided() -> None:
    stored = encode(VECTORS)
    assert divided(stored[:2_000]) is None
    one, other = divided(stored), divided(stored)
    assert one is not None
    assert other is not None
    assert (one.of == other.of).all()
    assert (one.of == (decode(stored) @ one.centres.T).argmax(axis=1)).all()


def test_the_nearest_cells_hold_the_nearest_vectors(index: VectorIndex) -> None:
    assert has_cells(index) == [True]
    assert recall(index) > 0.97
    assert recall(index, 100) > 0.97
    assert index.search(QUERIES, 1) == index.search_exactly(QUERIES, 1)


def test_only_the_codes_of_the_nearest_cells_are_read(index: VectorIndex) -> None:
    codes = index.snapshot()._now.snapshot.parts[0].codes
    assert codes is not None
    whole = codes._cells
    assert whole is not None
    aims = directions(QUERIES)
    for count, read in ((100, 8), (3_000, 32)):
        assert whole.probed(count) == read
        _, positions = codes.near(aims, count)
        for aim, found in zip(aims, positions, strict=True):
            far = np.square(whole.centres - aim).sum(axis=1).argsort()[read:]
            assert (found >= 0).all()
            assert not np.isin(whole.of[found], far).any()


def test_where_the_cells_that_are_read_hold_too_few_all_vectors_are_scored(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "ROOM", 0)
    monkeypatch.setattr(cells, "PROBED", 0.01)
    assert index.search(QUERIES, 100) == index.search_exactly(QUERIES, 100)


@pytest.mark.parametrize("step", [1, 2, 5, 50, 3000])
def test_filters_hold_whether_they_leave_much_or_little(index: VectorIndex, step: int) -> None:
    best = [hits[0][0] for hits in index.search_exactly(QUERIES, 1)]
    allowed = range(0, COUNT, step)
    assert recall(index, allowed=allowed, excluded=best) > 0.97
    found = {num for hits in index.search(QUERIES, 10, allowed, best) for num, _ in hits}
    assert found <= set(allowed) - set(best)


def test_more_hits_than_the_cells_that_are_read_hold_are_all_given(index: VectorIndex) -> None:
    assert all(len(hits) == COUNT for hits in index.search(QUERIES[:2], 10_000))
    assert all(len(hits) == 2_000 for hits in index.search(QUERIES[:2], 2_000))
    assert index.search(np.zeros((1, D)), 3) == [[]]


def test_a_filter_that_leaves_only_what_is_far_away_is_answered(tmp_path: Path) -> None:
    index = filled(tmp_path / "far", np.concatenate([VECTORS, -CENTRES[RNG.integers(0, 60, 9_000)]]))
    allowed = [num for num, cosine in index.search_exactly(QUERIES[:1], 15_000)[0] if cosine < 0]
    assert index.search(QUERIES[:1], 10, allowed) == index.search_exactly(QUERIES[:1], 10, allowed)


def test_what_is_added_and_removed_is_seen_at_once(index: VectorIndex) -> None:
    nearest, second = [num for num, _ in index.search_exactly(QUERIES[:1], 2)[0]]
    put(index, np.array([9_000]), QUERIES[:1], gone=[nearest])
    assert has_cells(index) == [True, False]
    assert [num for num, _ in index.search(QUERIES[:1], 2)[0]] == [9_000, second]
    assert recall(index) > 0.97


def test_damaged_cells_are_refused_before_faiss_sees_them(index: VectorIndex, tmp_path: Path) -> None:
    [path] = index.folder.glob("*.codes")
    content = bytearray(path.read_bytes())
    content[64 + 8 + 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedForumError, match=f"{path.name} does not hold what was written"):
        VectorIndex(index.folder)
    VectorIndex.renew_codes(index.folder)
    assert has_cells(VectorIndex(index.folder)) == [True]


def test_cells_of_other_vectors_or_none_that_were_written_are_refused(index: VectorIndex) -> None:
    mark = index.folder / "mark.json"
    held = json.loads(mark.read_text(encoding="utf-8"))
    [path] = index.folder.glob("*.codes")
    part = index.snapshot()._now.snapshot.parts[0]
    assert part.codes is not None
    whole = part.codes._cells
    assert whole is not None
    payload = np.array(part.codes._stored.payload)
    far = whole.of.copy()
    far[7] = 32
    endless = whole.centres.copy()
    endless[3, 3] = np.nan
    wrong = [
        (Cells(whole.centres, whole.of[:-1]), "does not have the size of the cells of 6,000 vectors"),
        (Cells(whole.centres, far), "holds cells that nobody wrote"),
        (Cells(endless, whole.of), "holds cells that nobody wrote"),
    ]
    for one, message in wrong:
        path.unlink()
        entry = write_file(path, "codes", D, COUNT, one.front(), [payload])
        held["segments"][0]["codes"] = {"name": entry.name, "rows": entry.rows, "digest": entry.digest}
        mark.write_text(json.dumps(held), encoding="utf-8")
        with pytest.raises(DamagedForumError, match=message):
            VectorIndex(index.folder)
    shutil.rmtree(index.folder)


def test_cells_are_read_as_they_were_written() -> None:
    whole = Cells(np.eye(3, 2, dtype=np.float32), np.array([2, 0, 1, 1], np.uint16))
    front = b"".join(array.tobytes() for array in whole.front())
    found = read_cells(front, 4, 2)
    assert found is not None
    assert (found.centres == whole.centres).all()
    assert found.of.tolist() == [2, 0, 1, 1]
    assert read_cells(b"", 4, 2) is None
    for damaged in (front[:-1], b"\0" * 8, b"\xff" * 8 + front[8:]):
        with pytest.raises(ValueError, match="cells of 4 vectors"):
            read_cells(damaged, 4, 2)

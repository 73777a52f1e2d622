"""Large segments are read through codes of four bits, which propose; the vectors themselves decide."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.errors import DamagedForumError
from askalike.index import product_codes as scan
from askalike.index.checked_file import write_file
from askalike.index.nearest import FEW, UNCODED
from askalike.index.product_codes import Codes
from askalike.index.vectors import VectorIndex

COUNT, D = 6_000, 130
RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((60, D), np.float32)


def clustered(count: int, random: np.random.Generator = RNG) -> NDArray[np.float32]:
    return CENTRES[random.integers(0, len(CENTRES), count)] + 0.7 * random.standard_normal((count, D), np.float32)


VECTORS, QUERIES = clustered(COUNT), clustered(100)


def filled(folder: Path, vectors: NDArray[np.float32], nums: Sequence[int] | None = None) -> VectorIndex:
    index = VectorIndex.create(folder, vectors.shape[1], applied=1, fingerprint="f")
    put(index, range(len(vectors)) if nums is None else nums, vectors)
    return index


def put(index: VectorIndex, nums: Sequence[int] = (), vectors: Any = (), gone: Sequence[int] = ()) -> None:
    with index.writing() as writer:
        if len(nums):
            writer.put(nums, vectors)
        writer.remove(gone)
        writer.commit(replace(index.cursor, is_complete=True))


@pytest.fixture(scope="module", params=["without cells", "with cells"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An index of one large segment; what makes cells in a very large one makes them here."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "with cells":
            patch.setattr(scan, "CELLS", 32)
            patch.setattr(scan, "DIVIDED", 2_000)
        yield filled(tmp_path_factory.mktemp("made") / "vectors", VECTORS).folder


def codes(index: VectorIndex) -> list[Codes]:
    return [part.codes for part in index.snapshot()._now.parts if part.codes is not None]


def has_cells(index: VectorIndex) -> bool:
    return b"IwPf" in files(index, "codes")[0].read_bytes()[:256]


@pytest.fixture
def index(built: Path, tmp_path: Path) -> VectorIndex:
    shutil.copytree(built, tmp_path / "vectors")
    return VectorIndex(tmp_path / "vectors")


def recall(index: VectorIndex, limit: int = 10, **filters: Collection[int]) -> float:
    """Return the share of the exact answers that is found, with the same cosines."""
    shared = []
    for exact, other in zip(
        index.search_exactly(QUERIES, limit, **filters), index.search(QUERIES, limit, **filters), strict=True
    ):
        assert len(other) == len(exact)
        assert other == sorted(other, key=lambda hit: (-hit[1], hit[0]))
        known = dict(exact)
        assert all(known.get(num, score) == score for num, score in other)
        shared.append(len(known.keys() & dict(other).keys()) / max(1, len(exact)))
    return float(np.mean(shared))


def files(index: VectorIndex, kind: str) -> list[Path]:
    return sorted(index.folder.glob(f"*.{kind}"))


def test_the_best_by_their_codes_hold_the_best_by_their_vectors(index: VectorIndex) -> None:
    assert len(files(index, "codes")) == 1
    assert recall(index) > 0.97
    assert recall(index, 100) > 0.97


@pytest.mark.parametrize("dimensions", [1, 3, 8, 65, 257, 1500])
def test_vectors_of_any_length_without_any_structure_are_found(tmp_path: Path, dimensions: int) -> None:
    random = np.random.default_rng(dimensions)
    vectors = random.standard_normal((4_500, dimensions), np.float32)
    index = filled(tmp_path / "vectors", vectors)
    assert len(files(index, "codes")) == 1
    queries = random.standard_normal((10, dimensions), np.float32)
    for exact, other in zip(index.search_exactly(queries, 5), index.search(queries, 5), strict=True):
        assert [score for _, score in other] == pytest.approx([score for _, score in exact], abs=0.05)
    assert index.search(vectors[:3], 1) == index.search_exactly(vectors[:3], 1)


@pytest.mark.parametrize("step", [1, 5, 3000])
def test_filters_hold_whether_they_leave_much_or_little(index: VectorIndex, step: int) -> None:
    best = [hits[0][0] for hits in index.search_exactly(QUERIES, 1)]
    allowed = range(0, COUNT, step)
    assert recall(index, allowed=allowed, excluded=best) > 0.97
    nums = {num for hits in index.search(QUERIES, 10, allowed, best) for num, _ in hits}
    assert nums <= set(allowed) - set(best)


def test_a_filter_that_leaves_only_what_is_far_away_is_answered(tmp_path: Path) -> None:
    opposite = -CENTRES[np.random.default_rng(2).integers(0, len(CENTRES), 9_000)]
    index = filled(tmp_path / "vectors", np.concatenate([VECTORS, opposite]))
    [far] = index.search_exactly(-QUERIES[:1], 9_500)
    allowed = [num for num, cosine in index.search_exactly(QUERIES[:1], 15_000)[0] if cosine < 0]
    assert len(allowed) > FEW
    assert far
    assert index.search(QUERIES[:1], 10, allowed) == index.search_exactly(QUERIES[:1], 10, allowed)


def test_more_hits_than_entries_gives_them_all_and_zeros_find_nothing(index: VectorIndex) -> None:
    assert all(len(hits) == COUNT for hits in index.search(QUERIES[:2], 10_000))
    assert index.search(np.zeros((1, D)), 3) == [[]]
    assert index.search(np.zeros((0, D)), 3) == []


def test_what_changes_is_seen_at_once_and_the_codes_stay(index: VectorIndex) -> None:
    before = files(index, "codes")
    query = QUERIES[:1]
    nearest, second, third = [num for num, _ in index.search_exactly(query, 3)[0]]
    put(index, [9_000, second], np.concatenate([query, -query]), gone=[nearest])
    nums = [num for num, _ in index.search(query, 10)[0]]
    assert nums[:2] == [9_000, third]
    assert not {nearest, second} & set(nums)
    assert index.search(query, 1, excluded=[9_000])[0][0][0] == third
    assert files(index, "codes") == before
    assert VectorIndex(index.folder).search(query, 10) == index.search(query, 10)
    assert recall(index) > 0.97


def test_many_additions_are_folded_in_and_dead_rows_do_not_pile_up(index: VectorIndex) -> None:
    with index.writing() as writer:
        for start in range(COUNT, 2 * COUNT, 500):
            writer.put(np.arange(start, start + 500), clustered(500))
            writer.remove(range(start - COUNT, start - COUNT + 250))
            writer.commit(index.cursor)
    assert index.entries == 1.5 * COUNT
    assert sum(path.stat().st_size for path in files(index, "codes")) < 2 * COUNT * 40
    assert recall(index) > 0.97
    index.check()


def test_vectors_of_zeros_are_kept_and_never_found(tmp_path: Path) -> None:
    vectors = VECTORS.copy()
    vectors[::4] = 0
    index = filled(tmp_path / "vectors", vectors)
    assert index.entries == COUNT
    assert not any(num % 4 == 0 for hits in index.search(QUERIES, 500) for num, _ in hits)
    assert recall(index) > 0.99
    nothing = filled(tmp_path / "nothing", np.zeros((UNCODED + 1, 8), np.float32))
    assert nothing.search(np.ones((1, 8)), 3) == [[]]
    assert files(nothing, "codes") == []


def test_the_same_vectors_give_the_same_files_and_answers(index: VectorIndex, tmp_path: Path) -> None:
    again = filled(tmp_path / "again", VECTORS)
    if not has_cells(index):
        [path], [other] = files(index, "codes"), files(again, "codes")
        assert other.read_bytes() == path.read_bytes()
    assert again.search(QUERIES, 50) == index.search(QUERIES, 50)
    assert [again.search(query[None], 50)[0] for query in QUERIES] == index.search(QUERIES, 50)


def test_centroids_are_learned_anew_when_a_segment_has_outgrown_them(index: VectorIndex) -> None:
    random = np.random.default_rng(1)
    moved = clustered(4 * COUNT, random) + 3 * random.standard_normal(D, np.float32)
    put(index, range(COUNT, 3 * COUNT), moved[: 2 * COUNT])
    assert [part.trained_at for part in codes(index)] == [COUNT]
    put(index, range(3 * COUNT, 5 * COUNT), moved[2 * COUNT :])
    assert [part.trained_at for part in codes(index)] == [5 * COUNT]
    assert recall(index) > 0.97


def test_no_codes_are_made_while_an_index_is_filled(tmp_path: Path) -> None:
    index = VectorIndex.create(tmp_path / "vectors", D, applied=1, fingerprint="f")
    with index.writing() as writer:
        writer.put(range(COUNT), VECTORS)
        writer.commit(replace(index.cursor, scanned=COUNT))
    assert files(index, "codes") == []
    assert index.search(QUERIES, 10) == index.search_exactly(QUERIES, 10)
    put(index)
    assert len(files(index, "codes")) == 1


def test_small_indexes_never_load_faiss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    index = filled(tmp_path / "vectors", VECTORS[:UNCODED])
    assert index.search(QUERIES, 10) == index.search_exactly(QUERIES, 10)


def test_a_reader_that_opened_before_codes_were_replaced_goes_on(index: VectorIndex) -> None:
    reader = VectorIndex(index.folder)
    expected = VectorIndex(index.folder).search(QUERIES, 10)
    put(index, range(COUNT, 3 * COUNT), clustered(2 * COUNT))
    assert not set(files(reader, "codes")) <= {reader.folder}
    assert reader.search(QUERIES, 10) == expected
    reader.refresh()
    assert reader.entries == 3 * COUNT


# -- cells ----------------------------------------------------------------------------------------------------------


def test_where_the_cells_that_are_read_hold_too_few_all_vectors_are_scored(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_cells(index):
        pytest.skip("it has no cells")
    monkeypatch.setattr(scan, "ROOM", 0)
    monkeypatch.setattr(scan, "PROBED", 0.01)
    assert index.search(QUERIES, 100) == index.search_exactly(QUERIES, 100)


# -- damage --------------------------------------------------------------------------------------------------------


def test_damaged_codes_are_refused_before_faiss_sees_them(index: VectorIndex) -> None:
    [path] = files(index, "codes")
    content = path.read_bytes()
    for position in (64, -5, len(content) // 2):
        changed = bytearray(content)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(DamagedForumError, match=f"{path.name} does not hold what was written"):
            VectorIndex(index.folder).search(QUERIES, 1)
        with pytest.raises(DamagedForumError, match=f"{path.name} does not hold what was written"):
            VectorIndex(index.folder).check()
    for changed, message in ((content[:-1], "bytes, expected"), (b"", "cut off"), (b"PK\3\4" * 500, "not a codes")):
        path.write_bytes(changed)
        with pytest.raises(DamagedForumError, match=message):
            VectorIndex(index.folder)
    path.unlink()
    with pytest.raises(DamagedForumError, match=f"{path.name} is not there"):
        VectorIndex(index.folder)


def test_codes_of_other_rows_are_refused(index: VectorIndex, tmp_path: Path) -> None:
    other = filled(tmp_path / "other", VECTORS[:5_000])
    foreign = json.loads((other.folder / "mark.json").read_text(encoding="utf-8"))["segments"][0]["codes"]
    shutil.copy(other.folder / foreign["name"], index.folder)
    name_codes(index, foreign)
    with pytest.raises(DamagedForumError, match="codes of 6000 vectors"):
        VectorIndex(index.folder)


def name_codes(index: VectorIndex, entry: dict[str, Any]) -> None:
    """Let the manifest name a file of codes."""
    path = index.folder / "mark.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["segments"][0]["codes"] = entry
    path.write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nothing", "does not hold the codes of 6000 vectors"),
        ("another kind of index", "does not hold the codes of 6000 vectors"),
        ("other rows", "does not hold the codes of 6000 vectors"),
        ("positions that are none", "holds positions outside"),
    ],
)
def test_a_file_whose_sum_was_made_to_fit_does_no_harm(index: VectorIndex, kind: str, message: str) -> None:
    import faiss

    padded = np.pad(VECTORS, ((0, 0), (0, 2)))
    written: Any
    if kind == "another kind of index":
        written = faiss.IndexFlatL2(132)
        written.add(padded)
    else:
        written = faiss.IndexIVFPQFastScan(faiss.IndexFlatL2(132), 132, 4, 33, 4)
        written.train(padded)
        rows = 5_000 if kind == "other rows" else COUNT
        written.add_with_ids(padded[:rows], np.arange(rows) + 10**9)
    content = np.zeros(100, np.uint8) if kind == "nothing" else faiss.serialize_index(written)
    entry = write_file(index.folder / "00000009-00000000.codes", "codes", D, COUNT, [np.array([COUNT])], [content])
    name_codes(index, {"name": entry.name, "rows": entry.rows, "digest": entry.digest})
    with pytest.raises(DamagedForumError, match=message):
        VectorIndex(index.folder).search(QUERIES, 3)


def test_damaged_codes_are_made_anew_from_sound_vectors(index: VectorIndex) -> None:
    files(index, "codes")[0].write_bytes(b"?")
    VectorIndex.renew_codes(index.folder)
    assert recall(VectorIndex(index.folder)) > 0.97
    files(index, "segment")[0].write_bytes(b"?")
    before = (index.folder / "mark.json").read_bytes()
    with pytest.raises(DamagedForumError):
        VectorIndex.renew_codes(index.folder)
    assert (index.folder / "mark.json").read_bytes() == before

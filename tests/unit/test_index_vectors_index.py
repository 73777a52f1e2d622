"""The vector index: what is put is found by its direction, what is removed is gone, the cursor says how far it came."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askalike.errors import BusyForumError, DamagedForumError, SettingError
from askalike.index.nearest import shortlist
from askalike.index.segments import segments_to_merge
from askalike.index.vector_codes import decode, encode
from askalike.index.vectors import VectorIndex

EAST, NORTH, NORTH_EAST = [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    index = VectorIndex.create(tmp_path / "vectors", 2, applied=7, fingerprint="f")
    put(index, [1, 2, 3], [EAST, NORTH, NORTH_EAST])
    return index


def put(index: VectorIndex, nums: Sequence[int], vectors: Sequence[Sequence[float]]) -> None:
    with index.writing() as writer:
        writer.put(nums, vectors)
        writer.commit(replace(index.cursor, is_complete=True))


def remove(index: VectorIndex, nums: Sequence[int]) -> None:
    with index.writing() as writer:
        writer.remove(nums)
        writer.commit(index.cursor)


def found(index: VectorIndex, query: Sequence[float], limit: int = 10, **filters: Sequence[int]) -> list[int]:
    return [num for num, _ in index.search([query], limit, **filters)[0]]


def test_the_cosines_of_some_numbers_are_those_of_a_search(index: VectorIndex) -> None:
    put(index, [4, 5], [[0.3, -0.7], [0.0, 0.0]])
    remove(index, [2])
    [hits] = index.search([[0.6, 0.8]], 10, allowed=[1, 2, 4, 5, 99])
    assert index.cosines([0.6, 0.8], [99, 4, 2, 5, 1, 1]) == hits
    assert [num for num, _ in hits] == [1, 4]
    assert index.cosines([0.0, 0.0], [1]) == []


def test_a_vectors_length_does_not_matter(index: VectorIndex) -> None:
    put(index, [4, 5], [[3e-40, 4e-40], [3e30, 4e30]])
    [hits] = index.search([[0.6, 0.8]], 2)
    assert [num for num, _ in hits] == [4, 5]
    assert hits[0][1] == hits[1][1] == pytest.approx(1.0, abs=1e-9)


def test_allowed_and_excluded_numbers_are_heeded(index: VectorIndex) -> None:
    assert found(index, EAST, allowed=[2, 3, 99]) == [3, 2]
    assert found(index, EAST, allowed=[2]) == [2]
    assert found(index, EAST, allowed=[]) == []
    assert found(index, EAST, excluded=[1, 99]) == [3, 2]
    assert found(index, EAST, allowed=[1, 2], excluded=[1]) == [2]
    assert [num for num, _ in index.search([EAST], 5, allowed={1, 3}, excluded={3})[0]] == [1]
    assert [num for num, _ in index.search([EAST], 5, allowed=np.array([3, 2]))[0]] == [3, 2]


def test_an_index_whose_entries_were_all_removed_is_empty(index: VectorIndex) -> None:
    remove(index, [1, 2, 3])
    again = VectorIndex(index.folder)
    assert (again.entries, again.search([EAST], 3)) == (0, [[]])
    assert list(index.folder.glob("*.segment")) == []


def test_vectors_are_read_back_at_length_one_in_the_order_asked(index: VectorIndex) -> None:
    nums, vectors = index.vectors([3, 42, 2])
    assert nums.tolist() == [3, 2]
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [[math.sqrt(0.5)] * 2, [0.0, 1.0]], atol=1e-7)


def test_the_mark_moves_with_the_commit_and_other_readers_see_it(index: VectorIndex) -> None:
    other = VectorIndex(index.folder)
    with index.writing() as writer:
        writer.put([4], [EAST])
        writer.commit(replace(index.cursor, applied=9, is_complete=True))
        other.refresh()
        assert (other.cursor.applied, other.cursor.is_complete, other.entries) == (9, True, 4)
        assert index.cursor.applied == 7
    assert (index.cursor.applied, index.entries) == (9, 4)


def test_a_complete_index_goes_on_answering_while_it_is_built_anew(index: VectorIndex) -> None:
    with index.writing() as writer:
        writer.commit(replace(index.cursor, is_complete=True))
    reader = VectorIndex(index.folder)
    anew = VectorIndex.create(index.folder, 3, applied=8, fingerprint="g")
    reader.refresh()
    assert (found(reader, EAST), reader.cursor.fingerprint) == ([1, 3, 2], "f")
    with anew.writing() as writer:
        writer.put([7], [[0, 0, 1]])
        writer.commit(replace(anew.cursor, is_complete=True))
    reader.refresh()
    assert (reader.dimensions, reader.numbers().tolist(), reader.cursor.fingerprint) == (3, [7], "g")


def test_its_writer_takes_an_incomplete_index_by_reopening(index: VectorIndex) -> None:
    VectorIndex.create(index.folder, 2, applied=8, fingerprint="g")
    index.reopen()
    assert (index.entries, index.cursor.applied) == (0, 8)


def test_there_is_one_writer_at_a_time(index: VectorIndex) -> None:
    other = VectorIndex(index.folder)
    with index.writing():
        with pytest.raises(BusyForumError, match="another process"), other.writing():
            pass
        with pytest.raises(BusyForumError, match="another process"):
            VectorIndex.create(index.folder, 2, applied=0, fingerprint="f")
    with other.writing():
        pass


def test_files_that_no_mark_names_are_cleared_by_the_next_writer(index: VectorIndex) -> None:
    orphaned_files = [
        index.folder / name for name in ("00000009-0123abcd.segment", "00000009-0123abcd.dead", "mark.json.1.tmp")
    ]
    for path in orphaned_files:
        path.write_bytes(b"half")
    foreign = index.folder / "notes.txt"
    foreign.write_text("mine", encoding="utf-8")
    assert VectorIndex(index.folder).entries == 3
    with index.writing():
        assert not any(path.exists() for path in orphaned_files)
    assert foreign.exists()


def test_segments_stay_few_and_dead_rows_do_not_pile_up(tmp_path: Path) -> None:
    index = VectorIndex.create(tmp_path / "vectors", 2, applied=0, fingerprint="f")
    rng = np.random.default_rng(0)
    with index.writing() as writer:
        for round_ in range(40):
            writer.put(np.arange(100), rng.standard_normal((100, 2)))
            writer.put([1000 + round_], [EAST])
            writer.commit(replace(index.cursor, is_complete=True))
    assert index.entries == 140
    rows = (
        sum(int(path.stat().st_size) for path in index.folder.glob("*.segment")) // 18
    )  # bytes a row of two dimensions
    assert rows < 2 * 140 + 10
    assert len(list(index.folder.glob("*.segment"))) <= 3


def test_a_few_deaths_in_a_large_segment_leave_it_as_it_is(tmp_path: Path) -> None:
    index = VectorIndex.create(tmp_path / "vectors", 2, applied=0, fingerprint="f")
    put(index, range(4000), np.random.default_rng(0).standard_normal((4000, 2)).tolist())
    before = list(index.folder.glob("*.segment"))
    for num in (5, 3999):
        remove(index, [num])
    assert list(index.folder.glob("*.segment")) == before
    assert len(list(index.folder.glob("*.dead"))) == 1
    again = VectorIndex(index.folder)
    assert again.entries == 3998
    assert again.vectors([4, 5, 3999])[0].tolist() == [4]


@pytest.mark.parametrize(
    ("nums", "vectors", "message"),
    [
        ([1], [[1.0, 2.0, 3.0]], "expected .number, 2."),
        ([1], [1.0, 2.0], "expected .number, 2."),
        ([1, 2], [[1.0, 2.0]], "2 numbers but 1 vectors"),
        ([1, 1], [EAST, EAST], "twice"),
        ([1, 2], [EAST, [math.nan, 0.0]], "vector 1 holds NaN"),
        ([1], [[math.inf, 0.0]], "vector 0 holds NaN or infinity"),
        ([1], [["a", "b"]], "expected numbers"),
        ([1.5], [EAST], "whole numbers"),
    ],
)
def test_vectors_that_cannot_be_kept_are_refused(
    index: VectorIndex, nums: list[int], vectors: list[list[float]], message: str
) -> None:
    with index.writing() as writer, pytest.raises(SettingError, match=message):
        writer.put(nums, vectors)


def test_queries_that_mean_nothing_are_refused(index: VectorIndex) -> None:
    for query, limit, message in (
        ([[math.nan, 1.0]], 1, "query 0 holds NaN"),
        ([[1.0]], 1, "expected .number, 2."),
        ([EAST], 0, "limit 0"),
    ):
        with pytest.raises(SettingError, match=message):
            index.search(query, limit)
    with pytest.raises(SettingError, match="0 dimensions"):
        VectorIndex.create(index.folder, 0, applied=0, fingerprint="f")


def test_an_index_that_has_gone_is_named(index: VectorIndex) -> None:
    (index.folder / "mark.json").unlink()
    assert not VectorIndex.exists(index.folder)
    index.refresh()
    assert found(index, EAST) == [1, 3, 2]
    with pytest.raises(DamagedForumError, match=r"mark\.json is not there"):
        index.reopen()


def test_threads_search_while_another_writes(index: VectorIndex) -> None:
    stop, faults = threading.Event(), []

    def read() -> None:
        reader = VectorIndex(index.folder)
        while not stop.is_set():
            reader.refresh()
            nums = found(reader, EAST, 200)
            if nums[:1] != [1] or len(nums) != len(set(nums)) or not {1, 2, 3} <= set(nums):
                faults.append(nums)

    def share() -> None:
        while not stop.is_set():
            index.refresh()
            if found(index, EAST, 200)[:1] != [1]:
                faults.append([])

    threads = [threading.Thread(target=target) for target in (read, read, share)]
    for thread in threads:
        thread.start()
    with index.writing() as writer:
        for num in range(10, 60):
            writer.put([num], [[-1.0, float(num)]])
            writer.remove([num - 3] if num % 2 and num > 13 else [])
            writer.commit(index.cursor)
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []


def test_a_hundred_additions_of_a_thousand_leave_few_segments_and_little_writing() -> None:
    sizes: list[int] = []
    written = 0
    for _ in range(100):
        chosen = segments_to_merge([(size, 0) for size in sizes], arriving=1000, small=512)
        merged = 1000 + sum(sizes[position] for position in chosen)
        sizes = [size for position, size in enumerate(sizes) if position not in chosen] + [merged]
        written += merged
    assert sum(sizes) == 100_000
    assert len(sizes) <= 8
    assert written <= 100_000 * 8


def test_codes_keep_the_direction_to_a_part_in_ten_thousand_and_better() -> None:
    vectors = np.random.default_rng(0).standard_normal((200, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(decode(encode(vectors)) - vectors).max() < 4e-6
    np.testing.assert_array_equal(encode(decode(encode(vectors))), encode(vectors))


def test_a_shortlist_over_groups_misses_nothing() -> None:
    scores = np.random.default_rng(2).standard_normal(10_007).astype(np.float32)
    scores[5_000:] = -np.inf
    for limit in (1, 10, 39, 200):
        chosen = shortlist(scores, limit, 0.0)
        assert set(np.argsort(-scores)[:limit]) <= set(chosen)
        assert len(chosen) <= 4 * limit
    assert len(shortlist(scores, 9_000, 0.0)) == 5_000
    assert shortlist(np.array([0.1, 0.5, 0.4999, 0.3, 0.9], np.float32), 2, 0.001).tolist() == [1, 2, 4]

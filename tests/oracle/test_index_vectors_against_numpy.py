"""Exact search against a plain product of float32 matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.index.vectors import VectorIndex


def plain(vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> NDArray[np.float32]:
    unit = [array / np.maximum(np.linalg.norm(array, axis=1, keepdims=True), 1e-30) for array in (queries, vectors)]
    product: NDArray[np.float32] = unit[0] @ unit[1].T
    return product


def filled(folder: Path, nums: NDArray[np.int64], vectors: NDArray[np.float32], parts: int) -> VectorIndex:
    index = VectorIndex.create(folder, vectors.shape[1], applied=1, fingerprint="f")
    with index.writing() as writer:
        for part in np.array_split(np.arange(len(nums)), parts):
            writer.put(nums[part], vectors[part])
            writer.commit(index.cursor)
    return index


@pytest.mark.parametrize(("count", "dimensions", "parts"), [(3000, 64, 1), (5000, 33, 3), (700, 384, 7), (9, 2, 2)])
def test_the_same_entries_with_the_same_cosines(tmp_path: Path, count: int, dimensions: int, parts: int) -> None:
    rng = np.random.default_rng(count)
    centres = rng.standard_normal((10, dimensions), np.float32)
    vectors = centres[rng.integers(0, 10, count)] + 0.5 * rng.standard_normal((count, dimensions), np.float32)
    queries = rng.standard_normal((20, dimensions), np.float32)
    nums = rng.permutation(10 * count)[:count]
    index = filled(tmp_path / "vectors", nums, vectors, parts)
    expected = plain(vectors, queries)
    for row, hits in zip(expected, index.search(queries, 10), strict=True):
        scores = dict(zip(nums.tolist(), row.tolist(), strict=True))
        tenth = sorted(scores.values())[-min(10, count)]
        assert len(hits) == min(10, count)
        assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
        for num, score in hits:
            assert score == pytest.approx(scores[num], abs=3e-5)  # half a step of a code in two dimensions
            assert scores[num] >= tenth - 3e-5


def test_ties_are_ordered_by_number_across_segments_blocks_and_batches(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    few = rng.standard_normal((4, 48), np.float32)
    kinds = rng.integers(0, 4, 4000)
    nums = rng.permutation(4000)
    index = filled(tmp_path / "vectors", nums, few[kinds] * rng.uniform(0.5, 2, (4000, 1)).astype(np.float32), 3)
    for kind, hits in enumerate(index.search(few, 1500)):
        same = sorted(nums[kinds == kind].tolist())
        assert [num for num, _ in hits[: len(same)]] == same
    [alone] = index.search(few[2:3], 1500)
    assert alone == index.search(few, 1500)[2]


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_a_filter_gives_what_is_left_of_the_whole_ranking(tmp_path: Path, share: float) -> None:
    rng = np.random.default_rng(6)
    vectors, queries = rng.standard_normal((2000, 16), np.float32), rng.standard_normal((5, 16), np.float32)
    index = filled(tmp_path / "vectors", np.arange(2000), vectors, 2)
    allowed = rng.permutation(2000)[: int(share * 2000)]
    excluded = allowed[:5]
    wanted = set(allowed[5:].tolist())
    for whole, part in zip(
        index.search(queries, 2000), index.search(queries, 15, allowed=allowed, excluded=excluded), strict=True
    ):
        assert part == [hit for hit in whole if hit[0] in wanted][:15]

"""Which segments are written anew: few stay, and each entry is written a logarithmic number of times."""

from __future__ import annotations

from askalike.index.vectors.writer import segments_to_merge


def test_small_segments_join_what_arrives() -> None:
    assert segments_to_merge([(10_000, 0), (1_000, 0), (3, 0)], arriving=1) == [1, 2]


def test_a_segment_is_worn_when_more_than_a_quarter_is_dead() -> None:
    assert segments_to_merge([(75, 25), (5_000, 0)], arriving=0) == []
    assert segments_to_merge([(74, 26), (5_000, 0)], arriving=0) == [0]


def test_a_segment_that_is_all_dead_is_dropped_and_nothing_else_is_touched() -> None:
    assert segments_to_merge([(0, 9), (5, 0)], arriving=0) == [0]


def test_nothing_is_written_anew_for_nothing() -> None:
    assert segments_to_merge([(5, 0)], arriving=0) == []
    assert segments_to_merge([], arriving=7) == []


def test_a_hundred_additions_of_a_thousand_leave_few_segments_and_little_writing() -> None:
    sizes: list[int] = []
    written = 0
    for _ in range(100):
        chosen = segments_to_merge([(size, 0) for size in sizes], arriving=1000)
        merged = 1000 + sum(sizes[position] for position in chosen)
        sizes = [size for position, size in enumerate(sizes) if position not in chosen] + [merged]
        written += merged
    assert sum(sizes) == 100_000
    assert len(sizes) <= 8
    assert written <= 100_000 * 8

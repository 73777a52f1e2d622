"""The neighbour graph: it answers as exact search does, in step with every change since it was built."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from askalike.errors import BusyForumError, DamagedForumError, MissingExtraError, SettingError
from askalike.index.vectors import GraphSettings, VectorIndex

needs_faiss = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="FAISS is not installed")

SETTINGS = GraphSettings(above=1, neighbours=8, build_breadth=40, search_breadth=40)
RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((600, 8))
QUERIES = RNG.standard_normal((20, 8))


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    made = VectorIndex.create(tmp_path / "vectors", 8, applied=1, fingerprint="f")
    with made.writing() as writer:
        writer.put(np.arange(600), VECTORS)
        writer.put([600], np.zeros((1, 8)))
        writer.commit(made.cursor)
    return made


@pytest.fixture
def graphed(index: VectorIndex) -> VectorIndex:
    index.build_graph(SETTINGS)
    return index


def agreement(index: VectorIndex, limit: int = 10, **filters: Collection[int]) -> float:
    exact = index.search(QUERIES, limit, **filters)
    found = index.search_graph(QUERIES, limit, **filters)
    shared = [len(set(one) & set(other)) / max(1, len(one)) for one, other in zip(exact, found, strict=True)]
    return float(np.mean(shared))


@needs_faiss
def test_the_graph_finds_what_exact_search_finds_with_the_same_cosines(graphed: VectorIndex) -> None:
    assert graphed.has_graph
    assert agreement(graphed) > 0.97


@needs_faiss
def test_filters_hold_through_the_graph(graphed: VectorIndex) -> None:
    best = [hits[0][0] for hits in graphed.search(QUERIES, 1)]
    assert agreement(graphed, excluded=best) > 0.97
    assert agreement(graphed, allowed=range(0, 600, 2)) > 0.97
    assert agreement(graphed, allowed=range(0, 600, 50)) == 1.0
    assert not {num for hits in graphed.search_graph(QUERIES, 10, excluded=best) for num, _ in hits} & set(best)


@needs_faiss
def test_more_hits_than_entries_gives_them_all(graphed: VectorIndex) -> None:
    assert all(len(hits) == 600 for hits in graphed.search_graph(QUERIES, 1000))
    assert graphed.search_graph(np.zeros((1, 8)), 3) == [[]]


@needs_faiss
def test_what_changes_after_the_graph_was_built_is_found_and_what_goes_is_not(graphed: VectorIndex) -> None:
    query = QUERIES[:1]
    nearest, second, third = [num for num, _ in graphed.search(query, 3)[0]]
    with graphed.writing() as writer:
        writer.put([900], query)
        writer.put([second], -query)
        writer.remove([nearest])
        writer.commit(graphed.cursor)
    found = [num for num, _ in graphed.search_graph(query, 10)[0]]
    assert found[:2] == [900, third]
    assert not {nearest, second} & set(found)
    assert graphed.search_graph(query, 1, excluded=[900])[0][0][0] == third
    assert graphed.search_graph(query, 1, allowed=[*range(500), third])[0][0][0] != 900
    assert VectorIndex(graphed.folder).search_graph(query, 10) == graphed.search_graph(query, 10)


@needs_faiss
def test_segments_written_anew_keep_the_graph(graphed: VectorIndex) -> None:
    with graphed.writing() as writer:
        writer.remove(range(200))
        writer.commit(graphed.cursor)
    assert agreement(graphed) > 0.97
    assert all(num >= 200 for hits in graphed.search_graph(QUERIES, 50) for num, _ in hits)


@needs_faiss
def test_a_graph_is_wanted_when_there_is_none_or_it_is_worn(index: VectorIndex) -> None:
    assert index.wants_graph(SETTINGS)
    assert not index.wants_graph(GraphSettings(above=602))
    index.build_graph(SETTINGS)
    assert not index.wants_graph(SETTINGS)
    with index.writing() as writer:
        writer.put(np.arange(100), VECTORS[100:200])
        writer.commit(index.cursor)
    assert index.wants_graph(SETTINGS)  # 100 nodes are old and 100 entries new: a third of 600
    index.build_graph(SETTINGS)
    assert not index.wants_graph(SETTINGS)
    assert len(list(index.folder.glob("*.graph"))) == 1


@needs_faiss
def test_a_commit_while_the_graph_is_built_is_kept(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["askalike.index.vectors.index"]
    build = module.build_graph  # type: ignore[attr-defined]

    def slow(*arguments: object) -> object:
        with index.writing() as writer:
            writer.put([900], QUERIES[:1])
            writer.commit(index.cursor)
        with pytest.raises(BusyForumError, match="neighbour graph"):
            VectorIndex(index.folder).build_graph(SETTINGS)
        return build(*arguments)

    monkeypatch.setattr(module, "build_graph", slow)
    index.build_graph(SETTINGS)
    assert index.entries == 602
    assert index.search_graph(QUERIES[:1], 1)[0][0][0] == 900


@needs_faiss
def test_a_graph_of_an_index_that_was_made_anew_meanwhile_is_dropped(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["askalike.index.vectors.index"]
    build = module.build_graph  # type: ignore[attr-defined]

    def slow(*arguments: object) -> object:
        VectorIndex.create(index.folder, 8, applied=2, fingerprint="g")
        return build(*arguments)

    monkeypatch.setattr(module, "build_graph", slow)
    index.build_graph(SETTINGS)
    assert (index.has_graph, index.entries) == (False, 0)
    assert list(index.folder.glob("*.building")) == []


@needs_faiss
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_building_can_be_ended_between_two_blocks_and_leaves_the_index_as_it_was(
    graphed: VectorIndex, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    monkeypatch.setattr(sys.modules["askalike.index.vectors.graph"], "_AT_ONCE", 100)
    linked: list[int] = []

    def stopping(count: int) -> None:
        linked.append(count)
        if sum(linked) == 300:
            raise error

    before = {path.name: path.read_bytes() for path in graphed.folder.iterdir()}
    with pytest.raises(error):
        graphed.build_graph(SETTINGS, stopping)
    assert linked == [100, 100, 100]
    assert {path.name: path.read_bytes() for path in graphed.folder.iterdir()} == before
    assert agreement(graphed) > 0.97, "the graph before goes on answering"
    linked.clear()
    graphed.build_graph(SETTINGS, linked.append)
    assert sum(linked) == 600, "all but the vector of zeros"


@needs_faiss
def test_a_damaged_graph_is_refused_before_faiss_sees_it(graphed: VectorIndex) -> None:
    [path] = graphed.folder.glob("*.graph")
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedForumError, match=f"{path.name} does not hold what was written"):
        VectorIndex(graphed.folder).search_graph(QUERIES, 1)
    with pytest.raises(DamagedForumError, match=f"{path.name} does not hold what was written"):
        VectorIndex(graphed.folder).check()
    path.write_bytes(content[:-1])
    with pytest.raises(DamagedForumError, match="bytes, expected"):
        VectorIndex(graphed.folder)


@needs_faiss
def test_a_graph_over_nothing_finds_nothing(tmp_path: Path) -> None:
    empty = VectorIndex.create(tmp_path / "vectors", 8, applied=1, fingerprint="f")
    empty.build_graph(SETTINGS)
    assert empty.search_graph(QUERIES[:1], 3) == [[]]
    with empty.writing() as writer:
        writer.put([1], QUERIES[:1])
        writer.commit(empty.cursor)
    assert empty.search_graph(QUERIES[:1], 3) == empty.search(QUERIES[:1], 3)


def test_searching_a_graph_that_was_never_built_is_refused(index: VectorIndex) -> None:
    assert not index.has_graph
    with pytest.raises(SettingError, match="no neighbour graph"):
        index.search_graph(QUERIES, 1)


def test_without_faiss_the_error_says_what_to_install(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError) as caught:
        index.build_graph(SETTINGS)
    assert caught.value.hint.startswith('pip install "faiss-cpu')
    assert index.search(QUERIES, 1) == index.search(QUERIES, 1)

"""The search as its users get it, as a system of the quality tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks import encoders
from benchmarks.quality_search import Known, NotLearnedHere
from benchmarks.quality_semantic import answer
from benchmarks.systems import LexicalSearch, PairTask, RetrievalTask, Search, title_alone
from tests.embedding_server import WordHashes

from askalike.evaluation.forum.tasks import RerankTask
from askalike.forum import Forum, ForumSettings
from askalike.search.features import FEATURES
from askalike.search.scorer import VERSIONS, Scorer
from askalike.types import Filters, Query, Question

QUESTIONS = {
    "q": Question("q", "wifi drops every evening"),
    "a": Question("a", "wifi drops at night"),
    "b": Question("b", "scanner is offline"),
    "c": Question("c", "printer drops paper"),
}
CANDIDATES = {"q": [("b", 0.0), ("a", 5.0)]}


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "forum", settings=ForumSettings(has_vectors=False)) as made:
        made.add(QUESTIONS.values())
        yield made


def retrieval() -> RetrievalTask:
    lexical = {"q": [("a", 5.0), ("c", 1.0)]}
    return RetrievalTask("tiny", {"q": QUESTIONS["q"]}, tuple(QUESTIONS.values()), lexical, {"q": {"c": 1}})


def reranking() -> RerankTask:
    documents = {name: QUESTIONS[name] for name in "ab"}
    qrels = {"q": {"a": 1, "b": 0}}
    statistics = tuple(QUESTIONS.values())
    return RerankTask("tiny", "semeval", {"q": QUESTIONS["q"]}, documents, CANDIDATES, CANDIDATES, qrels, statistics)


def test_the_search_retrieves_what_the_forum_ranks_but_the_query_itself(forum: Forum) -> None:
    found = Search(forum).retrieve(retrieval())["q"]
    assert [name for name, _ in found] == ["a", "c"], "b shares no word"
    own = Filters(exclude_ids=frozenset("q"))
    assert found == forum.ranking(Query(QUESTIONS["q"].title, filters=own))
    assert Search(forum, shown=1).retrieve(retrieval())["q"] == found[:1]


def test_given_candidates_have_the_probability_of_the_search_also_where_it_would_not_find_them(forum: Forum) -> None:
    found = Search(forum).rerank(reranking())["q"]
    assert [name for name, _ in found] == ["b", "a"], "the candidates keep their order"
    listed = dict(forum.ranking(Query(QUESTIONS["q"].title)))
    assert "b" not in listed
    assert 0 < dict(found)["b"] < dict(found)["a"] == pytest.approx(listed["a"])


def test_a_pair_has_the_probability_of_its_second_question_for_its_first(forum: Forum) -> None:
    pairs = tuple((QUESTIONS["q"], QUESTIONS[name]) for name in "ab")
    found = Search(forum).pairs(PairTask("tiny", pairs, (1, 0), tuple(QUESTIONS.values())))
    reranked = dict(Search(forum).rerank(reranking())["q"])
    assert found.tolist() == pytest.approx([reranked["a"], reranked["b"]])


def test_other_weights_hold_for_one_system_alone(forum: Forum) -> None:
    before = Search(forum).rerank(reranking())
    nothing = Scorer(np.zeros(len(FEATURES)), 0.0, 0.0)
    other = NotLearnedHere(Search(forum), dict.fromkeys(VERSIONS, nothing))
    assert [score for _, score in other.rerank(reranking())["q"]] == [0.5, 0.5]
    assert [score for _, score in other.retrieve(retrieval())["q"]] == [0.5, 0.5]
    assert other.pairs(PairTask("tiny", ((QUESTIONS["q"], QUESTIONS["a"]),), (1,), ())).tolist() == [0.5]
    assert Search(forum).rerank(reranking()) == before


def test_what_a_forum_holds_is_not_encoded_again(tmp_path: Path) -> None:
    encoder = WordHashes()
    with Forum.create(tmp_path / "forum", encoder=encoder) as forum:
        forum.add(QUESTIONS.values())
        forum.encode()
        vectors = forum.answering_vectors()
        assert vectors is not None
        before = Search(forum).retrieve(retrieval())["q"]
        vectors.texts.encoder = Known(forum, encoder)
        encoder.queries.clear()
        encoder.documents.clear()
        after = Search(forum).retrieve(retrieval())["q"]
        assert dict(after) == pytest.approx(dict(before), abs=1e-3), "vectors are kept in fewer digits"
        assert encoder.queries == encoder.documents == []
        unknown = vectors.texts.encoder.encode_query(["something else"] * 2)
        assert encoder.documents == ["something else"]
        assert unknown[0] == pytest.approx(encoder.vectors(["something else"])[0])


def test_of_what_is_retrieved_so_many_count_as_are_shown() -> None:
    one = retrieval()
    twice = RetrievalTask(
        "tiny",
        one.queries | {"p": QUESTIONS["q"]},
        one.collection,
        dict.fromkeys("qp", one.lexical["q"]),
        dict.fromkeys("qp", one.qrels["q"]),
    )
    rows = answer(twice, {"bm25": LexicalSearch()}, shown=1)
    assert answer(twice, {"bm25": LexicalSearch()})["bm25"]["mrr"] == 50.0
    assert rows["bm25"]["mrr"] == 0.0, "the second place is not shown"
    assert not rows["bm25"].keys() & {"recall@10", "ndcg@10", "recall@100"}, "they look further"


def test_a_text_is_one_question_however_long_it_is(forum: Forum) -> None:
    long = title_alone("why " * 400)
    assert long == title_alone("why " * 400) != title_alone("why")
    forum.add(long)
    assert forum.question(long.id).title.startswith("why why")


def test_a_forum_is_made_of_given_questions_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "WORK", tmp_path)
    made: list[int] = []

    def questions() -> list[Question]:
        made.append(1)
        return list(QUESTIONS.values())

    for _ in range(2):
        with Forum.open(encoders.build("tiny", "general", questions)) as forum:
            assert (len(forum), forum.vectors.waiting) == (4, 0)
    assert made == [1]

"""A forum in a notebook: data frames in and out, many searches at once, vectors, and what a cell shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from tests.embedding_server import WordHashes

from askalike import Filters, Forum, ForumSettings, Hit, Query, Question
from askalike.errors import FormatError, NotLearnedError, SettingError
from askalike.types import Hits

pytestmark = pytest.mark.slow

WORDS = ForumSettings(has_vectors=False)


@pytest.fixture(scope="module")
def forum(encoded_homenet: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    path = shutil.copytree(encoded_homenet, tmp_path_factory.mktemp("notebook") / "homenet.forum")
    with Forum.open(path) as forum:
        yield forum


def _queries(forum: Forum) -> list[Query]:
    questions = list(forum.questions())
    queries = [Query.stored(question, k=7) for question in questions[:30]]
    queries += [Query(question.title, k=3, ranker="words") for question in questions[30:40]]
    queries += [Query(question.title, filters=Filters(is_answered=False)) for question in questions[40:50]]
    return [
        *queries,
        Query("zzz qqq"),
        Query("wifi drops", is_canonical=True),
        Query("routre drops"),
    ]


def test_many_questions_find_what_each_finds_alone(forum: Forum) -> None:
    queries = _queries(forum)
    for query, batched in zip(queries, forum.similar_many(queries), strict=True):
        alone = forum.search(query)
        assert [hit.question.id for hit in batched.hits] == [hit.question.id for hit in alone.hits]
        np.testing.assert_allclose([hit.score for hit in batched.hits], [hit.score for hit in alone.hits], rtol=1e-4)
        assert (batched.ranker, batched.corrections) == (alone.ranker, alone.corrections)
        assert [hit.matched for hit in batched.hits] == [hit.matched for hit in alone.hits]


def test_texts_are_titles_and_what_a_query_may_not_be_is_refused(forum: Forum) -> None:
    (result,) = forum.similar_many(["wifi drops every evening"])
    assert len(result.hits) == 10
    assert forum.similar_many([]) == []
    with pytest.raises(SettingError, match="k is 0"):
        forum.similar_many([Query("wifi", k=0)])


def test_a_forum_has_a_length_and_says_what_it_is(forum: Forum, tmp_path: Path) -> None:
    assert len(forum) == 252
    assert "252 questions, english" in repr(forum)
    empty = Forum.create(tmp_path / "a.forum")
    assert bool(empty)
    assert len(empty) == 0
    empty.close()
    assert repr(empty).endswith("closed>")


def test_a_notebook_shows_hits_as_a_table_in_which_nothing_runs(forum: Forum) -> None:
    hits = forum.similar("wifi drops", k=2)
    assert isinstance(hits, Hits)
    assert hits._repr_html_().count("<tr>") == 3
    assert forum.search(Query("wifi drops", k=2))._repr_html_() == hits._repr_html_()
    bad = Question("<i>", "<script>alert(1)</script>", url='javascript:alert("1")')
    shown = Hit(1, 0.5, bad)._repr_html_()
    assert "<script>" not in shown
    assert "javascript:" not in shown
    assert "<i>" not in shown
    shown = Hit(1, 0.5, replace(bad, url='https://a/"><script>'))._repr_html_()
    assert "<script>" not in shown
    assert 'href="https://a/&quot;' in shown


def test_vectors_come_as_numpy_in_the_order_asked_for(forum: Forum, tmp_path: Path) -> None:
    ids, vectors = forum.models.vectors()
    assert ids == [question.id for question in forum.questions()]
    assert vectors.shape == (252, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-2)
    chosen, rows = forum.models.vectors(["q1045", "none", "q1001"])
    assert chosen == ["q1045", "q1001"]
    np.testing.assert_array_equal(rows, vectors[[ids.index(question_id) for question_id in chosen]])
    with Forum.create(tmp_path / "a.forum", settings=WORDS) as words, pytest.raises(NotLearnedError):
        words.models.vectors()


class OnlyInterchange:
    """A data frame that speaks the older protocol alone."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __dataframe__(self, **options: Any) -> Any:
        return self._table.__dataframe__(**options)


def _frame(library: str) -> Any:
    columns = {
        "number": [1, 2],
        "subject": ["Printer is offline", "Wifi drops"],
        "message": ["After a power cut.", None],
        "date": [datetime(2024, 1, 1, tzinfo=UTC), None],
    }
    if library == "interchange":
        return OnlyInterchange(pyarrow.table(columns))
    return pyarrow.table(columns) if library == "pyarrow" else pytest.importorskip(library).DataFrame(columns)


@pytest.mark.parametrize("library", ["pyarrow", "interchange", "pandas", "polars"])
def test_a_data_frame_becomes_a_forum(library: str, tmp_path: Path) -> None:
    columns = {"id": "number", "title": "subject", "body": "message", "created": "date"}
    with Forum.from_dataframe(tmp_path / "a.forum", _frame(library), columns=columns, settings=WORDS) as forum:
        assert list(forum.questions()) == [
            Question("1", "Printer is offline", "After a power cut.", created=datetime(2024, 1, 1, tzinfo=UTC)),
            Question("2", "Wifi drops"),
        ]
        assert forum.store.sources() == ("dataframe",)


def test_a_data_frame_whose_rows_are_left_out_says_so(tmp_path: Path) -> None:
    frame = pyarrow.table({"id": ["a", "a", "b"], "title": ["The printer is offline", "The printer", None]})
    warning = pytest.warns(UserWarning, match="2 rows were left out, the first with id 'a': a record with this id came")
    with warning, Forum.from_dataframe(tmp_path / "a.forum", frame, settings=WORDS) as forum:
        assert [question.id for question in forum.questions()] == ["a"]


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_every_table_of_a_forum_becomes_a_data_frame(forum: Forum, library: Any) -> None:
    pytest.importorskip(library)
    frame = forum.to_dataframe("questions", library)
    assert len(frame) == 252
    columns = list(getattr(frame, "column_names", None) or frame.columns)
    of_a_question = ["id", "title", "body", "markup", "tags", "created", "closed", "score", "url", "author"]
    assert columns == [*of_a_question, "language", "is_language_detected"]
    assert len(forum.to_dataframe("answers", library)) == 279
    with pytest.raises(SettingError, match=r"no table 'people' \(expected one of questions, .*, log, pairs, groups"):
        forum.to_dataframe("people", library)


def test_pairs_and_groups_become_data_frames(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "a.forum", settings=WORDS) as forum:
        forum.add([Question("1", "Printer is offline"), Question("2", "printer is  offline"), Question("3", "Wifi")])
        [pair] = forum.to_dataframe("pairs", "pyarrow").to_pylist()
        assert (pair["id"], pair["original_id"], pair["exact"]) == ("2", "1", True)
        members = forum.to_dataframe("groups", "pyarrow").to_pylist()
        assert sorted(member["id"] for member in members) == ["1", "2"]


def test_a_forum_that_cannot_be_made_of_a_frame_leaves_nothing_behind(tmp_path: Path) -> None:
    frame = pyarrow.table({"id": ["a"], "title": ["The printer is offline"]})
    with pytest.raises(SettingError, match="no encoder 'genral'"):
        Forum.from_dataframe(tmp_path / "a.forum", frame, encoder="genral", settings=WORDS)
    with pytest.raises(FormatError):
        Forum.from_dataframe(tmp_path / "b.forum", pyarrow.table({"n": [1]}), encoder=WordHashes(), settings=WORDS)
    assert list(tmp_path.iterdir()) == []

"""Nothing is stored that cannot be read back, and a forum that holds such a row already goes on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike import Answer, Link, Question
from askalike.errors import DamagedForumError, InputError
from askalike.store.sqlite import SqliteStore
from askalike.types import Feedback, Reject, Source

pytestmark = pytest.mark.usefixtures("words_alone")

LATE = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-14)))
EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
TOO_LATE_US = 253402350000000000


def no_reject(reject: Reject) -> None:
    raise AssertionError(reject)


class _Refusing(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise OverflowError("date value out of range")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.create(tmp_path / "forum" / "archive.sqlite", {"language": '"english"'})
    yield made
    made.close()


@pytest.mark.parametrize("moment", [LATE, EARLY, datetime(2020, 1, 1, tzinfo=_Refusing())])
def test_a_date_that_cannot_be_read_back_is_refused_by_every_way_to_write(
    archive: SqliteStore, moment: datetime
) -> None:
    archive.add_questions([Question("kept", "t")])
    odd, odd_answer = Question("odd", "t", created=moment), Answer("odd", "kept", "b", created=moment)
    for write in (
        lambda: archive.add_questions([odd]),
        lambda: archive.put_questions([odd]),
        lambda: archive.put_questions([Question("odd", "t", closed=moment)]),
        lambda: archive.edit_questions([Question("kept", "t", created=moment)]),
        lambda: archive.add_answers([odd_answer]),
        lambda: archive.put_answers([odd_answer]),
    ):
        with pytest.raises(InputError, match=r"created|closed"):
            write()
    rejects: list[Reject] = []
    archive.load([Question("good", "t"), odd, odd_answer], Source("dump", "jsonl"), rejects.append)
    assert [reject.record_id for reject in rejects] == ["odd", "odd"]
    assert [question.id for _, question in archive.all_questions()] == ["kept", "good"]


@pytest.mark.parametrize("moment", [datetime.max, datetime.min, LATE.replace(tzinfo=UTC), EARLY.replace(tzinfo=UTC)])
def test_the_first_and_the_last_moment_are_stored(archive: SqliteStore, moment: datetime) -> None:
    archive.put_questions([Question("q", "t", created=moment)])
    assert archive.question("q").created == moment.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "question",
    [
        Question("q", "t", tags="wifi"),  # type: ignore[arg-type]
        Question("q", "t", tags=("wifi", 7)),  # type: ignore[arg-type]
        Question("q", "t", created="2020-01-01"),  # type: ignore[arg-type]
        Question("q", "t" * (16 * 1024 * 1024 + 1)),
    ],
)
def test_a_value_of_another_type_or_size_is_refused(archive: SqliteStore, question: Question) -> None:
    with pytest.raises(InputError):
        archive.put_questions([question])


# -- whatever is acknowledged reads back equal -----------------------------------------------------------------------

zones = st.sampled_from([UTC, *(timezone(timedelta(hours=hours)) for hours in (-23, -14, 14, 23))])
edges = st.sampled_from([datetime.min, datetime.max, datetime(9999, 12, 31), datetime(1, 1, 2), datetime(1970, 1, 1)])
moments = st.none() | st.datetimes() | st.builds(lambda moment, zone: moment.replace(tzinfo=zone), edges, zones)
texts = st.text(st.characters(), max_size=20)
scores = st.none() | st.integers(-(2**64), 2**64) | st.sampled_from([2**63 - 1, -(2**63), 2**63])
markups = st.sampled_from(["html", "markdown", "plain", "bbcode", ""])
questions = st.builds(
    Question,
    texts,
    texts,
    texts,
    markup=markups,
    tags=st.lists(texts, max_size=3).map(tuple),
    created=moments,
    closed=moments,
    score=scores,
    url=texts,
    author=texts,
)
answers = st.builds(
    Answer, texts, texts, texts, markup=markups, created=moments, score=scores, author=texts, is_accepted=st.booleans()
)


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    made = SqliteStore.create(tmp_path_factory.mktemp("property") / "archive.sqlite", {})
    made.connection.execute("PRAGMA synchronous = OFF")
    yield made
    made.close()


@given(questions)
def test_a_question_is_refused_or_reads_back_equal(shared: SqliteStore, question: Question) -> None:
    try:
        shared.put_questions([question])
    except InputError:
        return
    found = shared.question(question.id)
    assert found.created == _in_utc(question.created)
    assert found.closed == _in_utc(question.closed)
    fields = ("id", "title", "body", "markup", "tags", "score", "url", "author")
    assert [getattr(found, name) for name in fields] == [getattr(question, name) for name in fields]
    load_back: list[Reject] = []
    report = shared.load([question], Source("dump", ""), load_back.append, is_mass_delete_allowed=True)
    assert (report.questions.unchanged, load_back) == (1, [])


@given(answers, texts, st.sampled_from(["duplicate", "different", "withdrawn", "perhaps"]))
def test_an_answer_and_a_judgement_are_refused_or_read_back_equal(
    shared: SqliteStore, answer: Answer, judge: str, verdict: str
) -> None:
    try:
        shared.put_questions([Question(answer.question_id, "t"), Question("other one", "t")])
        shared.put_answers([answer])
    except InputError:
        return
    (found,) = [one for one in shared.answers_of([answer.question_id])[answer.question_id] if one.id == answer.id]
    assert found.created == _in_utc(answer.created)
    fields = ("id", "question_id", "body", "markup", "score", "author", "is_accepted")
    assert [getattr(found, name) for name in fields] == [getattr(answer, name) for name in fields]
    try:
        given_one = shared.add_feedback(Feedback(answer.question_id, "other one", verdict, judge))  # type: ignore[arg-type]
    except InputError:
        return
    assert list(shared.all_feedback())[-1] == given_one
    shared.put_links([Link(answer.question_id, "other one")])
    assert Link(answer.question_id, "other one") in shared.links()


def test_damage_that_sqlite_quotes_is_told_as_damage(archive: SqliteStore) -> None:
    archive.add_questions([Question("a", "t")])
    archive.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    archive.close()
    content = archive.path.read_bytes()
    assert b"CREATE TABLE answers (" in content
    archive.path.write_bytes(content.replace(b"CREATE TABLE answers (", b"CREATE TABL\xc8 answers ("))
    with pytest.raises(DamagedForumError, match=r"archive\.sqlite is damaged"):
        SqliteStore(archive.path).answers("a")

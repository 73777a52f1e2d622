"""What every store promises, over SQLite and PostgreSQL."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from msgspec import structs
from tests.postgres_server import new_database

from askalike.errors import BusyForumError, ConflictError, ForumError, InputError, UnknownIdError
from askalike.forum.indexes import stored_text_settings
from askalike.index.catchup import Steps, catch_up
from askalike.index.local import open_index
from askalike.index.word_indexer import word_indexer
from askalike.progress import SilentProgress
from askalike.store import ForumLayout, Store, create_store, open_store
from askalike.store.postgres import PostgresStore
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import (
    Answer,
    Draw,
    Feedback,
    Link,
    LogEntry,
    Question,
    Record,
    Reject,
    Source,
    Thread,
    Write,
)

FULL = Question(
    id="q1",
    title="Títle 🙂",
    body="<p>one\x01two</p>",
    markup="html",
    tags=("b", "a"),
    created=datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    closed=datetime(2021, 1, 2, tzinfo=UTC),
    score=-3,
    url="https://example.org/q1",
    author="ann",
)
DUMP = Source("dump", "jsonl")
OTHER = Source("other", "jsonl")


def _sqlite(tmp_path: Path, settings: dict[str, str]) -> Store:
    return create_store(ForumLayout(tmp_path / "forum"), settings)


def _postgres(tmp_path: Path, settings: dict[str, str]) -> Store:
    return PostgresStore.create(new_database(), settings)


STORES: dict[str, Callable[[Path, dict[str, str]], Store]] = {
    "sqlite": _sqlite,
    "postgres": _postgres,
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = STORES[request.param](tmp_path, {"language": '"english"'})
    yield store
    store.close()


def no_reject(reject: Reject) -> None:
    raise AssertionError(reject)


def held(store: Store) -> dict[str, str]:
    return {question.id: question.title for _, question in store.all_questions()}


def log(store: Store, after: int = 0) -> list[tuple[str, str]]:
    """Return (operation, title or "gone") of the changes of questions."""
    titles = {num: question.title for num, question in store.all_questions()}
    return [(change.operation, titles.get(change.num, "gone")) for change in store.changes(after, 1000)]


def test_the_settings_are_those_of_the_making(store: Store) -> None:
    assert store.settings() == {"language": '"english"'}
    assert stored_text_settings(store) == TextSettings()
    assert store.name


# -- single changes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make_store", [_sqlite, _postgres])
def test_a_closed_store_says_so_in_every_thread(tmp_path: Path, make_store: Callable[..., Store]) -> None:
    store = make_store(tmp_path, {"language": '"english"'})
    assert store.count_questions() == 0
    store.close()
    store.close()
    for call in (store.counts, lambda: store.put_settings({"stem": "true"}), lambda: list(store.all_questions())):
        with pytest.raises(ForumError, match=r"is closed \(open it again\)"):
            call()
        with ThreadPoolExecutor(1) as thread, pytest.raises(ForumError, match="is closed"):
            thread.submit(call).result()


def test_what_is_stored_reads_back_equal_control_characters_too(store: Store) -> None:
    store.put_questions([FULL, Question("\x01", "odd \x01 in an id")])
    assert store.question("q1") == FULL
    assert store.questions_by_id(["\x01", "\x00", "nowhere"]) == {"\x01": Question("\x01", "odd \x01 in an id")}
    answer = Answer("a\x01", "q1", "b\x01", "markdown", FULL.created, -2, "bob", is_accepted=True)
    store.put_answers([answer])
    assert store.answers_of(["q1"]) == {"q1": [answer]}


def test_a_moment_in_another_zone_comes_back_in_utc(store: Store) -> None:
    there = datetime(2020, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    store.put_questions([Question("q", "t", created=there)])
    created = store.question("q").created
    assert created == there
    assert created is not None
    assert created.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-14))),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_a_date_that_cannot_be_read_back_is_refused_and_nothing_is_stored(store: Store, moment: datetime) -> None:
    store.add_questions([Question("kept", "t")])
    for write in (
        lambda: store.add_questions([Question("new", "t"), Question("odd", "t", created=moment)]),
        lambda: store.put_questions([Question("new", "t"), Question("odd", "t", closed=moment)]),
        lambda: store.edit_questions([Question("kept", "changed", created=moment)]),
        lambda: store.add_answers([Answer("new", "kept", "b"), Answer("odd", "kept", "b", created=moment)]),
        lambda: store.put_answers([Answer("odd", "kept", "b", created=moment)]),
    ):
        with pytest.raises(InputError, match=r"created|closed"):
            write()
    assert held(store) == {"kept": "t"}
    assert store.answers_of(["kept"]) == {}
    rejects: list[Reject] = []
    store.load([Question("good", "t"), Question("odd", "t", created=moment)], DUMP, rejects.append)
    assert [reject.record_id for reject in rejects] == ["odd"]


@pytest.mark.parametrize(
    "question",
    [
        Question("", "t"),
        Question(" a", "t"),
        Question("a", "\ud800"),
        Question("a", "\x00"),
        Question("a", "t", score=2**70),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused(store: Store, question: Question) -> None:
    with pytest.raises(InputError):
        store.put_questions([Question("good", "t"), question])
    assert store.counts().questions == 0


def test_adding_takes_no_id_twice_and_happens_whole_or_not_at_all(store: Store) -> None:
    store.add_questions([FULL])
    for questions in ([Question("q2", "new"), Question("q1", "again")], [Question("a", "one"), Question("a", "two")]):
        with pytest.raises(InputError, match="is taken"):
            store.add_questions(questions)
    with pytest.raises(UnknownIdError):
        store.add_questions([Question("q2", "new")], [Link("q2", "nowhere")])
    assert store.question("q1") == FULL
    assert store.counts().questions == 1
    store.add_questions([Question("q2", "new")], [Link("q2", "q1")])
    assert store.links() == [Link("q2", "q1")]


def test_editing_and_deleting_what_is_not_there_changes_nothing(store: Store) -> None:
    store.add_questions([FULL])
    before = store.last_change()
    for call in (
        lambda: store.edit_questions([Question("q1", "changed"), Question("q2", "unknown")]),
        lambda: store.put_questions([Question("q1", "changed")], ["q2"]),
        lambda: store.add_answers([Answer("x", "q1", "b"), Answer("y", "q2", "b")]),
        lambda: store.delete_answers(["x"]),
        lambda: store.put_links([Link("q1", "q2")]),
        lambda: store.add_judgement(Feedback("q1", "q2", "different")),
    ):
        with pytest.raises(UnknownIdError):
            call()
    with pytest.raises(UnknownIdError):
        store.question("q2")
    assert (store.question("q1"), store.last_change(), store.delete_links([Link("q1", "q2")])) == (FULL, before, 0)


def test_putting_says_what_changed_and_deletes_with_all_that_was_said(store: Store) -> None:
    store.put_questions([Question("a", "one"), Question("b", "two"), Question("c", "three")])
    store.put_answers([Answer("x", "a", "because")])
    store.put_links([Link("b", "a")])
    store.add_judgement(Feedback("c", "a", "different"))
    done = store.put_questions([Question("a2", "new"), Question("b", "two"), Question("c", "changed")], ["a"])
    assert done == {"a2": "add", "c": "edit"}
    assert held(store) == {"b": "two", "c": "changed", "a2": "new"}
    store.put_questions([Question("a", "again")])
    assert (store.answers_of(["a"]), store.links(), list(store.all_judgements())) == ({}, [], [])


def test_a_number_stays_with_its_question_and_is_never_given_again(store: Store) -> None:
    store.put_questions([FULL, Question("q2", "t")])
    numbers = store.nums_by_id(["q1", "q2", "nowhere"])
    store.edit_questions([Question("q1", "changed")])
    assert store.nums_by_id(["q1", "q2"]) == numbers
    assert store.ids_by_num([*numbers.values(), 999]) == {number: name for name, number in numbers.items()}
    store.put_questions([], ["q2"])
    store.put_questions([Question("q2", "t")])
    assert store.nums_by_id(["q2"])["q2"] > numbers["q2"]
    assert store.questions_by_num([numbers["q1"], numbers["q2"]]) == {numbers["q1"]: Question("q1", "changed")}
    assert store.numbers() == sorted(store.nums_by_id(["q1", "q2"]).values())


def test_answers_come_best_first_and_are_counted(store: Store) -> None:
    old, new = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)
    store.put_questions([Question("q", "t"), Question("none", "t")])
    answers = [
        Answer("late", "q", "b", created=new, score=2),
        Answer("early", "q", "b", created=old, score=2),
        Answer("voted", "q", "b", created=new, score=9),
        Answer("right", "q", "b", created=new, score=0, is_accepted=True),
    ]
    store.add_answers(answers)
    assert [answer.id for answer in store.answers_of(["q", "none"])["q"]] == ["right", "voted", "early", "late"]
    assert store.answer_counts(["q", "none", "nowhere"]) == {"q": 4}
    with pytest.raises(InputError, match="is taken"):
        store.add_answers([Answer("late", "q", "other")])
    assert store.put_answers([answers[0], Answer("early", "q", "other"), Answer("new", "q", "b")]) == {
        "early": "edit",
        "new": "add",
    }
    store.delete_answers(["early", "right"])
    assert [answer.id for answer in store.answers_of(["q"])["q"]] == ["voted", "late", "new"]


def test_duplicate_links_lead_on_to_the_originals_that_are_there(store: Store) -> None:
    store.put_questions([Question(identifier, "t") for identifier in "abcd"])
    links = [Link("a", "b"), Link("b", "c"), Link("c", "a"), Link("a", "d", "related")]
    assert store.put_links([*links, links[0]]) == 3 + 1
    assert store.put_links(links) == 0
    assert store.originals_of(["a"]) == {"a": ("b",), "b": ("c",), "c": ("a",)}
    assert store.originals_of(["d", "nowhere"]) == {}
    assert len(store.originals_of(["a", *map(str, range(1_000))])) == 3
    assert store.links_of("d") == [Link("a", "d", "related")]
    assert store.delete_links([links[0], Link("d", "a")]) == 1
    assert store.links() == [Link("a", "d", "related"), Link("b", "c"), Link("c", "a")]
    with pytest.raises(InputError, match="itself"):
        store.put_links([Link("a", "a")])


def test_questions_are_listed_newest_first_by_pages_that_changes_do_not_shift(store: Store) -> None:
    moments = [datetime(2020, 1, day, tzinfo=UTC) for day in (2, 1, 3)]
    store.put_questions([Question(f"q{number}", "t", created=moment) for number, moment in enumerate(moments)])
    store.put_questions([Question("undated", "t"), Question("last", "t")])
    everything = store.page_by_date(10)
    assert [question.id for _, question in everything] == ["q2", "q0", "q1", "last", "undated"]
    assert store.page_by_date(1) == everything[:1]
    for number, (position, question) in enumerate(everything):
        store.put_questions([], [question.id])
        assert store.page_by_date(10, position) == everything[number + 1 :]


# -- the change log --------------------------------------------------------------------------------------------------


def test_the_log_names_each_change_of_a_question_in_order(store: Store) -> None:
    store.add_questions([Question("a", "one"), Question("b", "two")])
    start = store.last_change()
    store.put_questions([Question("a", "one"), Question("b", "changed")])
    store.put_answers([Answer("x", "a", "b")])
    store.put_questions([], ["a"])
    store.load([Question("c", "new")], DUMP, no_reject)
    assert log(store) == [("add", "gone"), ("add", "changed"), ("edit", "changed"), ("delete", "gone"), ("add", "new")]
    assert log(store, start) == [("edit", "changed"), ("delete", "gone"), ("add", "new")]
    changes = store.changes(0, 1000)
    assert [change.seq for change in changes] == sorted({change.seq for change in changes})
    assert store.changes(changes[1].seq, 2) == changes[2:4]
    assert (store.last_change(), store.count_changes(start)) == (changes[-1].seq, 3)


def test_an_edit_of_what_is_not_compared_is_logged_apart(store: Store) -> None:
    plain, both = Question("a", "one", created=FULL.created), ("question", "details")
    store.load([plain, FULL], DUMP, no_reject)
    start = store.last_change()
    store.load([replace(plain, url="https://example.org/a"), replace(FULL, closed=None)], DUMP, no_reject)
    store.put_questions([replace(FULL, tags=("c",))])
    assert store.changes(start, 10) == []
    assert [change.operation for change in store.changes(start, 10, both)] == ["edit"] * 3
    start = store.last_change()
    store.load([replace(plain, created=None), replace(FULL, body="two")], DUMP, no_reject)
    store.put_questions([replace(plain, author="eva")])
    assert [change.kind for change in store.changes(start, 10, both)] == ["question"] * 3


def test_the_log_is_shortened_to_the_newest_change_of_each_question(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.store.base.SHORT_LOG", 3)
    questions = [Question(f"q{number}", "t") for number in range(4)]
    store.load([*questions, Link("q1", "q0"), Answer("a", "q0", "b")], DUMP, no_reject)
    numbers, followers = store.nums_by_id([question.id for question in questions]), [0, store.last_change()]
    for number in range(9):
        store.put_questions([Question("q0", f"edit {number}"), Question("gone", "t")])
        followers.append(store.last_change())
        store.put_questions([], ["gone"])
    followed = {after: {change.num for change in store.changes(after, 1000)} for after in followers}
    last = store.last_change()
    store.load([*questions[1:], Question("q0", "edit 8"), Link("q1", "q0"), Answer("a", "q0", "b")], DUMP, no_reject)
    assert store.last_change() == last
    assert {after: {change.num for change in store.changes(after, 1000)} for after in followers} == followed
    changes = store.changes(0, 1000)
    assert sorted(change.operation for change in changes) == ["add"] * 3 + ["delete"] * 9 + ["edit"]
    assert [change.num for change in changes if change.operation == "edit"] == [numbers["q0"]]
    assert len(store.changes(0, 1000, ("link",))) == 1


def test_what_is_said_of_a_question_is_logged_for_those_who_ask_for_it(store: Store) -> None:
    store.put_questions([Question("a", "one"), Question("b", "two")])
    start, numbers = store.last_change(), store.nums_by_id(["a", "b"])
    store.put_links([Link("a", "b")])
    store.add_judgement(Feedback("b", "a", "duplicate"))
    assert store.changes(start, 10) == []
    changes = store.changes(start, 10, ("question", "link", "feedback"))
    assert [(change.kind, change.num) for change in changes] == [
        ("link", numbers["a"]),
        ("feedback", numbers["b"]),
        ("feedback", numbers["a"]),
    ]


def answered(store: Store, after: int) -> list[tuple[str, int]]:
    return [(change.operation, change.num) for change in store.changes(after, 1000, ("answer",))]


def test_a_change_of_an_answer_is_logged_under_its_question(store: Store) -> None:
    store.put_questions([Question("a", "one"), Question("x", "two"), Question("c", "three")])
    a, c = (store.nums_by_id([identifier])[identifier] for identifier in ("a", "c"))
    steps: list[tuple[Callable[[], object], list[tuple[str, int]]]] = [
        (lambda: store.add_answers([Answer("x", "a", "b")]), [("add", a)]),
        (lambda: store.put_answers([Answer("x", "a", "b")]), []),
        (lambda: store.put_answers([Answer("x", "c", "b")]), [("edit", c), ("delete", a)]),
        (lambda: store.delete_answers(["x"]), [("delete", c)]),
        (lambda: store.replace_threads([thread(1, "t", "y")], [], SITE), [("add", c + 1)]),
        (lambda: store.replace_threads([thread(1, "t")], [], SITE), [("delete", c + 1)]),
    ]
    for step, expected in steps:
        last = store.last_change()
        step()
        assert answered(store, last) == expected
    for answers, expected in (
        ([Answer("p", "d", "b"), Answer("q", "d", "b"), Answer("r", "e", "b")], {"d": 2, "e": 1}),
        ([Answer("p", "d", "b"), Answer("q", "d", "b"), Answer("r", "e", "b")], {}),
        ([Answer("p", "e", "b"), Answer("q", "d", "other")], {"d": 2, "e": 2}),
    ):
        last = store.last_change()
        store.load([Question("d", "t"), Question("e", "t"), *answers], DUMP, no_reject)
        numbers = {num: identifier for identifier, num in store.nums_by_id(["d", "e"]).items()}
        assert Counter(numbers[num] for _, num in answered(store, last)) == expected


def test_an_index_follows_any_store(store: Store, tmp_path: Path) -> None:
    analyzer = Analyzer(TextSettings())
    store.put_questions([Question(f"q{number}", f"printer {number}") for number in range(7)])
    index = open_index(tmp_path / "index", store, analyzer)
    indexer = word_indexer(index, analyzer, steps=Steps(batch=2, scan=3, changes=2))
    assert catch_up(store, indexer, SilentProgress()) == 7
    store.put_questions([Question("q0", "scanner")], ["q1", "q2"])
    assert catch_up(store, indexer, SilentProgress()) == 3
    assert index.numbers() == store.numbers()
    assert index.document_frequencies(analyzer.terms("scanner")) == {analyzer.terms("scanner")[0]: 1}
    store.put_answers([Answer("x", "q0", "wifi")])
    assert catch_up(store, indexer, SilentProgress()) == 1
    assert index.document_frequencies(["wifi"]) == {"wifi": 1}
    assert catch_up(store, indexer, SilentProgress()) == 0


# -- loads -----------------------------------------------------------------------------------------------------------


def test_what_goes_after_a_scan_was_killed_between_entries_and_cursor_is_gone_from_the_index(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    store.put_questions([Question("a", "Wifi drops"), Question("b", "No printer")])
    analyzer = Analyzer(TextSettings())
    indexer = word_indexer(open_index(tmp_path / "words", store, analyzer), analyzer)
    with monkeypatch.context() as patched:
        patched.setattr("askalike.index.segments.Manifest.write", killed)
        with pytest.raises(KeyboardInterrupt):
            catch_up(store, indexer, SilentProgress())
    store.put_questions((), ["a"])
    catch_up(store, indexer, SilentProgress())
    assert indexer.index.numbers() == store.numbers()


def test_loading_again_adds_updates_and_deletes(store: Store) -> None:
    first: list[Record] = [Answer("a0", "q0", "old"), *(Question(f"q{number}", f"t{number}") for number in range(10))]
    first += [Answer("a1", "q1", "stays"), Link("q1", "q0")]
    store.load(first, DUMP, no_reject)
    second: list[Record] = [
        Question("q1", "changed"),
        *(Question(f"q{number}", f"t{number}") for number in range(2, 12)),
    ]
    second += [
        Answer("a1", "q1", "stays"),
        Answer("a2", "q2", "new"),
        Link("q3", "q2", "related"),
        Link("q3", "nowhere"),
    ]
    report = store.load(second, DUMP, no_reject)
    assert (report.questions.added, report.questions.edited, report.questions.deleted) == (2, 1, 1)
    assert (report.questions.unchanged, report.answers.added, report.answers.unchanged) == (8, 1, 1)
    assert (report.links.added, report.links.deleted, report.links_without_question) == (2, 1, 1)
    assert store.links() == [Link("q3", "q2", "related")]
    before = store.last_change()
    again = store.load(second, DUMP, no_reject)
    assert (again.questions.unchanged, again.links.unchanged, store.last_change()) == (11, 2, before)
    assert store.sources() == ("dump",)


@pytest.mark.parametrize("error", [InputError("line 3 is damaged"), KeyboardInterrupt(), MemoryError()])
def test_a_load_happens_whole_or_not_at_all(store: Store, error: BaseException) -> None:
    store.load([Question("old", "t"), Question("older", "t")], DUMP, no_reject)
    before = store.last_change()

    def broken() -> Iterator[Record]:
        yield Question("new", "t")
        yield Question("old", "changed")
        raise error

    with pytest.raises(type(error)):
        store.load(broken(), DUMP, no_reject)
    assert (held(store), store.last_change(), store.is_loading()) == ({"old": "t", "older": "t"}, before, False)


def test_a_load_keeps_other_sources_and_is_refused_whole_where_it_would_change_one(store: Store) -> None:
    store.put_questions([Question("by hand", "t")])
    store.load([Question("1", "printer")], DUMP, no_reject)
    with pytest.raises(InputError, match=r"1 ids of other, such as '1'.* came from dump"):
        store.load([Question("2", "lion"), Question("1", "zebra")], OTHER, no_reject)
    assert held(store) == {"by hand": "t", "1": "printer"}
    store.load([Question("2", "lion"), Question("1", "printer")], OTHER, no_reject)
    store.load([Question("3", "scanner"), Question("1", "printer")], DUMP, no_reject)
    assert held(store) == {"by hand": "t", "1": "printer", "2": "lion", "3": "scanner"}


def test_what_cannot_be_stored_is_rejected_by_name_and_then_nothing_is_deleted(store: Store) -> None:
    store.load([Question("1", "printer"), Question("2", "t"), Question("3", "t")], DUMP, no_reject)
    rejects: list[Reject] = []
    records: list[Record] = [Question("1", "\ud800"), Question("2", "t"), Question("2", "twice"), Answer("a", "9", "b")]
    report = store.load(records, DUMP, rejects.append)
    assert [reject.record_id for reject in rejects] == ["1", "2", "a"]
    assert (report.questions.rejected, report.answers.rejected, report.questions.kept) == (2, 1, 2)
    assert held(store) == {"1": "printer", "2": "t", "3": "t"}
    assert store.load([Question("1", "printer")], DUMP, no_reject, unread=lambda: 1).questions.deleted == 0


def test_a_load_without_questions_or_with_too_few_is_refused(store: Store) -> None:
    for records in ([], [Link("a", "b")]):
        with pytest.raises(InputError, match="question"):
            store.load(records, DUMP, no_reject)
    store.load([Question(f"q{number}", "t") for number in range(20)], DUMP, no_reject)
    with pytest.raises(InputError, match="19 of the 20"):
        store.load([Question("q0", "t")], DUMP, no_reject)
    assert store.counts().questions == 20
    assert store.load([Link("q1", "q0")], OTHER, no_reject).links.added == 1
    store.load([Question("q0", "t")], DUMP, no_reject, is_mass_delete_allowed=True)
    assert held(store) == {"q0": "t"}


def test_an_answer_without_its_question_is_rejected_wherever_the_question_went(store: Store) -> None:
    questions: list[Record] = [Question("1", "printer"), Question("2", "t")]
    for left in ([*questions, Answer("a", "9", "b")], [questions[1], Answer("a", "1", "b")]):
        store.load([*questions, Answer("a", "1", "b")], DUMP, no_reject)
        rejects: list[Reject] = []
        counts = store.load(left, DUMP, rejects.append).answers
        assert (counts.added, counts.edited, counts.unchanged, counts.deleted, counts.rejected) == (0, 0, 0, 0, 1)
        assert [(reject.record_id, "is not in the forum" in reject.reason) for reject in rejects] == [("a", True)]
        assert store.counts().answers == 0


def test_links_alone_are_taken_for_the_questions_of_other_sources(store: Store) -> None:
    links = [Link("q1", "q2")]
    with pytest.raises(InputError, match="contains only links, and the forum has no questions"):
        store.load(links, OTHER, no_reject)
    store.load([Question("q1", "t"), Question("q2", "u")], DUMP, no_reject)
    assert store.load(links, OTHER, no_reject).links.added == 1
    assert store.load(links, OTHER, no_reject).links.unchanged == 1
    with pytest.raises(InputError, match="contains no questions"):
        store.load(links, DUMP, no_reject)


def test_a_load_sees_what_was_written_while_its_archive_was_read(store: Store) -> None:
    store.load([Question("edited", "t"), Question("deleted", "t"), Question("gone", "t")], DUMP, no_reject)

    def write(questions: list[Question], gone: list[str]) -> None:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(store.put_questions, questions, gone).result()

    def records() -> Iterator[Record]:
        yield from (Question("edited", "t"), Question("deleted", "t"), Question("new", "t"))
        write([Question("edited", "by hand"), Question("by hand", "t")], ["deleted"])

    counts = store.load(records(), DUMP, no_reject).questions
    assert (counts.added, counts.edited, counts.deleted) == (2, 1, 1)
    assert held(store) == dict.fromkeys(("edited", "deleted", "new", "by hand"), "t")

    def contested() -> Iterator[Record]:
        yield from (Question("edited", "t"), Question("deleted", "t"), Question("new", "t"), Question("taken", "t"))
        write([Question("taken", "by hand")], [])

    with pytest.raises(InputError, match=r"1 ids of dump, such as 'taken', .* came from manual"):
        store.load(contested(), DUMP, no_reject)
    assert held(store)["taken"] == "by hand"


def test_others_write_while_an_archive_is_read_but_none_loads(store: Store) -> None:
    def records() -> Iterator[Record]:
        yield Question("a", "t")
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
        assert store.is_loading()
        yield Question("b", "t")

    def another() -> None:
        with store.lock_if_empty() as is_empty:
            emptiness.append(is_empty)
        store.put_questions([Question("by hand", "t")])

    emptiness: list[bool] = []
    assert not store.is_loading()
    store.load(records(), DUMP, no_reject)
    assert emptiness == [False]
    assert held(store).keys() == {"a", "b", "by hand"}


def test_a_second_load_is_refused_while_one_is_under_way(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.store.sqlite_file.BUSY_TIMEOUT_S", 0.0)
    monkeypatch.setattr("askalike.store.postgres.LOADS_WAIT", "1ms")
    errors: list[Exception] = []

    def second() -> None:
        try:
            store.load([Question("b", "t")], OTHER, no_reject)
        except BusyForumError as error:
            errors.append(error)

    def records() -> Iterator[Record]:
        yield Question("a", "t")
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()

    store.load(records(), DUMP, no_reject)
    assert (len(errors), held(store)) == (1, {"a": "t"})


def test_a_source_is_not_deleted_while_an_archive_is_loaded(store: Store) -> None:
    def records() -> Iterator[Record]:
        yield Question("a", "t")
        thread = threading.Thread(target=delete)
        thread.start()
        thread.join()
        yield Question("b", "other")

    def delete() -> None:
        try:
            store.delete_source(DUMP.name)
        except BusyForumError as error:
            errors.append(error)

    errors: list[Exception] = []
    store.load([Question("a", "t"), Question("b", "t")], DUMP, no_reject)
    store.load(records(), DUMP, no_reject)
    assert (len(errors), held(store)) == (1, {"a": "t", "b": "other"})
    assert store.delete_source(DUMP.name).questions == 2


def test_a_store_is_held_only_while_it_is_empty(store: Store) -> None:
    with store.lock_if_empty() as is_empty:
        assert is_empty
    store.put_questions([Question("a", "t")])
    with store.lock_if_empty() as is_empty:
        assert not is_empty
    store.put_questions([Question("b", "t")])
    assert held(store).keys() == {"a", "b"}


def test_a_question_that_is_named_twice_is_deleted_once(store: Store) -> None:
    store.put_questions([Question("a", "t"), Question("b", "t")])
    store.put_questions([], ["a", "a"])
    assert held(store).keys() == {"b"}


# -- judgements ------------------------------------------------------------------------------------------------------


def test_the_newest_judgement_on_a_pair_counts_until_it_is_withdrawn(store: Store) -> None:
    store.put_questions([Question(identifier, "t") for identifier in "abc"])
    first = store.add_judgement(Feedback("a", "b", "duplicate", "ann"))
    other = store.add_judgement(Feedback("a", "c", "different"))
    assert first.at is not None
    last = store.add_judgement(Feedback("b", "a", "different", "\x01"))
    assert list(store.all_judgements()) == [first, other, last]
    assert store.judgements() == [other, last]
    assert store.judgements_on("a") == {"c": "different", "b": "different"}
    version = store.judgement_version()
    store.add_judgement(Feedback("a", "b", "withdrawn"))
    assert store.judgements() == [other]
    assert store.judgements_on("b") == {}
    assert store.judgement_version() != version
    for wrong in (Feedback("a", "a", "different"), Feedback("a", "b", "perhaps")):  # type: ignore[arg-type]
        with pytest.raises(InputError):
            store.add_judgement(wrong)


def test_a_judgement_counts_by_its_own_moment_and_of_one_moment_the_last_that_was_stored(store: Store) -> None:
    questions: list[Record] = [Question(identifier, "t") for identifier in "abcd"]
    store.load(questions, DUMP, no_reject)
    old = Feedback("a", "b", "different", "eve", datetime(2020, 1, 1, tzinfo=UTC))
    now = store.add_judgement(Feedback("b", "a", "duplicate", "ann"))
    same = [structs.replace(old, candidate_id="c", verdict=verdict) for verdict in ("duplicate", "different")]
    ahead = Feedback("a", "d", "different", "eve", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
    store.load([*questions, old, *same, ahead], DUMP, no_reject)
    assert store.judgements() == [same[1], now, ahead]
    assert store.judgements_on("a") == {"b": "duplicate", "c": "different", "d": "different"}
    assert list(store.all_judgements()) == [now, old, *same, ahead]  # as they were stored
    store.add_judgement(Feedback("a", "d", "duplicate", "ann"))
    assert store.judgements_on("a")["d"] == "duplicate"  # who judges here has seen what was said before
    decided = store.decide(Feedback("d", "a", "different", "ann"))
    assert store.judgements_on("a")["d"] == "different"
    store.undo(decided.number, "ann")
    assert store.judgements_on("a")["d"] == "duplicate"


def test_who_judges_with_a_clock_that_went_back_is_heard(store: Store) -> None:
    questions: list[Record] = [Question(identifier, "t") for identifier in "ab"]
    ahead = Feedback("a", "b", "different", "eve", datetime(2200, 1, 1, tzinfo=UTC))
    store.load([*questions, ahead], DUMP, no_reject)
    decided = store.decide(Feedback("a", "b", "duplicate", "ann"))
    assert decided.at == datetime(2200, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert [judgement.at for judgement in store.judgements()] == [decided.at]
    store.undo(decided.number, "ann")
    assert [(judgement.verdict, judgement.by) for judgement in store.judgements()] == [("different", "eve")]
    store.add_judgement(Feedback("a", "b", "withdrawn", "ann"))
    assert store.judgements() == []


def test_a_judgement_without_a_moment_is_stored_once_however_often_it_is_loaded(store: Store) -> None:
    records: list[Record] = [Question("a", "t"), Question("b", "t")]
    different, duplicate = Feedback("a", "b", "different", "ann"), Feedback("a", "b", "duplicate", "ann")
    judgements = [different, duplicate, different]
    report = store.load([*records, *judgements], DUMP, no_reject)
    assert (report.judgements.added, verdicts(store)) == (3, {("a", "b"): "different"})
    store.add_judgement(Feedback("a", "b", "duplicate", "bob"))
    report = store.load([*records, *judgements], DUMP, no_reject)
    assert (report.judgements.unchanged, verdicts(store)) == (3, {("a", "b"): "duplicate"})


# -- moderation ------------------------------------------------------------------------------------------------------


def verdicts(store: Store) -> dict[tuple[str, str], str]:
    return {(judgement.question_id, judgement.candidate_id): judgement.verdict for judgement in store.judgements()}


def test_a_decision_is_a_judgement_a_link_and_an_entry_and_undoing_it_takes_all_three_back(store: Store) -> None:
    store.put_questions([Question(identifier, "t") for identifier in "abcd"])
    entry = store.decide(Feedback("a", "b", "duplicate", "ann", draw=Draw("sample", 0.5)))
    assert (entry.kind, entry.by, entry.made_link) == ("duplicate", "ann", True)
    assert store.links() == [Link("a", "b")]
    assert [(judgement.by, judgement.draw) for judgement in store.judgements()] == [("ann", Draw("sample", 0.5))]
    assert store.judgements()[0].at == entry.at
    undone = store.undo(entry.number, "bob")
    assert (undone.kind, undone.by, undone.undoes) == ("undone", "bob", entry.number)
    assert (store.links(), store.judgements()) == ([], [])
    assert [(entry.kind, entry.by, entry.undone) for entry in store.log(9)] == [
        ("undone", "bob", False),
        ("duplicate", "ann", True),
    ]
    assert store.undo(entry.number, "bob") == undone
    with pytest.raises(ConflictError, match=f"already by bob, by entry {undone.number}"):
        store.undo(entry.number, "ann")
    with pytest.raises(InputError):
        store.undo(undone.number, "bob")
    with pytest.raises(UnknownIdError):
        store.undo(undone.number + 1, "bob")
    again = store.decide(Feedback("b", "a", "duplicate", "bob"), has_link=False)
    assert (store.links(), again.made_link, verdicts(store)) == ([], False, {("b", "a"): "duplicate"})
    assert store.log(9, before=undone.number) == [store.log(9)[2]]
    assert store.log(9, pair=("a", "b")) == store.log(9)
    assert store.log(9, pair=("a", "c")) == []


def test_a_decision_that_is_repeated_changes_nothing(store: Store) -> None:
    store.put_questions([Question(identifier, "t") for identifier in "abcd"])
    duplicate = store.decide(Feedback("a", "b", "duplicate", "ann"))
    different = store.decide(Feedback("c", "d", "different", "ann"))
    before = (store.last_change(), store.counts(), store.log(9), store.links(), store.judgements())
    assert store.decide(Feedback("a", "b", "duplicate", "ann")) == duplicate
    assert store.decide(Feedback("a", "b", "duplicate", "ann"), has_link=False) == duplicate
    assert store.decide(Feedback("d", "c", "different", "ann")) == different
    for first, second, by in (("a", "b", "bob"), ("b", "a", "ann"), ("c", "d", "ann")):
        with pytest.raises(ConflictError, match="by ann to be"):
            store.decide(Feedback(first, second, "duplicate", by))
    assert (store.last_change(), store.counts(), store.log(9), store.links(), store.judgements()) == before
    store.delete_links([Link("a", "b")])
    with pytest.raises(ConflictError, match=f"by entry {duplicate.number}"):  # its link would be made again
        store.decide(Feedback("a", "b", "duplicate", "ann"))


def test_a_decision_that_is_refused_stores_nothing(store: Store) -> None:
    store.put_questions([Question(identifier, "t") for identifier in "abcde"])
    first = store.decide(Feedback("a", "b", "duplicate", "ann"))
    before = (store.last_change(), store.counts(), store.log(9), store.links(), store.judgements())
    refused: list[tuple[Feedback, str]] = [
        (Feedback("b", "a", "different", "bob"), f"by ann to be duplicate, by entry {first.number}"),
        (Feedback("c", "c", "different"), "c"),
        (Feedback("c", "zz", "duplicate"), "zz"),
        (Feedback("c", "d", "withdrawn"), "duplicate or different"),
        (Feedback("c", "a", "duplicate"), "c -> a -> b"),
    ]
    for decision, message in refused:
        with pytest.raises((InputError, UnknownIdError), match=message):
            store.decide(decision)
    assert (store.last_change(), store.counts(), store.log(9), store.links(), store.judgements()) == before
    store.undo(first.number, "bob")
    assert store.decide(Feedback("b", "a", "duplicate", "bob")).made_link


def test_undoing_lets_the_judgement_before_count_again_and_none_that_came_since(store: Store) -> None:
    store.put_questions([Question(identifier, "t") for identifier in "abc"])
    store.add_judgement(Feedback("a", "b", "different", "eve"))
    first = store.decide(Feedback("a", "b", "duplicate", "ann"))
    assert verdicts(store) == {("a", "b"): "duplicate"}
    store.undo(first.number, "ann")
    assert [(judgement.verdict, judgement.by) for judgement in store.judgements()] == [("different", "eve")]
    other = store.decide(Feedback("a", "c", "duplicate", "ann"))
    store.add_judgement(Feedback("c", "a", "different", "eve"))
    store.undo(other.number, "ann")
    assert store.judgements_on("a") == {"b": "different", "c": "different"}
    assert store.links() == []


def test_a_mark_is_refused_where_it_leads_on_or_back_and_a_related_link_claims_none(store: Store) -> None:
    store.put_questions([Question(identifier, "t") for identifier in "abc"])
    assert store.mark("a", "b")
    assert not store.mark("a", "b")
    for duplicate, original, reason in (("b", "a", "circle"), ("c", "a", "duplicate itself"), ("c", "c", "itself")):
        with pytest.raises(InputError, match=reason):
            store.mark(duplicate, original)
    with pytest.raises(UnknownIdError):
        store.mark("a", "nowhere")
    entry = store.decide(Feedback("c", "b", "duplicate"))
    store.put_links([Link("c", "b", "related")])
    store.undo(entry.number, "")
    assert store.links() == [Link("a", "b"), Link("c", "b", "related")]


@pytest.mark.parametrize("by", ["hand before", "hand", "load", "follow"])
def test_a_link_that_somebody_else_made_stays_when_a_decision_is_undone(store: Store, by: str) -> None:
    questions: list[Record] = [Question(identifier, "t") for identifier in "ab"]
    store.load(questions, DUMP, no_reject)
    if by == "hand before":
        store.put_links([Link("a", "b")])
    entry = store.decide(Feedback("a", "b", "duplicate", "ann"))
    assert entry.made_link == (by != "hand before")
    if by == "hand":
        store.put_links([Link("a", "b")])
    elif by == "load":
        store.load([*questions, Link("a", "b")], DUMP, no_reject)
    elif by == "follow":
        store.replace_threads([Thread(Question("a", "t"), links=(Link("a", "b"),))], [], DUMP)
    store.undo(entry.number, "ann")
    assert store.links() == [Link("a", "b")]


def test_an_older_log_takes_nothing_back_that_was_done_since(store: Store) -> None:
    questions: list[Record] = [Question(identifier, "t") for identifier in "abcdef"]
    store.load(questions, DUMP, no_reject)
    pairs = [Feedback("a", "b", "duplicate"), Feedback("c", "d", "duplicate"), Feedback("e", "f", "duplicate")]
    entries = [store.decide(pair) for pair in pairs]
    old = [*questions, *store.links(), *store.all_judgements(), *reversed(store.log(9))]
    store.put_links([Link("a", "b")])  # somebody says so too
    store.undo(entries[1].number)
    changed = (store.links(), store.judgements(), store.log(9))
    report = store.load(old, OTHER, no_reject)
    assert (store.links(), store.judgements(), store.log(9)) == changed
    assert (report.links.added, report.log.added, report.judgements.added) == (0, 0, 0)
    assert [entry.made_link for entry in store.log(9)] == [False, True, True, False]
    for entry in (entries[0], entries[2]):
        store.undo(entry.number)
    assert store.links() == [Link("a", "b")]


def test_a_log_that_is_read_claims_no_link_that_was_here_before(store: Store) -> None:
    questions: list[Record] = [Question(identifier, "t") for identifier in "abcd"]
    store.load([*questions, Link("a", "b")], DUMP, no_reject)
    at = datetime(2020, 1, 1, tzinfo=UTC)
    log = [LogEntry(number, *pair, "duplicate", "ann", at, made_link=True) for number, pair in ((7, "ab"), (9, "cd"))]
    store.load([*questions, Link("a", "b"), Link("c", "d"), *log], OTHER, no_reject)
    assert [entry.made_link for entry in store.log(9)] == [True, False]
    for entry in store.log(9):
        store.undo(entry.number, "ann")
    assert store.links() == [Link("a", "b")]


def test_no_archive_takes_the_place_of_what_was_added_by_hand(store: Store) -> None:
    store.put_questions([Question("a", "t"), Question("b", "t")])
    store.put_answers([Answer("x", "a", "text")])
    store.put_links([Link("a", "b")])
    edited = Question("a", "another title")
    with pytest.raises(InputError) as contested:
        store.load([edited], Source("dump", "jsonl"), no_reject)
    assert "manual" not in (contested.value.hint or "")
    manual = Source("manual", "jsonl")
    with pytest.raises(InputError, match="no archive replaces"):
        store.load([edited], manual, no_reject)
    with pytest.raises(InputError, match="no archive replaces"):
        store.replace_threads([Thread(edited)], [], manual)
    assert (store.links(), [answer.id for answer in store.answers_of(["a"])["a"]]) == ([Link("a", "b")], ["x"])
    assert store.question("a").title == "t"


def test_what_is_to_be_written_waits_once_and_is_cancelled_with_its_decision(store: Store) -> None:
    store.load([Question(identifier, "t") for identifier in "abcd"], DUMP, no_reject)
    store.put_questions([Question("own", "t")])
    pairs = [Feedback("a", "b", "duplicate"), Feedback("c", "d", "duplicate"), Feedback("own", "a", "different")]
    first, second, _ = (store.decide(pair) for pair in pairs)
    assert store.decided_duplicates("dump") == [first, second]
    assert store.decided_duplicates("manual") == []
    wanted = [
        Write(0, "https://x", decision.question_id, decision.candidate_id, action)
        for decision in (first, second)
        for action in ("link", "close")
    ]
    assert (store.put_writes(wanted), store.put_writes(wanted)) == (4, 0)
    link, close, *_ = store.outbox("https://x")
    assert (link.action, link.state, link.tries) == ("link", "waiting", 0)
    assert store.set_write(link.number, "done", "was there already")
    assert store.set_write(close.number, "failed", "answered 403")
    store.undo(first.number, "ann")
    states = [(write.state, write.tries, write.why) for write in store.outbox()]
    assert states[0] == ("done", 1, "was there already")
    assert [state for state, *_ in states] == ["done", "cancelled", "waiting", "waiting"]
    assert not store.set_write(close.number, "failed", "later")
    assert (store.put_writes(wanted), store.outbox("https://y")) == (1, [])
    assert [write.state for write in store.outbox()] == ["done", "waiting", "waiting", "waiting"]
    store.put_questions((), ["c"])
    assert [write.question_id for write in store.outbox()] == ["a", "a"]
    assert {entry.question_id for entry in store.log(99)} == {"own", "a"}


# -- questions that helped -------------------------------------------------------------------------------------------


def test_it_is_counted_how_often_questions_helped(store: Store) -> None:
    store.put_questions([Question(identifier, "t") for identifier in "ab"])
    assert store.helped() == (0, 0)
    assert [store.add_helped(identifier) for identifier in ("a", "b", "a")] == [1, 1, 2]
    assert store.helped() == (3, 2)
    with pytest.raises(UnknownIdError):
        store.add_helped("nowhere")
    store.put_questions([], ["b"])
    assert store.helped() == (2, 1)


# -- what is kept and counted ----------------------------------------------------------------------------------------


def test_what_is_said_of_a_question_is_kept_and_joined_again_when_a_load_brings_it_back(store: Store) -> None:
    questions: list[Record] = [Question(f"q{number}", f"t{number}") for number in range(8)]
    store.load(questions, DUMP, no_reject)
    store.put_links([Link("q0", "q1"), Link("q1", "q2", "related")])
    store.put_answers([Answer("by hand", "q1", "b")])
    judged = [
        store.add_judgement(Feedback("q1", "q0", "different")),
        store.add_judgement(Feedback("q4", "q5", "duplicate")),
    ]
    before, version = store.counts(), store.judgement_version()
    store.load(questions[:1] + questions[2:], DUMP, no_reject)
    assert (store.links(), store.answers_of(["q1"]), store.judgements()) == ([], {}, judged[1:])
    assert (store.originals_of(["q0"]), store.judgements_on("q0"), store.links_of("q0")) == ({}, {}, [])
    counts = store.counts()
    assert (counts.links_without_question, counts.answers_without_question) == (2, 1)
    assert (counts.judgements, counts.judgements_without_question) == (1, 1)
    assert store.judgement_version() != version
    store.load(questions, DUMP, no_reject)
    assert store.links() == [Link("q0", "q1"), Link("q1", "q2", "related")]
    assert (store.judgements(), store.counts(), store.judgement_version()) == (judged, before, version)
    assert [answer.id for answer in store.answers_of(["q1"])["q1"]] == ["by hand"]


def test_what_a_store_holds_is_counted(store: Store) -> None:
    store.put_questions([FULL, Question("q2", "t", created=datetime(2019, 1, 1, tzinfo=UTC)), Question("q3", "t")])
    store.put_answers([Answer("a", "q1", "b"), Answer("b", "q1", "b")])
    store.put_links([Link("q2", "q1"), Link("q3", "q1", "related")])
    store.add_judgement(Feedback("q2", "q3", "different"))
    counts = store.counts()
    assert (counts.questions, counts.answers, counts.questions_with_answer) == (3, 2, 1)
    assert (counts.duplicates, counts.related, counts.judgements) == (1, 1, 1)
    assert (counts.first_us, counts.last_us) == (1546300800000000, 1577934245678901)


def test_what_is_counted_follows_every_kind_of_change(store: Store) -> None:
    def counted() -> tuple[int, ...]:
        counts = store.counts()
        return (counts.questions, counts.answers, counts.questions_with_answer, counts.duplicates, counts.judgements)

    assert counted() == counted() == (0, 0, 0, 0, 0)
    store.put_questions([Question("q1", "t"), Question("q2", "t")])
    assert counted() == (2, 0, 0, 0, 0)
    store.put_answers([Answer("a", "q1", "b")])
    assert counted() == (2, 1, 1, 0, 0)
    store.put_links([Link("q2", "q1")])
    assert counted() == (2, 1, 1, 1, 0)
    store.add_judgement(Feedback("q1", "q2", "different"))
    assert counted() == (2, 1, 1, 1, 1)
    store.put_questions([], ["q2"])
    assert counted() == (1, 1, 1, 0, 0)


def test_a_file_that_is_opened_again_holds_the_same(tmp_path: Path) -> None:
    layout = ForumLayout(tmp_path / "forum")
    store = create_store(layout, {})
    store.put_questions([FULL])
    judgement = store.put_questions([Question("q2", "t")]) and store.add_judgement(Feedback("q1", "q2", "different"))
    store.close()
    again = open_store(layout)
    assert (again.question("q1"), list(again.all_judgements())) == (FULL, [judgement])
    again.close()


# -- threads of a forum that is followed -----------------------------------------------------------------------------

SITE = Source("https://forum.example.org", "discourse")


def thread(number: int, title: str, *answers: str, links: tuple[int, ...] = ()) -> Thread:
    name = f"q{number}"
    return Thread(
        Question(name, title),
        tuple(Answer(identifier, name, f"body of {identifier}") for identifier in answers),
        tuple(Link(name, f"q{target}", "related") for target in links),
    )


def test_threads_are_held_as_they_were_given_last(store: Store) -> None:
    done = store.replace_threads([thread(1, "one", "a1", "a2", links=(2, 9)), thread(2, "two", "a3")], [], SITE)
    assert (done.questions.added, done.answers.added, done.links.added) == (2, 3, 2)
    assert store.links() == [Link("q1", "q2", "related")], "the other end is not there yet"
    done = store.replace_threads([thread(2, "two", "a3", "a2"), thread(1, "one again", "a1", links=(9,))], [], SITE)
    assert (done.questions.edited, done.questions.unchanged) == (1, 1)
    assert (done.answers.edited, done.answers.deleted, done.links.deleted) == (1, 0, 1), "a2 moved, and is not deleted"
    assert held(store) == {"q1": "one again", "q2": "two"}
    assert {answer.id for answer in store.answers_of(["q2"])["q2"]} == {"a2", "a3"}
    assert store.replace_threads([thread(9, "nine")], [], SITE).questions.added == 1
    assert store.links() == [Link("q1", "q9", "related")]
    before = store.last_change()
    again = store.replace_threads([thread(9, "nine")], ["nowhere"], SITE)
    assert (again.questions.unchanged, store.last_change()) == (1, before), "the same again changes nothing"
    assert store.ids_of(SITE.name) == ["q1", "q2", "q9"]


def test_what_people_said_of_a_question_that_was_taken_away_counts_again_when_it_is_back(store: Store) -> None:
    store.replace_threads([thread(1, "one", "a1", links=(2,)), thread(2, "two")], [], SITE)
    store.add_answers([Answer("by-hand", "q1", "Buy another.")])
    store.put_links([Link("q2", "q1")])
    store.add_judgement(Feedback("q1", "q2", "different"))
    done = store.replace_threads([], ["q1"], SITE)
    assert (done.questions.deleted, done.answers.deleted, done.links.deleted) == (1, 1, 1)
    assert (held(store), store.links(), list(store.all_judgements())) == ({"q2": "two"}, [], [])
    store.replace_threads([thread(1, "one", "a1")], [], SITE)
    assert store.links() == [Link("q2", "q1")]
    assert [judgement.verdict for judgement in store.all_judgements()] == ["different"]
    assert {answer.id for answer in store.answers_of(["q1"])["q1"]} == {"a1", "by-hand"}


def test_a_thread_takes_nothing_from_another_source(store: Store) -> None:
    store.add_questions([Question("q1", "by hand")])
    store.replace_threads([thread(2, "two", "a1")], [], OTHER)
    for taking in (thread(1, "taken"), thread(2, "taken"), thread(3, "new", "a1")):
        with pytest.raises(InputError):
            store.replace_threads([thread(4, "before it"), taking], [], SITE)
    assert store.replace_threads([], ["q1", "q2"], SITE).questions.deleted == 0
    assert held(store) == {"q1": "by hand", "q2": "two"}

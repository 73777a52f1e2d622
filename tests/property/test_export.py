"""What an export wrote, and what reading it back makes of it: the same forum, whatever it holds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askalike import Answer, Forum, ForumSettings, ImportOptions, Link, Question
from askalike.data import bundled_forum
from askalike.errors import DamagedInputError, FormatError, SettingError
from askalike.forum.exchange import records_of
from askalike.records import TABLES
from askalike.types import Draw, Feedback, Write

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20) | st.sampled_from(
    [
        "",
        "a,b",
        'say "hi"',
        "line\r\nline",
        "\r",
        "\n",
        "\x01",
        "=1+1",
        " padded ",
        "null",
        "true",
        "\ufeff",
        "'",
        "\\",
        "\\n",
    ]
)
IDS = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=8).filter(
    lambda text: text == text.strip()
)
MOMENTS = st.none() | st.datetimes(
    datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5))])
)
SCORES = st.none() | st.integers(-(2**63), 2**63 - 1)
MARKUPS = st.sampled_from(["html", "markdown", "plain"])
TAGS = st.lists(TEXTS, max_size=3).map(tuple)
PLAIN = ForumSettings(has_vectors=False)


@st.composite
def forums(draw: st.DrawFn) -> tuple[list[Question], list[Answer], list[Link], list[Feedback]]:
    ids = draw(st.lists(IDS, min_size=1, max_size=5, unique=True))
    drawn = st.builds(Question, st.none(), TEXTS, TEXTS, MARKUPS, TAGS, MOMENTS, MOMENTS, SCORES, TEXTS, TEXTS)
    questions = [Question(identifier, *values[1:]) for identifier in ids for values in [_values(draw(drawn))]]
    answer_ids = draw(st.lists(IDS, max_size=4, unique=True))
    answers = [
        Answer(
            identifier,
            draw(st.sampled_from(ids)),
            *draw(st.tuples(TEXTS, MARKUPS, MOMENTS, SCORES, TEXTS, st.booleans())),
        )
        for identifier in answer_ids
    ]
    pairs = st.tuples(st.sampled_from(ids), st.sampled_from(ids)).filter(lambda pair: pair[0] != pair[1])
    several = st.lists(pairs, max_size=4) if len(ids) > 1 else st.just([])
    links = [Link(*pair, draw(st.sampled_from(["duplicate", "related"]))) for pair in draw(several)]
    verdicts = st.sampled_from(["duplicate", "different", "withdrawn"])
    shares = st.none() | st.floats(0, 1)
    draws = st.builds(Draw, st.sampled_from(["queue", "sample", "search", "import"]), shares)
    feedback = [Feedback(*pair, draw(verdicts), draw(TEXTS), draw=draw(draws)) for pair in draw(several)]
    return questions, answers, links, feedback


def _values(question: Question) -> list[Any]:
    return [getattr(question, name) for name in Question.__slots__]


def _held(forum: Forum) -> dict[str, list[Any]]:
    return {name: list(records_of(forum.store, name)) for name in TABLES}


@contextmanager
def _filled(folder: Path, records: tuple[list[Any], ...]) -> Iterator[Forum]:
    questions, answers, links, feedback = records
    with Forum.create(folder / "first.forum", settings=PLAIN) as forum:
        forum.store.put_questions(questions)
        forum.store.add_answers(answers)
        forum.store.put_links(links)
        for judgement in feedback:
            forum.judge(judgement.question_id, judgement.candidate_id, judgement.verdict, judgement.by, judgement.draw)
        yield forum


@settings(max_examples=20)
@given(records=forums())
def test_reading_an_export_back_gives_the_same_forum(records: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _filled(folder, records) as forum:
            written = forum.export(folder / "export")
            before = _held(forum)
        with Forum.create(folder / "again.forum", settings=PLAIN) as again:
            report = again.load(folder / "export")
            assert _held(again) == before
        assert report.format == "askalike"
        assert report.rejected == 0
        assert report.records_in == sum(written.values())


@pytest.fixture(scope="module")
def homenet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    with Forum.create(tmp_path_factory.mktemp("export") / "homenet.forum", settings=PLAIN) as forum:
        forum.load(bundled_forum())
        forum.judge("q1156", "q1045", "duplicate", "ann")
        forum.judge("q1156", "q1045", "withdrawn", "ann")
        yield forum


def test_what_helped_and_what_waits_to_be_written_is_not_exported(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "forum", settings=PLAIN) as forum:
        forum.add([Question(identifier, "Wifi drops") for identifier in "ab"])
        forum.store.add_helped("a")
        forum.store.put_writes([Write(0, "https://target.example", "a", "b", "close")])
        forum.export(tmp_path / "export")
    written = b"".join(path.read_bytes() for path in (tmp_path / "export").iterdir())
    assert b"Wifi drops" in written
    for kept in (b"helped", b"target.example"):
        assert kept not in written


def test_an_export_over_an_older_one_leaves_nothing_of_it(homenet: Forum, tmp_path: Path) -> None:
    homenet.export(tmp_path / "export", form="csv")
    homenet.export(tmp_path / "export", form="parquet", tables=["links"])
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == ["export.json", "links.parquet"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(SettingError, match="no export"):
        homenet.export(tmp_path / "other")
    with pytest.raises(SettingError, match="no form"):
        homenet.export(tmp_path / "third", form="xml")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="no table 'people'"):
        homenet.export(tmp_path / "third", tables=["people"])
    assert not (tmp_path / "third").exists()


def test_who_judged_what_comes_back_once_however_often_it_is_read(homenet: Forum, tmp_path: Path) -> None:
    homenet.export(tmp_path / "export")
    with Forum.create(tmp_path / "again.forum", settings=PLAIN) as again:
        again.load(tmp_path / "export")
        assert _held(again) == _held(homenet)
        assert again.load(tmp_path / "export").load.judgements.unchanged == 2


def test_a_table_that_was_cut_is_refused_and_nothing_is_loaded(homenet: Forum, tmp_path: Path) -> None:
    homenet.export(tmp_path / "export")
    file = tmp_path / "export" / "answers.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    with Forum.create(tmp_path / "again.forum", settings=PLAIN) as again:
        with pytest.raises(DamagedInputError, match=r"278 records, export\.json says 279"):
            again.load(tmp_path / "export")
        assert len(again) == 0


def test_a_record_that_does_not_fit_is_rejected_and_named(homenet: Forum, tmp_path: Path) -> None:
    homenet.export(tmp_path / "export")
    file = tmp_path / "export" / "judgements.jsonl"
    file.write_text(file.read_text().replace('"withdrawn"', '"perhaps"'))
    with Forum.create(tmp_path / "again.forum", settings=PLAIN) as again:
        report = again.load(tmp_path / "export")
    assert [(reject.file, reject.line) for reject in report.first_rejects] == [("judgements.jsonl", 2)]
    assert "perhaps" in report.first_rejects[0].reason


def test_an_export_of_a_later_format_is_refused(homenet: Forum, tmp_path: Path) -> None:
    homenet.export(tmp_path / "export")
    file = tmp_path / "export" / "export.json"
    file.write_text(file.read_text().replace('"format": 1', '"format": 2'))
    with Forum.create(tmp_path / "again.forum", settings=PLAIN) as again, pytest.raises(FormatError, match="format 2"):
        again.load(tmp_path / "export", options=ImportOptions(format="askalike"))

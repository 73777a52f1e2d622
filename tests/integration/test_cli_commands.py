"""The commands that list, show, link, judge, export and ask many questions at once, on the bundled forum."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import parquet
from tests.command import Run

from askalike import Answer, Forum, ForumSettings, Link, Question
from askalike.cli import messages as cli_messages
from askalike.cli.main import main
from askalike.errors import UnknownIdError

ASKED = "ssh asks for the passphrase of my key every single time"


@pytest.fixture(scope="module")
def homenet(encoded_homenet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(shutil.copytree(encoded_homenet, tmp_path_factory.mktemp("commands") / "homenet.forum"))
    with Forum.open(path) as forum:
        list(forum.pairs.duplicates(1.0))  # compares all questions
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "small.forum") as forum:
        forum.add(
            [
                Question("a", "Printer is offline after a power cut", created=None),
                Question("b", "Printer is offline after a power cut"),
                Question("c", "Wifi drops every evening"),
            ]
        )
    return tmp_path / "small.forum"


def test_duplicates_come_best_first_and_none_of_them_is_linked(run: Run, homenet: Path) -> None:
    pairs = run("duplicates", homenet, "--min", 0.3, "--json").json
    assert [pair["score"] for pair in pairs] == sorted((pair["score"] for pair in pairs), reverse=True)
    assert (pairs[0]["id"], pairs[0]["original_id"]) == ("q1156", "q1045")
    assert all(pair["score"] >= 0.3 for pair in pairs)
    with Forum.open(homenet) as forum:
        linked = {
            frozenset((link.source_id, link.target_id)) for link in forum.store.links() if link.kind == "duplicate"
        }
    assert not linked & {frozenset((pair["id"], pair["original_id"])) for pair in pairs}
    table = run("duplicates", homenet, "--min", 0.3, "--limit", 1)
    assert ASKED.split()[0] in table.out
    assert "q1156" in table.out


def test_the_first_screen_has_less_likely_pairs_where_few_are_likely(run: Run, homenet: Path) -> None:
    rows = [line for line in run("duplicates", homenet).out.splitlines() if re.match(r"\d+%", line)]
    assert len(rows) == 10
    assert len(run("duplicates", homenet, "--json").json) < 10


def test_a_long_list_ends_after_a_screen_and_says_how_long_it_is(run: Run, homenet: Path) -> None:
    every, shown = (run("duplicates", homenet, "--min", 0.1, *limit) for limit in (("--limit", 0), ()))
    lengths = [len(re.findall(r"^\S+%", done.out, re.MULTILINE)) for done in (every, shown)]
    assert lengths[0] > lengths[1] == 10
    note = "".join(shown.err.split())
    assert "thefirst10of" in note
    assert "--limit0listsall" in note
    assert "thefirst10of" not in "".join(every.err.split())


def test_linked_pairs_are_counted_and_can_be_listed(run: Run, homenet: Path) -> None:
    with Forum.open(homenet) as forum:
        linked = {
            frozenset((link.source_id, link.target_id)) for link in forum.store.links() if link.kind == "duplicate"
        }
    shown = run("duplicates", homenet, "--limit", 1)
    assert f"note: left out: {len(linked)} duplicate links; --linked lists linked pairs" in shown.err
    output = run("duplicates", homenet, "--linked", "--json")
    assert output.err == ""
    assert {frozenset((pair["id"], pair["original_id"])) for pair in output.json} & linked
    assert not {("q1156", "q1045")} & {(pair["id"], pair["original_id"]) for pair in output.json}
    assert run("duplicates", homenet, "--linked", "--groups").code == 2
    assert run("duplicates", homenet, "--linked", "--exact").code == 2


def test_reposts_come_as_one_row_and_as_pairs_for_programs(run: Run, tmp_path: Path) -> None:
    title = "Semilandmarks on a distal femur, curve and surface"
    bodies = [
        "The resampled curve is beneath the model.",
        "The resampled curve is beneath the model",
        "The resampled curve lies beneath the model.",
    ]
    with Forum.create(tmp_path / "f", settings=ForumSettings(has_vectors=False)) as opened:
        opened.add(
            Question(name, title, body, created=datetime(2021, 4, day, tzinfo=UTC))
            for day, (name, body) in enumerate(zip(("first", "second", "third"), bodies, strict=True), start=1)
        )
        opened.add([Question("other", "How is a volume cropped?"), Question("copy", "How is a volume cropped?")])
    assert len(run("duplicates", tmp_path / "f", "--json").json) == 4
    lines = run("duplicates", tmp_path / "f").out.splitlines()
    assert sum("may repeat" not in line and "first: Semilandmarks" in line for line in lines) == 1
    orders = ("second, third: Semilandmarks", "third, second: Semilandmarks")  # both are .99
    assert sum(any(order in line for order in orders) for line in lines) == 1
    assert sum(line.startswith("exact") and "copy: " in line for line in lines) == 1


def test_a_pair_in_csv_and_parquet_is_that_in_json(run: Run, homenet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("duplicates", homenet, "--min", 0.5, "--json")
    listed = json.loads(shown.out)
    rows = list(csv.DictReader(io.StringIO(run("duplicates", homenet, "--min", 0.5, "--csv").out)))
    assert [row["id"] for row in rows] == [pair["id"] for pair in listed]
    assert [float(row["score"]) for row in rows] == [pair["score"] for pair in listed]
    file = io.BytesIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", ["askalike", "duplicates", str(homenet), "--min", "0.5", "--parquet"])
        patched.setattr(sys, "stdout", io.TextIOWrapper(file))
        with contextlib.suppress(SystemExit):
            main()
        assert parquet.read_table(io.BytesIO(file.getvalue())).to_pylist() == listed


def test_since_keeps_pairs_of_which_one_is_as_new(run: Run, tmp_path: Path) -> None:
    forum = tmp_path / "dated.forum"
    days = {"z0": ("Zebra crossing 0", 2020), "z1": ("Zebra crossing 0", 2021), "z2": ("Zebra crossing 1", 2022)}
    with Forum.create(forum) as opened:
        opened.add(
            Question(name, title, created=datetime(year, 1, 1, tzinfo=UTC)) for name, (title, year) in days.items()
        )
        opened.add(Question("z3", "Zebra crossing 0", created=datetime(2023, 6, 1, tzinfo=UTC)))
    pairs = run("duplicates", forum, "--exact", "--since", "2023-01-01", "--json").json
    assert {(pair["id"], pair["original_id"]) for pair in pairs} == {("z3", "z0")}
    assert len(run("duplicates", forum, "--exact", "--json").json) == 2


def test_pairs_of_a_tag_are_those_of_which_a_question_has_it(run: Run, homenet: Path) -> None:
    every = run("duplicates", homenet, "--min", 0.1, "--json").json
    with Forum.open(homenet) as forum:
        tags = {question.id: question.tags for question in forum.questions()}
    tag = next(tag for pair in reversed(every) for tag in tags[pair["id"]])
    wanted = [pair for pair in every if tag in (*tags[pair["id"]], *tags[pair["original_id"]])]
    assert 0 < len(wanted) < len(every)
    assert run("duplicates", homenet, "--min", 0.1, "--tag", tag, "--json").json == wanted
    assert run("duplicates", homenet, "--min", 0.1, "--tag", tag.upper(), "--json").json == wanted
    assert run("duplicates", homenet, "--tag", "none of these", "--json").json == []
    assert run("duplicates", homenet, "--tag", tag, "--groups").code == 2


def test_a_pair_that_is_judged_different_is_listed_no_more(run: Run, small: Path) -> None:
    (pair,) = run("duplicates", small, "--exact", "--json").json
    assert (pair["id"], pair["original_id"], pair["exact"], pair["score"]) == ("b", "a", True, 1.0)
    assert len(run("duplicates", small, "--json").json) == 1
    assert run("judge", small, "b", "a", "different", "--json").json["verdict"] == "different"
    assert run("duplicates", small, "--json").json == []
    run("judge", small, "b", "a", "withdrawn")
    assert len(run("duplicates", small, "--json").json) == 1
    assert run("judge", small, "b", "a", "maybe").code == 2


def test_hits_below_the_threshold_are_shown_where_all_are_asked_for(run: Run, homenet: Path) -> None:
    off_topic = "best hiking boots for the Alps"
    new = run("search", homenet, off_topic, "-k", 2).out
    assert new.startswith("The question looks new.\n2 hits less likely than ")
    assert run("search", homenet, off_topic, "-k", 2, "--all").out.startswith("The question looks new.\n\n1 ")
    assert len(run("search", homenet, off_topic, "-k", 2, "--json").json) == 2
    assert run("search", homenet, ASKED, "-k", 2).out.startswith("1 ")
    assert run("search", homenet, off_topic, "--min", 0.5).out == "No similar questions found.\n"
    unreadable = run("search", homenet, "asdf qwer").out
    assert unreadable.startswith("No similar questions found.\n10 hits less likely than ")


def test_many_questions_are_answered_in_one_pass_as_each_alone(run: Run, homenet: Path, tmp_path: Path) -> None:
    file = tmp_path / "asked.txt"
    file.write_text(f"{ASKED}\n\nWifi drops\u2028every evening\n", encoding="utf-8")
    trec = tmp_path / "out.trec"
    results = run("search", homenet, "--batch", file, "--run", trec, "-k", 3, "--json").json
    assert [result["query"] for result in results] == ["1", "3"]
    for title, result in zip((ASKED, "Wifi drops every evening"), results, strict=True):
        alone = run("search", homenet, title, "-k", 3, "--json").json
        assert [hit["question"]["id"] for hit in result["hits"]] == [hit["question"]["id"] for hit in alone]
    lines = [line.split() for line in trec.read_text().splitlines()]
    assert [line[0] for line in lines] == ["1"] * 3 + ["3"] * 3
    assert [line[2] for line in lines] == [hit["question"]["id"] for result in results for hit in result["hits"]]


def test_a_batch_may_be_any_archive_and_says_what_is_wrong_with_it(run: Run, homenet: Path, tmp_path: Path) -> None:
    table = tmp_path / "asked.csv"
    table.write_text(f"id,title\nfirst,{ASKED}\n", encoding="utf-8")
    assert [result["query"] for result in run("search", homenet, "--batch", table, "-k", 1, "--json").json] == ["first"]
    assert ASKED in run("search", homenet, "--batch", table, "-k", 1).out
    (tmp_path / "empty.txt").write_text("\n")
    for words in (("--batch", tmp_path / "empty.txt"), ("title", "--batch", table), ("title", "--run", "out")):
        assert run("search", homenet, *words).code in (1, 2)
    table.write_text(f"id,title\na b,{ASKED}\n", encoding="utf-8")
    assert "spaces" in run("search", homenet, "--batch", table, "--run", tmp_path / "out").err


def test_an_export_is_read_back_by_index(run: Run, homenet: Path, tmp_path: Path) -> None:
    done = run("export", homenet, "--into", tmp_path / "export", "--json").json
    assert done["tables"] == {"questions": 252, "answers": 279, "links": 85, "judgements": 0, "log": 0}
    assert run("index", tmp_path / "export", "--into", tmp_path / "new.forum", "--no-encode").code == 0
    printed = [run("export", forum, "--answers").out for forum in (homenet, tmp_path / "new.forum")]
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == 279
    assert run("export", homenet).code == 2
    assert run("export", homenet, "--links", "--json").code == 2
    assert run("export", homenet, "--into", tmp_path / "export", "--csv").code == 0
    refused = run("index", tmp_path / "export", "--into", tmp_path / "other.forum", "--no-encode")
    assert refused.code != 0
    assert "without --csv" in refused.err


def test_a_question_is_shown_with_all_that_belongs_to_it(run: Run, small: Path) -> None:
    with Forum.open(small) as forum:
        forum.store.add_answers([Answer("answer-1", "a", "Give it a **fixed** address.", "markdown")])
        forum.store.put_links([Link("b", "a")])
    assert run("judge", small, "c", "a", "different", "--by", "ann").code == 0
    lines = run("show", small, "a").out
    for needed in (
        "Printer is offline",
        "Give it a fixed address.",
        "duplicate: b",
        "judged different by ann beside c",
    ):
        assert needed in lines
    shown = run("show", small, "a", "--json").json
    assert [answer["id"] for answer in shown["answers"]] == ["answer-1"]
    assert shown["links"] == [{"source_id": "b", "target_id": "a", "kind": "duplicate"}]
    assert [judgement["verdict"] for judgement in shown["judgements"]] == ["different"]
    assert run("show", small, "none").code == 1


def test_a_search_for_what_is_like_a_question_does_not_find_it(run: Run, homenet: Path) -> None:
    hits = run("similar", homenet, "q1156", "-k", 3, "--json").json
    assert hits[0]["question"]["id"] == "q1045"
    assert "q1156" not in {hit["question"]["id"] for hit in hits}
    assert run("similar", homenet, "none").code == 1


def test_a_forum_lists_its_sources_and_what_came_from_one_can_be_deleted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.forum"
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(f"id,title\n{name}-1,Printer is offline\n", encoding="utf-8")
        run("index", tmp_path / f"{name}.csv", "--into", path, "--source", name, "--no-encode")
    assert [source["name"] for source in run("info", path, "--json").json["sources"]] == ["one", "two"]
    assert "name one, format table, questions 1" in run("info", path).out
    with Forum.open(path) as forum:
        assert forum.store.delete_source("one").questions == 1
        with pytest.raises(UnknownIdError, match="lists them"):
            forum.store.delete_source("three")
    assert [source["name"] for source in run("info", path, "--json").json["sources"]] == ["two"]
    assert [hit["question"]["id"] for hit in run("search", path, "printer", "--json").json] == ["two-1"]


def test_long_work_without_a_terminal_says_in_lines_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(cli_messages.time, "monotonic", lambda: now[0])
    progress = cli_messages.BarProgress(says_start=True)
    with progress:
        progress.start("epoch 1/1", 400, "batches")
        for _ in range(100):
            now[0] += 3
            progress.advance(1)
    assert capsys.readouterr().err.splitlines() == [
        "epoch 1/1: 400 batches",
        "epoch 1/1: 20 of 400 batches, about 19 minutes left",
        "epoch 1/1: 80 of 400 batches, about 16 minutes left",
    ]

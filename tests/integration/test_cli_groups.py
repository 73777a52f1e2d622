"""Groups of questions that ask the same, as the command line and a notebook show them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from tests.command import Run

from askalike import Answer, Forum, Link, Question
from askalike.types import GroupList

TITLES = ("Printer is offline after a power cut", "Scanner makes no sound", "How to water a cactus in winter")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "a.forum") as forum:
        for number, title in enumerate(TITLES):
            forum.add([Question(f"{number}{letter}", title, f"<b>{letter}</b> says so.") for letter in "ab"])
        forum.store.add_answers([Answer("x", "1b", "It is broken.", is_accepted=True)])
    return tmp_path / "a.forum"


def test_groups_are_printed_with_the_question_to_answer_by_first(run: Run, path: Path) -> None:
    lines = run("duplicates", path, "--groups").out.splitlines()
    assert "1b: Scanner makes no sound" in lines
    assert lines[lines.index("1b: Scanner makes no sound") + 2] == "  1a: Scanner makes no sound"
    assert any("2 times, same question, the least likely pair" in line for line in lines)


def test_groups_are_told_to_programs_with_their_titles(run: Run, path: Path) -> None:
    groups = run("duplicates", path, "--groups", "--json").json
    assert sorted(map(sorted, (group["members"] for group in groups))) == [["0a", "0b"], ["1a", "1b"], ["2a", "2b"]]
    assert {tuple(group["titles"]) for group in groups} == {(title, title) for title in TITLES}
    assert {group["canonical"] for group in groups} >= {"1b"}
    rows = list(csv.DictReader(io.StringIO(run("duplicates", path, "--groups", "--csv", "--limit", 1).out)))
    assert [row["group"] for row in rows] == ["1", "1"]
    assert rows[0]["id"] == rows[0]["canonical_id"] == rows[1]["canonical_id"]


def test_groups_take_no_option_of_pairs_alone(run: Run, path: Path) -> None:
    for words in (("--exact",), ("--since", "2020-01-01"), ("--min", 0.3)):
        assert run("duplicates", path, "--groups", *words).code == 2


def test_a_forum_without_groups_says_so(run: Run, tmp_path: Path) -> None:
    with Forum.create(tmp_path / "b.forum") as forum:
        forum.add(Question("a", "Printer is offline"))
    done = run("duplicates", tmp_path / "b.forum", "--groups")
    assert (done.out, done.err) == ("No questions ask the same.\n", "note: --min 0.5 lists less likely pairs too\n")
    assert run("duplicates", tmp_path / "b.forum", "--groups", "--min", 0.5).err == ""


def test_a_notebook_shows_groups_with_their_titles_escaped(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "b.forum") as forum:
        forum.add(
            [Question("a", "<b>bold</b> text"), Question("b", "<b>bold</b> text", url="https://a.example/?x=1&y")]
        )
        forum.store.put_links([Link("b", "a")])
        forum.pairs.compare()
        shown = forum.groups.find()._repr_html_()
    assert shown.count("&lt;b&gt;bold&lt;/b&gt; text") == 2
    assert '<a href="https://a.example/?x=1&amp;y"' in shown
    assert "<b>" not in shown
    assert GroupList()._repr_html_() == "<p>No questions ask the same.</p>"

"""Groups of questions that ask the same, and a forum's queue judged key by key in a terminal."""

from __future__ import annotations

import csv
import io
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run

from askalike import Answer, Forum, Link, Question
from askalike.cli.judge import judge_queue
from askalike.types import GroupList

TITLES = ("Printer is offline after a power cut", "Scanner makes no sound", "How to water a cactus in winter")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "a.forum") as made:
        for number, title in enumerate(TITLES):
            made.add([Question(f"{number}{letter}", title, f"<b>{letter}</b> says so.") for letter in "ab"])
        made.store.add_answers([Answer("x", "1b", "It is broken.", is_accepted=True)])
    return tmp_path / "a.forum"


def test_groups_are_printed_with_the_question_to_answer_by_first(run: Run, path: Path) -> None:
    lines = run("duplicates", path, "--groups").out.splitlines()
    assert "1b: Scanner makes no sound" in lines
    assert lines[lines.index("1b: Scanner makes no sound") + 2] == "  1a: Scanner makes no sound"
    assert any("2 times, same question, the least likely pair" in line for line in lines)


def test_groups_are_told_to_programs_with_their_titles(run: Run, path: Path) -> None:
    found = run("duplicates", path, "--groups", "--json").json
    assert sorted(map(sorted, (one["members"] for one in found))) == [["0a", "0b"], ["1a", "1b"], ["2a", "2b"]]
    assert {tuple(one["titles"]) for one in found} == {(title, title) for title in TITLES}
    assert {one["canonical"] for one in found} >= {"1b"}
    rows = list(csv.DictReader(io.StringIO(run("duplicates", path, "--groups", "--csv", "--limit", 1).out)))
    assert [row["group"] for row in rows] == ["1", "1"]
    assert rows[0]["id"] == rows[0]["canonical_id"] == rows[1]["canonical_id"]


def test_groups_take_no_option_of_pairs_alone(run: Run, path: Path) -> None:
    for words in (("--exact",), ("--since", "2020-01-01"), ("--min", 0.3)):
        assert run("duplicates", path, "--groups", *words).code == 2


def test_a_forum_without_groups_says_so(run: Run, tmp_path: Path) -> None:
    with Forum.create(tmp_path / "b.forum") as made:
        made.add(Question("a", "Printer is offline"))
    assert run("duplicates", tmp_path / "b.forum", "--groups").out == "No questions ask the same.\n"


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


# -- judging -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def forum(path: Path) -> Iterator[Forum]:
    with Forum.open(path) as opened:
        opened.pairs.compare()
        yield opened


def verdicts(forum: Forum) -> dict[frozenset[str], str]:
    return {frozenset((one.question_id, one.candidate_id)): one.verdict for one in forum.store.all_feedback()}


def scripted(keys: str) -> Callable[[], str]:
    waiting = iter(keys)
    return lambda: next(waiting)


def test_each_key_is_stored_at_once_with_how_the_pair_was_drawn(forum: Forum) -> None:
    first, second = list(forum.queue.proposals())[:2]
    assert judge_queue(forum, "ann", scripted("y?Nq")) == 2
    stored = list(forum.store.all_feedback())
    assert [one.verdict for one in stored] == ["duplicate", "different"]
    assert [one.by for one in stored] == ["ann", "ann"]
    assert [one.draw for one in stored] == [first.draw, second.draw]
    assert [one.draw.by for one in stored] == ["queue", "queue"]
    assert stored[0].draw.probability == pytest.approx(first.likelihood)


def test_a_judgement_is_taken_back_and_given_anew(forum: Forum) -> None:
    assert judge_queue(forum, "", scripted("uysnunuunq")) == 1
    assert sorted(verdicts(forum).values()) == ["different", "withdrawn"]


def test_what_is_skipped_comes_again_next_time(forum: Forum) -> None:
    assert judge_queue(forum, "", scripted("s" * 9)) == 0
    assert judge_queue(forum, "", scripted("yyyq")) == 3
    assert judge_queue(forum, "", scripted("")) == 0


def test_a_queue_is_judged_in_a_terminal_alone(run: Run, path: Path) -> None:
    for words in ((), ("--json",), ("0a",), ("0a", "0b")):
        done = run("judge", path, *words)
        assert (done.code, "pair" in done.err) == (2, True)


class Terminal:
    """A program in a terminal of its own: what it writes, and keys for it."""

    def __init__(self, *words: object) -> None:
        program = "import sys; sys.argv[0] = 'askalike'; from askalike.cli.main import main; main()"
        self.modes: Any = pytest.importorskip("termios", reason="this system has no terminals of this kind")
        self.pid, self.file = pytest.importorskip("pty").fork()
        if not self.pid:
            os.environ.update(COLUMNS="100", TERM="xterm")
            os.execv(sys.executable, [sys.executable, "-c", program, *map(str, words)])
        self.written = ""

    def wait_for(self, text: str) -> None:
        start, end = len(self.written), time.monotonic() + 120
        while text not in self.written[start:]:
            assert select.select([self.file], [], [], end - time.monotonic())[0], self.written
            self.written += self.read()

    def read(self) -> str:
        try:
            return os.read(self.file, 65_536).decode(errors="replace")
        except OSError:  # as Linux says that the program has ended
            return ""

    def press(self, key: str) -> None:
        """Press a key once the program listens for one: what comes before is dropped, as a slip should be."""
        while self.modes.tcgetattr(self.file)[3] & self.modes.ECHO:
            time.sleep(0.01)
        os.write(self.file, key.encode())

    def end(self) -> int:
        while read := self.read():
            self.written += read
        os.close(self.file)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_person_judges_by_single_keys_in_a_terminal(path: Path) -> None:
    terminal = Terminal("judge", path, "--by", "ann")
    for key in "ynu\x03":
        terminal.wait_for("q quit")
        terminal.press(key)
    assert terminal.end() == 0
    assert "1 judged; to go on:" in terminal.written
    assert "almost certainly the same" in terminal.written
    with Forum.open(path) as forum:
        assert sorted(verdicts(forum).values()) == ["duplicate", "withdrawn"]
        assert {one.by for one in forum.store.all_feedback()} == {"ann"}

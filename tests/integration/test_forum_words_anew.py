"""Words are indexed anew beside the index that answers: nobody misses a question meanwhile, nor after a kill."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.children import in_child, printed_by

from askalike import Forum, ForumSettings, Query, Question
from askalike.errors import ForumError
from askalike.forum import indexes
from askalike.forum.indexes import remove_indexes
from askalike.models import encoder_settings
from askalike.progress import SilentProgress
from askalike.store import ForumLayout, open_store
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings

pytestmark = [
    pytest.mark.usefixtures("words_alone"),
    pytest.mark.skipif(sys.platform == "win32", reason="a folder of open files cannot be renamed there"),
]

QUESTIONS = [Question(f"q{number}", f"printer {number} is offline", "since the update") for number in range(6)]
ALL = sorted(question.id for question in QUESTIONS)


class During(SilentProgress):
    """Does something when the first questions were put into an index that is not complete."""

    def __init__(self, what: Callable[[], None]) -> None:
        self.what: Callable[[], None] | None = what

    def advance(self, count: int) -> None:
        what, self.what = self.what, None
        if what is not None:
            what()


def found(forum: Forum) -> list[str]:
    result = forum.search(Query("printer", k=20, ranker="words"))
    assert not result.notice
    return sorted(hit.question.id for hit in result.hits)


def begin_anew(path: Path) -> None:
    """Make a forum whose words are to be indexed anew: ``reindex`` was killed when it had begun."""
    with Forum.create(path) as forum:
        forum.add(QUESTIONS)
    layout = ForumLayout(path)
    with closing(open_store(layout)) as store:
        remove_indexes(layout, ForumSettings(has_vectors=False), (store, Analyzer(TextSettings())))


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    begin_anew(tmp_path / "f")
    monkeypatch.setattr("askalike.forum.indexes.AT_ONCE", 0)  # as in a large forum
    return tmp_path / "f"


def inode(path: Path) -> int:
    return ForumLayout(path).lexical.stat().st_ino


def test_the_index_that_is_there_answers_as_the_one_made_anew(begun: Path) -> None:
    asked, old = Query("printer 3 update", k=20, ranker="words"), inode(begun)
    with Forum.open(begun) as forum:
        wanted = [bool(forum.indexes.upkeep())]
        assert forum.info().upkeep == ("the words are to be indexed anew",)
        before = [(hit.question.id, hit.score) for hit in forum.search(asked).hits]
        assert len(before) == 6
        forum.add(Question("late", "printer 9 is lost"))  # others go on to write it
        forum.delete("late")
        forum.upkeep()
        assert [*wanted, bool(forum.indexes.upkeep())] == [True, False]
        assert forum.info().upkeep == ()
        assert [(hit.question.id, hit.score) for hit in forum.search(asked).hits] == before
    assert inode(begun) != old
    assert sorted(path.name for path in begun.glob("lexical*")) == ["lexical"]


def test_others_find_and_write_everything_while_words_are_indexed_anew(begun: Path) -> None:
    opened: list[Forum] = []
    old = inode(begun)

    def others() -> None:
        with Forum.open(begun) as other:
            assert found(other) == ALL
            other.add(Question("late", "printer 9 is lost"))
            other.edit(Question("q0", "scanner is silent"))
            assert found(other) == sorted({*ALL, "late"} - {"q0"})
        opened.append(Forum.open(begun))
        assert inode(begun) == old

    with Forum.open(begun) as forum:
        forum.upkeep(progress=During(others))
        assert found(forum) == found(opened[0]) == sorted({*ALL, "late"} - {"q0"})
    assert inode(begun) != old
    opened[0].add(Question("later", "printer 10 is lost"))
    assert "later" in found(opened[0])
    opened[0].close()
    assert Forum.check(begun).findings == ()


def test_others_find_everything_while_a_forum_is_reindexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.forum.indexes.AT_ONCE", 0)
    with Forum.create(tmp_path / "f") as forum:
        forum.add(QUESTIONS)

        def another() -> None:
            with Forum.open(tmp_path / "f") as other:
                assert found(other) == ALL == found(forum)

        before = inode(tmp_path / "f")
        progress = During(another)
        Forum.reindex(tmp_path / "f", progress=progress).close()
        assert progress.what is None
        assert found(forum) == ALL
        assert inode(tmp_path / "f") != before


def test_an_index_with_other_files_beside_it_is_not_replaced(begun: Path) -> None:
    (begun / "lexical" / "mine.txt").write_text("kept")
    with Forum.open(begun) as forum:
        assert not bool(forum.indexes.upkeep())
        forum.upkeep()
        assert found(forum) == ALL
    assert (begun / "lexical" / "mine.txt").exists()
    with pytest.raises(ForumError, match=r"mine\.txt is not a file of the word index"):
        Forum.reindex(begun)


def test_check_tells_what_waits_to_be_indexed_anew(begun: Path) -> None:
    report = Forum.check(begun)
    assert [(one.path, one.is_damage) for one in report.findings] == [("lexical.next", False)]
    with Forum.open(begun) as forum, pytest.raises(KeyboardInterrupt):
        forum.upkeep(progress=During(interrupt))
    report = Forum.check(begun)
    assert [(one.path, one.is_damage) for one in report.findings] == [("lexical.next", False)]
    with Forum.open(begun) as forum:
        forum.upkeep()
    assert Forum.check(begun).findings == ()


def interrupt() -> None:
    raise KeyboardInterrupt


def kill_at_each_step(folder: Path) -> None:
    """Index words anew, in one child after the other, and kill each of them at a later step; one comes to the end."""
    indexes.AT_ONCE = 0  # type: ignore[attr-defined]
    encoder_settings.general_folder = lambda: None  # type: ignore[attr-defined]
    for place in range(1, 1_000):
        path = folder / str(place)
        assert not in_child(partial(begin_anew, path))
        status = in_child(partial(renew, path, place))
        assert not in_child(partial(look, path, place))
        if not status:
            print(place)
            return
        assert os.WTERMSIG(status) == signal.SIGKILL


def renew(path: Path, place: int) -> None:
    count_steps(place)
    with Forum.open(path) as forum:
        forum.upkeep()


def look(path: Path, place: int) -> None:
    for is_renewed in (False, True):
        with Forum.open(path) as forum:
            if is_renewed:
                forum.upkeep()
            assert found(forum) == ALL, (place, is_renewed)
    assert sorted(one.name for one in path.glob("lexical*")) == ["lexical"]
    assert Forum.check(path).is_sound


def count_steps(place: int) -> None:
    """Kill this process before its step of this number: a file or folder that is replaced, renamed or removed."""
    left = place

    def counting(done: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            return done(*given, **named)

        return step

    for name in ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync"):
        setattr(os, name, counting(getattr(os, name)))


@pytest.mark.slow  # a process is killed at each of its steps
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_killed_process_leaves_one_of_both_indexes_wherever_it_is_killed(tmp_path: Path) -> None:
    told = printed_by("test_forum_words_anew", "kill_at_each_step", tmp_path)
    assert int(told.split()[-1]) > 15  # so many steps there are to be killed at

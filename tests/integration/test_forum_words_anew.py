"""Words are indexed anew in place: who has the forum open misses no question meanwhile, and nobody after a kill."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.children import in_child, printed_by

from askalike import Forum, ForumSettings, Query, Question
from askalike.errors import ForumError
from askalike.models import encoder_settings
from askalike.progress import SilentProgress
from askalike.store import ForumLayout

pytestmark = pytest.mark.usefixtures("words_alone")

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


def fill(path: Path) -> None:
    with Forum.create(path) as forum:
        forum.add(QUESTIONS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "f")
    return tmp_path / "f"


def test_others_search_and_write_while_words_are_indexed_anew(path: Path) -> None:
    with Forum.open(path) as forum:

        def others() -> None:
            assert found(forum) == ALL
            forum.put_unindexed([Question("late", "printer 9 is lost")])
            assert not forum.catch_up(is_waiting=False)
            assert found(forum) == ALL
            with Forum.open(path) as opened:
                assert opened.search(Query("printer", ranker="words")).notice.startswith("indexing is not finished")

        progress = During(others)
        Forum.reindex(path, progress=progress).close()
        assert progress.what is None
        forum.catch_up()
        assert found(forum) == sorted([*ALL, "late"])
    assert Forum.check(path).findings == ()


def test_a_forum_that_is_open_begins_an_index_that_was_deleted(path: Path) -> None:
    with Forum.open(path) as forum:
        shutil.rmtree(ForumLayout(path).lexical)
        assert found(forum) == ALL
        forum.add(Question("late", "printer 9 is lost"))
        assert found(forum) == sorted([*ALL, "late"])


def test_an_index_with_other_files_in_it_is_not_deleted(path: Path) -> None:
    (path / "lexical" / "mine.txt").write_text("kept")
    with pytest.raises(ForumError, match=r"mine\.txt is not a file of the word index"):
        Forum.reindex(path)
    assert (path / "lexical" / "mine.txt").exists()
    (path / "lexical" / "mine.txt").unlink()
    with Forum.open(path) as forum:
        assert found(forum) == ALL


def test_words_whose_indexing_was_interrupted_are_indexed_by_who_opens_the_forum(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Forum.reindex(path, progress=During(interrupt))
    assert Forum.check(path).is_sound
    with Forum.open(path) as forum:
        assert found(forum) == ALL
    assert Forum.check(path).findings == ()


def interrupt() -> None:
    raise KeyboardInterrupt


def kill_at_each_step(folder: Path) -> None:
    """Index words anew, in one child after the other, and kill each of them at a later step; one comes to the end."""
    encoder_settings.general_folder = lambda: None  # type: ignore[attr-defined]
    for place in range(1, 1_000):
        path = folder / str(place)
        assert not in_child(partial(fill, path))
        status = in_child(partial(reindex, path, place))
        assert not in_child(partial(look, path, place))
        if not status:
            print(place)
            return
        assert os.WTERMSIG(status) == signal.SIGKILL


def reindex(path: Path, place: int) -> None:
    count_steps(place)
    Forum.reindex(path, settings=ForumSettings(has_vectors=False)).close()


def look(path: Path, place: int) -> None:
    with Forum.open(path) as forum:
        assert found(forum) == ALL, place
    assert sorted(folder.name for folder in path.glob("lexical*")) == ["lexical"]
    assert Forum.check(path).is_sound


def count_steps(place: int) -> None:
    """Kill this process before its step of this number: a file or folder that is replaced, renamed or removed."""
    left = place

    def counting(done: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            return done(*arguments, **named)

        return step

    for name in ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync"):
        setattr(os, name, counting(getattr(os, name)))


@pytest.mark.slow  # a process is killed at each of its steps
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_killed_process_leaves_what_the_next_one_finishes_wherever_it_is_killed(tmp_path: Path) -> None:
    output = printed_by("test_forum_words_anew", "kill_at_each_step", tmp_path)
    assert int(output.split()[-1]) > 8  # so many steps there are to be killed at

"""A forum that follows a fake one, on the fake one's clock, and is killed now and then."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fake_discourse import FakeDiscourse, serving

from askalike import Forum
from askalike.follow.discourse import Discourse
from askalike.follow.follower import Follower, Rhythm
from askalike.follow.settings import FollowSettings
from askalike.follow.site import Clock, Pace
from askalike.follow.state import State
from askalike.follow.webhook import receive
from askalike.progress import Progress, SilentProgress
from askalike.store import ForumLayout
from askalike.types import Thread


class Killed(BaseException):
    """Ends the follower as a kill does: nothing of it is cleaned up."""


@dataclass
class Following:
    """A forum's folder, what it follows, and how.

    Args:
        kill_after: so many writes to its own file, a follower is killed; 0 for never.
    """

    folder: Path
    fake: FakeDiscourse
    address: str
    rhythm: Rhythm = field(default_factory=lambda: Rhythm(check_s=60.0))
    kill_after: int = 0
    is_mass_delete_allowed: bool = True

    @property
    def layout(self) -> ForumLayout:
        return ForumLayout(self.folder)

    def prepare(self, secret_variable: str = "", **more: Any) -> None:
        settings = FollowSettings(self.address, "discourse", secret_variable=secret_variable, **more)
        with State.create(self.layout) as state:
            state.put(settings=settings.to_json())

    @contextmanager
    def follower(
        self, *, key: str = "", private: tuple[str, ...] = (), progress: Progress | None = None
    ) -> Iterator[Follower]:
        with Forum.open(self.folder) as forum, State(self.layout) as state:
            if self.kill_after:
                _kill(state, forum, self.kill_after)
            clock = Clock(lambda: self.fake.wall_s(), lambda: self.fake.now_s, self.fake.advance)
            site = Discourse(self.address, Pace(self.fake.rate, clock), key, private=private)
            settings = FollowSettings(self.address, "discourse")
            yield Follower(
                forum,
                site,
                state,
                settings.origin,
                self.rhythm,
                is_mass_delete_allowed=self.is_mass_delete_allowed,
                progress=progress or SilentProgress(),
            )

    def live(self, until_s: float, **more: Any) -> None:
        """Follow until the fake forum's clock says so."""
        with self.follower(**more) as follower:
            while self.fake.now_s < until_s:
                wait_s = follower.turn()
                if wait_s > 0:
                    self.fake.advance(min(wait_s, 60.0))

    def settle(self, **more: Any) -> None:
        """Follow a forum that does not change any more until it is compared whole, with every topic read again."""
        self.fake.mutations_s = 0.0
        self.fake.chances = dict.fromkeys(self.fake.chances, 0.0)
        self.rhythm = Rhythm(check_s=60.0, sweep_s=1.0, recheck_s=1.0)
        since_s = self.fake.now_s
        with self.follower(**more) as follower, State(self.layout) as state:
            while True:
                wait_s = follower.turn()
                swept = state.get("swept") or {}
                with closing(sqlite3.connect(self.layout.follow)) as rows:
                    has_read = not rows.execute("SELECT 1 FROM known WHERE read_s < ?", (since_s + 1,)).fetchone()
                if swept.get("began_s", 0) > since_s + 1 and has_read and not sum(state.waiting()[:3]):
                    break
                self.fake.advance(min(wait_s, 60.0) if wait_s > 0 else 0.01)
        Forum.open(self.folder).close()  # lets be found what the last turn stored

    def differences(self) -> list[str]:
        """Return how the forum differs from what everybody may read of the fake one."""
        return compared(self.folder, self.fake.threads(self.address))


def _kill(state: State, forum: Forum, after: int) -> None:
    """Let a write in ``after`` be the last, before or behind it."""
    left = [after]

    def counted(inner: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 1:
                raise Killed
            outcome = inner(*arguments, **named)
            if left[0] <= 0:
                raise Killed
            return outcome

        return call

    for name in ("add_listed", "finish", "put", "postpone"):
        setattr(state, name, counted(getattr(state, name)))
    forum.store.replace_threads = counted(forum.store.replace_threads)  # type: ignore[method-assign]


def compared(folder: Path, wanted: dict[str, Thread]) -> list[str]:
    """Return how a forum differs from these threads."""
    differences: list[str] = []
    with Forum.open(folder) as forum:
        questions = {question.id: question for question in forum.questions()}
        links: dict[str, set[Any]] = {}
        for link in forum.store.links():
            links.setdefault(link.source_id, set()).add(link)
        for identifier in questions.keys() | wanted.keys():
            if identifier not in wanted or identifier not in questions:
                differences.append(f"{identifier}: {'should be gone' if identifier in questions else 'is missing'}")
                continue
            thread = wanted[identifier]
            if questions[identifier] != thread.question:
                differences.append(f"{identifier}: {questions[identifier]} is not {thread.question}")
            if (answers := {a.id: a for a in forum.answers(identifier)}) != {a.id: a for a in thread.answers}:
                differences.append(f"{identifier}: answers {answers} are not {thread.answers}")
            if links.get(identifier, set()) != {link for link in thread.links if link.target_id in wanted}:
                differences.append(f"{identifier}: links {links.get(identifier)} are not {thread.links}")
        if forum.indexes.behind():
            differences.append(f"searches do not see {forum.indexes.behind()} changes")
    return differences


@contextmanager
def living(folder: Path, seed: int, topics: int, *, secret: str = "secret", **more: Any) -> Iterator[Following]:
    """Give an empty forum, and a fake one of so many topics for it to follow."""
    Forum.create(folder).close()
    layout = ForumLayout(folder)
    fake = FakeDiscourse(seed, topics, secret=secret, **more)

    def deliver(headers: Any, content: bytes) -> None:
        receive(layout, headers, content, lambda: fake.now_s)

    fake.deliver = deliver
    with serving(fake) as address:
        yield Following(folder, fake, address)

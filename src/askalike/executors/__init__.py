"""Who does work on many questions: processes of this machine, or Ray's on many; no result depends on which.

What makes an entry of a question, its terms or its vector, takes nearly all the time of indexing and depends on nothing
else; a search for its likely duplicates depends on the indexes alone. So a ``Task`` is done part by part, anywhere, and
``Executor.map`` gives what became of each part, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from askalike.types import Question

Numbered = Sequence[tuple[int, Question]]
"""Questions, each with its internal number."""

CLUSTERS: Final = "local; ray, for the cluster that this machine is part of or RAY_ADDRESS names; or ray://HOST:PORT"

Result = TypeVar("Result")
Tag = TypeVar("Tag")


@dataclass(frozen=True, slots=True)
class Task(Generic[Result]):
    """Work on questions that any process can do.

    Args:
        run: does it in this process.
        module: of askalike, with a function ``preparing(order)`` that returns what does the same, and packs the result;
            "" where only this process can.
        order: what that function is given.
        unpack: reads a packed result.
        worth_it: from so many questions on other processes of this machine are started, which takes a second of each.
        has_threads: ``run`` uses all cores of a machine by itself, so that more processes gain nothing there.
        folder: the order, where it is the folder of a forum that is read.
    """

    run: Callable[[Numbered], Result]
    module: str
    order: str
    unpack: Callable[[bytes], Result]
    worth_it: int = 4_096
    has_threads: bool = False
    folder: Path | None = None


class Executor(Protocol):
    """Does tasks. Use as a context manager where it is to be closed."""

    def map(
        self, task: Task[Result], parts: Iterable[tuple[Tag, Numbered]], total: int
    ) -> Iterator[tuple[Tag, Numbered, Result]]:
        """Yield each part with its tag and its result, in order; only a few parts are held at a time.

        Args:
            total: questions in all parts, about.

        Raises:
            AskalikeError: the task cannot be done where it was to be done.
        """

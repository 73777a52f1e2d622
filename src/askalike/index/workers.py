"""Other processes that prepare the entries of an index, or search for likely pairs, one for each core.

What makes an entry of a question, its terms or its vector, takes nearly all the time of indexing and depends on nothing
else; a search for its likely duplicates depends on the indexes alone. Most of it is Python, which computes on one core
in a process: so each worker is a process. It is a program of its own, not a child of ``multiprocessing``, which would
run the caller's script again; and it ends when its standard input does, thus with its parent. Questions and entries
travel as MessagePack, some batches at a time; a ``Pool`` answers requests of any other kind.

No result depends on workers: what one of them fails at is prepared here, and what is wrong then shows itself here.
"""

from __future__ import annotations

import importlib
import os
import queue
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Generic, TypeVar

import msgspec

import askalike
from askalike.processes import collect_rarely, cores
from askalike.types import Question

Numbered = Sequence[tuple[int, Question]]

WORTH_IT: Final = 4_096
"""From so many questions on workers are started, which takes a second of each."""

MOST: Final = 8
"""Workers; each takes some 200 MB."""

_SIZE: Final = struct.Struct("<Q")
_MOST_BYTES: Final = 1 << 32
_WAITING_EACH: Final = 2
_TRIES: Final = 3
_ENDING_S: Final = 5.0
_PROGRAM: Final = "import sys; from askalike.index.workers import serve; serve(*sys.argv[1:])"
_Entries = TypeVar("_Entries")
_Tag = TypeVar("_Tag")


@dataclass(frozen=True, slots=True)
class Remote(Generic[_Entries]):
    """How another process prepares entries.

    Args:
        module: of askalike, with a function ``preparing(order)`` that returns what makes packed entries of questions.
        order: what that function is told.
        unpacked: makes entries of packed ones.
    """

    module: str
    order: str
    unpacked: Callable[[bytes], _Entries]


def prepared(
    batches: Iterable[tuple[_Tag, Numbered]],
    total: int,
    prepare: Callable[[Numbered], _Entries],
    remote: Remote[_Entries] | None,
) -> Iterator[tuple[_Tag, Numbered, _Entries]]:
    """Yield each batch with its tag and its entries, in order; only a few batches are held at a time.

    Args:
        total: questions in all batches, about.
        prepare: makes entries in this process.
        remote: makes the same in others, where that can be done and is worth while.
    """
    count = min(MOST, cores())
    if remote is None or count < 2 or total < WORTH_IT or not _is_python():
        for tag, batch in batches:
            yield tag, batch, prepare(batch)
        return
    with _crew(remote, prepare, count) as entries_of, ThreadPoolExecutor(count) as threads:
        waiting: deque[tuple[_Tag, Numbered, Future[_Entries]]] = deque()
        try:
            for tag, batch in batches:
                waiting.append((tag, batch, threads.submit(entries_of, batch)))
                if len(waiting) > _WAITING_EACH * count:
                    first, of_first, entries = waiting.popleft()
                    yield first, of_first, entries.result()
            for tag, batch, entries in waiting:
                yield tag, batch, entries.result()
        finally:
            for _, _, entries in waiting:
                entries.cancel()


def _is_python() -> bool:
    """Return whether this program is an interpreter that can be started again: not one frozen into another program."""
    return "py" in Path(sys.executable or "").name.lower() and not getattr(sys, "frozen", False)


@contextmanager
def _crew(
    remote: Remote[_Entries], prepare: Callable[[Numbered], _Entries], count: int
) -> Iterator[Callable[[Numbered], _Entries]]:
    """Give what makes entries of a batch by the next free worker, for ``count`` threads."""
    workers: list[_Worker] = []
    free: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
    with suppress(OSError):  # as where no program may be started: the rest is done here
        for _ in range(count):
            workers.append(_Worker(remote.module, remote.order))
    for place in range(count):
        free.put(workers[place] if place < len(workers) else None)

    def entries_of(batch: Numbered) -> _Entries:
        worker = free.get()
        try:
            if worker is not None:
                return remote.unpacked(worker.ask(msgspec.msgpack.encode(batch)))
        except (OSError, ValueError, EOFError):  # it was killed, say, or could not read what it needs
            worker = None
        finally:
            free.put(worker)
        return prepare(batch)

    try:
        yield entries_of
    finally:
        for one in workers:
            one.end()


class _Worker:
    """One process; its first answer comes after it has loaded what it needs."""

    def __init__(self, module: str, order: str) -> None:
        home = str(Path(askalike.__file__).parents[1])
        paths = [home, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(  # -P: nothing of the folder that the user happens to be in
            [sys.executable, "-P", "-c", _PROGRAM, module, order],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | threads | {"PYTHONPATH": os.pathsep.join(paths)},
        )

    def ask(self, request: bytes) -> bytes:
        """Return what the worker makes of a request.

        Raises:
            OSError, EOFError: it has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        _send(self._process.stdin, request)
        answer = _received(self._process.stdout)
        if answer is None:
            raise EOFError
        return answer

    def end(self) -> None:
        """End the process, at once if it works."""
        self._process.kill()  # it has written nothing, and holds no lock
        with suppress(OSError, subprocess.TimeoutExpired):
            self._process.communicate(timeout=_ENDING_S)


class Pool:
    """Processes that answer requests as a module's ``answer(request)`` does, until it is closed.

    Args:
        module: of askalike.
        count: processes.
    """

    def __init__(self, module: str, count: int) -> None:
        self._module = module
        self._free: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        self._workers: set[_Worker] = set()
        self._threads = ThreadPoolExecutor(count)
        self._is_closed = False
        for _ in range(count):
            self._free.put(None)

    def answers(self, requests: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the answers as they come; what a process was at when it ended is asked of another one, twice.

        Raises:
            OSError, EOFError: no process can be started, or three ended over one request.
        """
        futures = [self._threads.submit(self._asked, request) for request in requests]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End the processes, whatever they are at."""
        self._is_closed = True
        for worker in list(self._workers):
            worker.end()
        self._threads.shutdown(cancel_futures=True)

    def _asked(self, request: bytes) -> bytes:
        worker = self._free.get()
        try:
            for left in reversed(range(_TRIES)):
                if worker is None:
                    worker = _Worker(self._module, "")
                    self._workers.add(worker)
                try:
                    return worker.ask(request)
                except (OSError, EOFError):
                    self._workers.discard(worker)
                    worker.end()
                    worker = None
                    if self._is_closed or not left:
                        raise
            raise EOFError
        finally:
            self._free.put(worker)


def serve(module: str, order: str) -> None:
    """Answer requests on standard input until it ends: what a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not be read as an answer
    loaded = importlib.import_module(module)
    answer: Callable[[bytes], bytes]
    if order:
        prepare: Callable[[Numbered], bytes] = loaded.preparing(order)
        decoder = msgspec.msgpack.Decoder(list[tuple[int, Question]])
        answer = lambda request: prepare(decoder.decode(request))  # noqa: E731
    else:
        answer = loaded.answer
    collect_rarely()
    while (request := _received(sys.stdin.buffer)) is not None:
        _send(answers, answer(request))


def _send(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(_SIZE.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def _received(pipe: IO[bytes]) -> bytes | None:
    """Return the next message, None where there is none any more."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    if size > _MOST_BYTES:
        return None  # no message of ours
    content = pipe.read(size)
    return content if len(content) == size else None

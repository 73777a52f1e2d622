"""Processes of this machine, one for each core.

Most of the work is Python, which computes on one core in a process. A worker is a program of its own, not a child of
``multiprocessing``, which would run the caller's script again; and it ends when its standard input does, thus with its
parent. Questions and results travel as MessagePack.

What a worker fails at is done in this process, and what is wrong then shows itself here.
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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

import askalike
from askalike.executors import Numbered, Result, Tag, Task
from askalike.processes import collect_rarely, cores
from askalike.types import Question

MAX_PROCESSES: Final = 8
"""Each takes some 200 MB."""

_SIZE: Final = struct.Struct("<Q")
_MOST_BYTES: Final = 1 << 32
_WAITING_EACH: Final = 2
_ENDING_S: Final = 5.0
_PROGRAM: Final = "import sys; from askalike.executors.processes import serve; serve(*sys.argv[1:])"


class Processes:
    """An executor of one process for each core; of few questions this process does the work.

    Args:
        count: processes; by default one for each core, at most ``MAX_PROCESSES``.
        worth_it: in place of the tasks' own.
    """

    def __init__(self, count: int | None = None, worth_it: int | None = None) -> None:
        self._count = count or min(MAX_PROCESSES, cores())
        self._worth_it = worth_it

    def map(
        self, task: Task[Result], parts: Iterable[tuple[Tag, Numbered]], total: int
    ) -> Iterator[tuple[Tag, Numbered, Result]]:
        """Yield each part with its tag and its result, in order; see ``Executor``."""
        worth_it = task.worth_it if self._worth_it is None else self._worth_it
        if not task.module or task.has_threads or self._count < 2 or total < worth_it or not _is_python():
            for tag, part in parts:
                yield tag, part, task.run(part)
            return
        with _workers(task, self._count) as result_of, ThreadPoolExecutor(self._count) as threads:
            waiting: deque[tuple[Tag, Numbered, Future[Result]]] = deque()
            try:
                for tag, part in parts:
                    waiting.append((tag, part, threads.submit(result_of, part)))
                    if len(waiting) > _WAITING_EACH * self._count:
                        first_tag, first, result = waiting.popleft()
                        yield first_tag, first, result.result()
                for tag, part, result in waiting:
                    yield tag, part, result.result()
            finally:
                for _, _, result in waiting:
                    result.cancel()


def _is_python() -> bool:
    """Return whether this program is an interpreter that can be started again: not one frozen into another program."""
    return "py" in Path(sys.executable or "").name.lower() and not getattr(sys, "frozen", False)


@contextmanager
def _workers(task: Task[Result], count: int) -> Iterator[Callable[[Numbered], Result]]:
    """Give what does the task of a part by the next free worker, for ``count`` threads."""
    workers: list[_Worker] = []
    free: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
    with suppress(OSError):  # as where no program may be started: the rest is done here
        for _ in range(count):
            workers.append(_Worker(task.module, task.order))
    for place in range(count):
        free.put(workers[place] if place < len(workers) else None)

    def result_of(part: Numbered) -> Result:
        worker = free.get()
        try:
            if worker is not None:
                return task.unpack(worker.ask(msgspec.msgpack.encode(part)))
        except (OSError, ValueError, EOFError):  # it was killed, say, or could not read what it needs
            worker = None
        finally:
            free.put(worker)
        return task.run(part)

    try:
        yield result_of
    finally:
        for worker in workers:
            worker.end()


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


def serve(module: str, order: str) -> None:
    """Answer requests on standard input until it ends: what a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not be read as an answer
    run: Callable[[Numbered], bytes] = importlib.import_module(module).preparing(order)
    decoder = msgspec.msgpack.Decoder(list[tuple[int, Question]])
    collect_rarely()
    while (request := _received(sys.stdin.buffer)) is not None:
        _send(answers, run(decoder.decode(request)))


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

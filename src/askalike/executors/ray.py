"""Ray's tasks on the machines of a cluster; one that ends with its process or machine is done again elsewhere.

Every machine has the batch's folder under the same path. A machine reads a forum from a copy of its own, made of one in
that folder, since SQLite's files cannot be shared between machines.
"""

from __future__ import annotations

import atexit
import importlib
import os
import platform
import secrets
import shutil
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import filelock
import msgspec

from askalike._version import __version__
from askalike.errors import AskalikeError, optional_module
from askalike.executors import Numbered, Result, Tag, Task
from askalike.processes import one_blas_thread
from askalike.store import copy_forum
from askalike.types import Question

CONNECT_S: Final = 5.0
_WAITING_EACH: Final = 3


class Order(NamedTuple):
    """What a worker of Ray has to know of a task.

    Args:
        name: which no other call of ``map`` has.
        reads_forum: the order is the folder of a forum.
        host, copy: the machine that began, and where others find a copy of that forum; "" where there were no others.
    """

    name: str
    module: str
    order: str
    reads_forum: bool
    host: str
    copy: str
    version: str = __version__


class Ray:
    """An executor of Ray's tasks.

    Args:
        address: "ray", for the cluster that this machine is part of or RAY_ADDRESS names, or "ray://HOST:PORT".
        folder: one that every machine of the cluster has under this path.
        workers: tasks at a time; by default one for each core of the cluster.

    Raises:
        MissingExtraError: Ray is not installed.
        AskalikeError: the cluster does not answer.
    """

    def __init__(self, address: str, folder: Path, workers: int | None = None) -> None:
        self._ray = optional_module("ray", "Ray is not installed", "ray")
        named = address.removeprefix("ray://") if address != "ray" else os.environ.get("RAY_ADDRESS", "")
        try:
            _check_listens(named)
            self._ray.init(address="auto" if address == "ray" else address, log_to_driver=False, logging_level="error")
        except (OSError, RuntimeError, ValueError) as error:
            shown = address if address != "ray" else named or "of this machine"
            raise AskalikeError(
                f"the cluster {shown} does not answer: {str(error)[:300]}", 'start it, as with "ray start --head"'
            ) from error
        self._folder = folder
        self._workers = workers or int(self._ray.cluster_resources().get("CPU", 1))
        self._run = self._ray.remote(num_cpus=1, max_retries=3)(run_part)

    def map(
        self, task: Task[Result], parts: Iterable[tuple[Tag, Numbered]], total: int
    ) -> Iterator[tuple[Tag, Numbered, Result]]:
        """Yield each part with its tag and its result, in order; see ``Executor``."""
        if not task.module:
            for tag, part in parts:
                yield tag, part, task.run(part)
            return
        name, here = secrets.token_hex(8), platform.node()
        others = {node["NodeManagerHostname"] for node in self._ray.nodes() if node["Alive"]} - {here}
        copy = self._folder / f"copy-{name}" if task.folder is not None and others else None
        order = Order(name, task.module, task.order, task.folder is not None, here, "" if copy is None else str(copy))
        waiting: deque[tuple[Tag, Numbered, Any]] = deque()
        try:
            if task.folder is not None and copy is not None:
                copy_forum(task.folder, copy)
            for tag, part in parts:
                waiting.append((tag, part, self._run.remote(order, msgspec.msgpack.encode(part))))
                if len(waiting) > _WAITING_EACH * self._workers:
                    yield self._result(task, *waiting.popleft())
            while waiting:
                yield self._result(task, *waiting.popleft())
        finally:
            for _, _, result in waiting:
                self._ray.cancel(result)
            if copy is not None:
                shutil.rmtree(copy, ignore_errors=True)

    def _result(self, task: Task[Result], tag: Tag, part: Numbered, waiting: Any) -> tuple[Tag, Numbered, Result]:
        try:
            packed, message, hint = self._ray.get(waiting)
        except (self._ray.exceptions.RayError, OSError, RuntimeError) as error:
            lines = str(error).strip().splitlines()
            raise AskalikeError(
                f"a task on Ray failed: {lines[-1][:300] if lines else error!r}",
                "the same command goes on with what is missing",
            ) from error
        if message:
            raise AskalikeError(message, hint)
        return tag, part, task.unpack(packed)

    def close(self) -> None:
        """Leave the cluster, which goes on; what is under way of this batch is ended."""
        self._ray.shutdown()


def _check_listens(address: str) -> None:
    """Raise OSError where nobody listens at HOST:PORT: Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), CONNECT_S).close()


def run_part(order: Order, part: bytes) -> tuple[bytes, str, str]:
    """Return the packed result of a part, and message and hint of an error: what a worker does, on any machine."""
    if order.version != __version__:
        message = f"workers have askalike {__version__}, this is {order.version}"
        return b"", message, "install the same version everywhere"
    try:
        with one_blas_thread():
            return _prepared(order)(msgspec.msgpack.decode(part, type=list[tuple[int, Question]])), "", ""
    except AskalikeError as error:
        return b"", error.message, error.hint
    except OSError as error:
        return b"", f"a worker on {platform.node()}: {error}", "every machine needs the folder under this very path"


@lru_cache(1)
def _prepared(order: Order) -> Callable[[Numbered], bytes]:
    """Return what does a task in this process, which keeps the indexes open that it reads."""
    is_elsewhere = order.reads_forum and order.host != platform.node()
    if is_elsewhere and not order.copy:
        raise AskalikeError(
            f"the machine {platform.node()} joined the cluster after the work had begun",
            "the same command goes on with what is missing",
        )
    named = str(_nearby(Path(order.copy), order.name)) if is_elsewhere else order.order
    prepare: Callable[[Numbered], bytes] = importlib.import_module(order.module).preparing(named)
    return prepare


def _nearby(copy: Path, name: str) -> Path:
    """Return this machine's own copy of a forum, which goes with the process that made it."""
    folder = Path(tempfile.gettempdir()) / f"askalike-{name}"
    with filelock.FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            begun = folder.with_suffix(".begun")
            shutil.rmtree(begun, ignore_errors=True)
            shutil.copytree(copy, begun)
            begun.rename(folder)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

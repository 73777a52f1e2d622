"""Who does the tasks of a batch: processes of this machine, or Ray's on many; both call ``tasks.answer``.

A task that ended with its process or machine is done again elsewhere. What is done is seen in the batch's folder, which
every machine has under the same path: so nothing is lost with who schedules, and nothing depends on it.
"""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Protocol

from askalike.batch import tasks
from askalike.errors import AskalikeError, MissingExtraError, SettingError
from askalike.index.workers import MOST, Pool
from askalike.processes import cores

SHAPES: Final = "local; ray, for the cluster that this machine is part of or RAY_ADDRESS names; or ray://HOST:PORT"
KNOCK_S: Final = 5.0
_WAITING_EACH: Final = 3


class Cluster(Protocol):
    """What does tasks. Use as a context manager."""

    workers: int

    def answers(self, requests: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the answers as they come, in any order.

        Raises:
            AskalikeError: tasks cannot be done.
        """

    def close(self) -> None:
        """End what is under way."""


class LocalCluster:
    """Processes of this machine, one for each core."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or min(MOST, cores())
        self._pool = Pool(tasks.__name__, self.workers)

    def answers(self, requests: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the answers as they come; see ``Cluster``."""
        try:
            yield from self._pool.answers(requests)
        except (OSError, EOFError) as error:
            raise AskalikeError(
                f"three processes ended over one task: {error or type(error).__name__}",
                "look whether memory ran out; the same command goes on with what is missing",
            ) from error

    def close(self) -> None:
        """End the processes."""
        self._pool.close()


class RayCluster:
    """Tasks of Ray.

    Raises:
        MissingExtraError: Ray is not installed.
        AskalikeError: the cluster does not answer.
    """

    def __init__(self, address: str, workers: int | None = None) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise MissingExtraError("Ray is not installed", "ray") from error
        given = "auto" if address == "ray" else address
        try:
            _knock(address.removeprefix("ray://") if address != "ray" else os.environ.get("RAY_ADDRESS", ""))
            self._ray.init(address=given, log_to_driver=False, logging_level="error")
        except (OSError, RuntimeError, ValueError) as error:
            raise AskalikeError(
                f"the cluster {_shown(address)} does not answer: {str(error)[:300]}",
                'start it, as with "ray start --head"',
            ) from error
        self.workers = workers or int(self._ray.cluster_resources().get("CPU", 1))
        self._answer = self._ray.remote(num_cpus=1, max_retries=3)(tasks.answer)

    def answers(self, requests: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the answers as they come; see ``Cluster``."""
        waiting: list[Any] = []
        try:
            for request in requests:
                waiting.append(self._answer.remote(request))
                if len(waiting) >= _WAITING_EACH * self.workers:
                    [done], waiting = self._ray.wait(waiting, num_returns=1)
                    yield self._ray.get(done)
            while waiting:
                [done], waiting = self._ray.wait(waiting, num_returns=1)
                yield self._ray.get(done)
        except (self._ray.exceptions.RayError, OSError, RuntimeError) as error:
            raise AskalikeError(
                f"a task on Ray failed: {str(error).strip().splitlines()[-1][:300] if str(error).strip() else error!r}",
                "the same command goes on with what is missing",
            ) from error

    def close(self) -> None:
        """Leave the cluster, which goes on; what is under way of this batch is ended."""
        self._ray.shutdown()


def _shown(address: str) -> str:
    return os.environ.get("RAY_ADDRESS") or "of this machine" if address == "ray" else address


def _knock(address: str) -> None:
    """Look whether anybody listens at HOST:PORT: Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), KNOCK_S).close()


class Opened:
    """A cluster by its name, or one that somebody else closes.

    Raises:
        SettingError: there is none of that name.
    """

    def __init__(self, cluster: str | Cluster, workers: int | None = None) -> None:
        self._is_own = isinstance(cluster, str)
        if not isinstance(cluster, str):
            self.cluster = cluster
        elif cluster == "local":
            self.cluster = LocalCluster(workers)
        elif cluster == "ray" or (cluster.startswith("ray://") and len(cluster) > len("ray://")):
            self.cluster = RayCluster(cluster, workers)
        else:
            raise SettingError(f"there is no cluster {cluster[:100]!r}", f"expected {SHAPES}")

    def __enter__(self) -> Cluster:
        return self.cluster

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_own:
            self.cluster.close()

"""The service in a process of its own, for measurements."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from askalike.client import Client

__all__ = ["Running", "handles", "memory_mb", "serving"]

LONGEST_START_S = 120.0


@dataclass(frozen=True, slots=True)
class Running:
    """A service that answers."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def client(self) -> Client:
        """Return a client of it."""
        return Client(f"http://127.0.0.1:{self.port}")


@contextmanager
def serving(forum: Path, *options: str) -> Iterator[Running]:
    """Serve a forum on a free port; it is ready when this gives it, and stopped at the end."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "askalike.cli.main",
        "serve",
        str(forum),
        "--port",
        str(port),
        "--rate",
        "0",
        "--log-json",
    ]
    with (forum.parent / "service.log").open("wb") as log:
        process = subprocess.Popen([*command, *options], stderr=log, stdout=log, start_new_session=True)
        running = Running(process, port)
        try:
            _wait_until_ready(running)
            yield running
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def _wait_until_ready(running: Running) -> None:
    end = time.monotonic() + LONGEST_START_S
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{running.port}/readyz", timeout=5).close()
            return
        except OSError:
            if running.process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.05)


def memory_mb(pid: int) -> tuple[float, float]:
    """Return what a process and its children hold in memory, and what of files is mapped and cached for them, in MB."""
    own = mapped = 0
    for process in _with_children(pid):
        with suppress(OSError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
            size = {name: int(value.split()[0]) for name, value in (line.split(":") for line in lines[1:])}
            own += size["Pss_Anon"]
            mapped += size["Pss_File"]
    return round(own / 1024, 1), round(mapped / 1024, 1)


def handles(pid: int) -> int:
    """Return how many files and connections a process and its children have open."""
    count = 0
    for process in _with_children(pid):
        with suppress(OSError):
            count += sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())
    return count


def _with_children(pid: int) -> list[int]:
    family, waiting = list[int](), [pid]
    while waiting:
        process = waiting.pop()
        family.append(process)
        with suppress(OSError):
            children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
            waiting += map(int, children.split())
    return family

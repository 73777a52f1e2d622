"""The service in a process of its own, for measurements."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from askalike.client import Client

LONGEST_START_S: Final = 240.0


@dataclass(frozen=True, slots=True)
class Running:
    """A service that answers."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def client(self) -> Client:
        """Return a client of it."""
        return Client(f"http://127.0.0.1:{self.port}")


def free_port() -> int:
    """Return a port of the loopback that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def serving(forum: Path, *options: str) -> Iterator[Running]:
    """Serve a forum on a free port; it is ready when this gives it, and stopped at the end."""
    command = ["askalike.cli.main", "serve", str(forum), "--rate", "0", "--log-json", *options]
    with running(command, forum.parent / "service.log") as service:
        yield service


@contextmanager
def running(module: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run a module that serves the option ``--port``, and stop it at the end; it is ready when this gives it.

    Args:
        module: its name and arguments.
        log: what the service prints.
        environment: variables beside those of this process.
    """
    port = free_port()
    command = [sys.executable, "-m", *module, "--port", str(port)]
    variables = {**os.environ, **(environment or {})}
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=variables, stderr=file, stdout=file, start_new_session=True)
    try:
        end = time.monotonic() + LONGEST_START_S
        while True:
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
                break
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"the service did not start: {log}")
            time.sleep(0.05)
        yield Running(process, port)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def kill_family(pid: int) -> None:
    """Kill a process, and wait until its children have noticed."""
    first = psutil.Process(pid)
    family = [first, *first.children(recursive=True)]
    first.kill()
    psutil.wait_procs(family, timeout=60)


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
    with suppress(psutil.NoSuchProcess):
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return []

"""The code blocks of a document, and what runs them in the order of the page."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^>]+?) -->\s*\Z")
"""Stands directly above a block that cannot run as it stands, and says why."""
FENCE = re.compile(r"^```(?P<language>[a-z]+)\n(?P<code>.*?)^```$", flags=re.DOTALL | re.MULTILINE)
RUN: tuple[str, ...] = ("sh", "console", "python")
INSTALLS: tuple[str, ...] = ("make setup", "python3 -m venv", "pip install", ". .venv/bin/activate")
"""Commands that a journey over an environment that is there already leaves out."""
PORT = 8765
"""Where a service of the documents answers."""
READY_S = 120.0


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Args:
        language: ``sh``, ``python``, …
        code: as it stands, without prompts and what they print.
        line: of its fence, 1-based.
        why_not: why it is not run; empty for one that is.
    """

    language: str
    code: str
    line: int
    why_not: str = ""

    @property
    def is_run(self) -> bool:
        """Whether it is a program for a shell or for Python, and not marked."""
        return self.language in RUN and not self.why_not

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, comments and blank lines left out; what is continued is one."""
        if self.language == "python":
            return [self.code]
        commands: list[str] = []
        terminator = ""  # the word that ends a here-document
        for line in self.code.splitlines():
            if terminator or (commands and commands[-1].endswith("\\")):
                commands[-1] += "\n" + line
                terminator = "" if line == terminator else terminator
            elif line.strip() and not line.startswith("#"):
                commands.append(line)
            if commands and not terminator and (opened := re.search(r"<<-?\s*'?(\w+)'?", line)):
                terminator = opened[1]
        return commands


def blocks_of(path: Path) -> list[Block]:
    """Return the blocks of a document in their order."""
    text = path.read_text(encoding="utf-8")
    blocks = []
    for match in FENCE.finditer(text):
        above = NOT_RUN.search(text[: match.start()])
        code = match["code"]
        if match["language"] == "console":
            code = "".join(f"{line[2:]}\n" for line in code.splitlines() if line.startswith("$ "))
        line = text.count("\n", 0, match.start()) + 1
        blocks.append(Block(match["language"], code, line, above["reason"] if above else ""))
    return blocks


@dataclass(frozen=True, slots=True)
class Step:
    """A command that was run: how long it took, and what it printed."""

    command: str
    seconds: float
    output: str


class Shell:
    """Runs commands one after the other in a folder, as a person types them; a service keeps running until the end.

    Args:
        folder: where it starts.
        is_installed: leave out commands that install; ``askalike`` and ``python`` are those of this interpreter, and
            the service takes a port that is free.

    Raises:
        AssertionError: a command failed; the message has what it printed.
    """

    def __init__(self, folder: Path, *, is_installed: bool = True) -> None:
        self._folder = folder
        self._is_installed = is_installed
        self._services: list[subprocess.Popen[bytes]] = []
        self._environment = dict(os.environ, PYTHONUNBUFFERED="1", LC_ALL="C.UTF-8")
        self._port = _free_port() if is_installed else PORT
        if not is_installed:  # nothing of the checkout that plays
            self._environment = {k: v for k, v in self._environment.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        else:
            tools = str(Path(sys.executable).parent)
            self._environment["PATH"] = tools + os.pathsep + self._environment["PATH"]
        self._state = folder / ".journey"
        self.steps: list[Step] = []

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for service in self._services:
            if service.poll() is None:
                service.send_signal(signal.SIGTERM)
        for service in self._services:
            service.wait(timeout=READY_S)

    def run(self, block: Block) -> None:
        """Run the commands of a block that is not marked."""
        for command in block.commands:
            if block.language == "python":
                self._finish(f"python - <<'END'\n{command}END", command)
            elif self._is_installed and command.startswith(INSTALLS):
                continue
            elif self._is_installed and command.startswith("make demo"):
                self._finish("askalike demo", command)
            elif re.match(r"askalike serve\b", command):
                self._serve(command)
            else:
                self._finish(command, command)

    def _finish(self, script: str, command: str) -> None:
        began = time.monotonic()
        # a command may enter a folder or an environment: where it ends, the next one starts
        before = f". {self._state}\n" if self._state.exists() else ""
        after = f'\ncode=$?; printf "cd %q\\nexport PATH=%q\\n" "$PWD" "$PATH" > {self._state}; exit $code'
        done = subprocess.run(
            ["bash", "-c", f"{before}{script}{after}".replace(f":{PORT}", f":{self._port}")],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (
            f"{command}\nexit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
        self.steps.append(Step(command, time.monotonic() - began, done.stdout))

    def _serve(self, command: str) -> None:
        began = time.monotonic()
        before = f". {self._state}\n" if self._state.exists() else ""
        log = self._folder / f"service-{len(self._services)}.log"
        with log.open("wb") as file:
            service = subprocess.Popen(
                ["bash", "-c", f"{before}exec {command.split(' #')[0]} --port {self._port}"],
                cwd=self._folder,
                env=self._environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self._services.append(service)
        address = f"http://127.0.0.1:{self._port}/readyz"
        while not _answers(address):
            printed = log.read_text(encoding="utf-8", errors="replace")
            assert service.poll() is None, f"{command}\nhas ended\n{printed}"
            assert time.monotonic() < began + READY_S, f"{command}\n{address} does not answer\n{printed}"
            time.sleep(0.1)
        self.steps.append(Step(command, time.monotonic() - began, ""))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 503
    except OSError:
        return False

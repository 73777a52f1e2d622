"""A progress bar with rate and time left, on the error stream so that output stays clean."""

from __future__ import annotations

import time
from types import TracebackType

from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from askalike.cli.display import errors, messages, safe


class _Rate(TextColumn):
    """Units a second, with prefixes for large ones."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: object) -> Text:
        speed = getattr(task, "finished_speed", None) or getattr(task, "speed", None)
        unit = getattr(task, "fields", {}).get("unit", "")
        if not speed:
            return Text("")
        shown = f"{speed / 1e6:.1f} MB/s" if unit == "bytes" else f"{speed:,.0f} {unit}/s"
        return Text(shown, style="dim")


class BarProgress:
    """Shows each phase of long work as one line; nothing is drawn when the error stream is no terminal."""

    def __init__(self) -> None:
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=28),
            TaskProgressColumn(),
            _Rate(),
            TimeRemainingColumn(compact=True),
            console=errors,
            disable=not (errors.is_terminal and messages.has_bars),
        )
        self._task: TaskID | None = None
        self._began_s = 0.0

    def __enter__(self) -> BarProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._finish()
        self._bars.stop()

    def start(self, phase: str, total: int, unit: str) -> None:
        """Begin a phase; the one before is shown as done."""
        self._finish()
        self._task = self._bars.add_task(safe(phase), total=total or None, unit=unit)
        self._began_s = time.monotonic()
        if messages.is_json:
            messages.say(safe(phase), "progress", total=total, unit=unit)

    def advance(self, count: int) -> None:
        """Move the current phase on."""
        if self._task is not None:
            self._bars.advance(self._task, count)

    def notice(self, text: str) -> None:
        """Show a sentence above the bars."""
        messages.note(safe(text))

    def _finish(self) -> None:
        if self._task is not None:
            task = self._bars.tasks[self._task]
            total = task.total
            if messages.is_verbose:
                spent_s = time.monotonic() - self._began_s
                messages.say(f"{task.description}: {spent_s:.2f} s", "debug", seconds=round(spent_s, 3))
            self._bars.update(self._task, completed=total if total is not None else 0)
            self._task = None

"""How long work tells what it does, to whoever wants to show it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the course of long work."""

    def start(self, phase: str, total: int, unit: str) -> None:
        """A phase begins that will advance by ``total`` units ("bytes", "questions") in all."""

    def advance(self, count: int) -> None:
        """So many more units of the current phase are done."""

    def notice(self, text: str) -> None:
        """Something that the user should know, such as a guessed column mapping."""


class SilentProgress:
    """Shows nothing."""

    def start(self, phase: str, total: int, unit: str) -> None:
        """Take no notice."""

    def advance(self, count: int) -> None:
        """Take no notice."""

    def notice(self, text: str) -> None:
        """Take no notice."""

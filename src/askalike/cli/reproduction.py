"""What the reproductions of papers share: what was asked for, and the settings that finished trainings are tied to.

Enters: options. Leaves: ``Wanted``. May import: durable, errors, cli.display.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from askalike.cli.display import errors
from askalike.durable import replace_whole
from askalike.errors import SettingError

__all__ = ["Wanted", "kept_settings", "notice"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What ``askalike reproduce`` was asked for.

    Args:
        only: rows, systems or sets; all if empty.
        out: folder for what is finished.
        recipe: a name or a file.
        amounts: texts to learn from, 0 for all; of papers that vary them.
        first: the kind of text that amounts take first, "" for the usual one; of papers that vary amounts.
        pairs: questions with answers to learn from, 0 for all; of papers that learn from answers.
    """

    data: Path
    only: tuple[str, ...]
    seeds: int
    out: Path
    recipe: str
    unlabelled: tuple[Path, ...]
    amounts: tuple[int, ...]
    vectors: Path | None
    device: str
    jobs: int
    as_json: bool
    pairs: int = 0
    first: str = ""


def kept_settings(out: Path, settings: Mapping[str, object]) -> None:
    """Tie a folder of finished trainings to the settings that they were made with; where none was begun, anew.

    Raises:
        SettingError: it is tied to others.
    """
    file = out / "settings.json"
    content = json.dumps(settings, sort_keys=True, indent=1).encode()
    has_begun = file.exists() and any(one != file for one in out.iterdir())
    if has_begun and file.read_bytes() != content:
        raise SettingError(
            f"what is in {out} was trained with another recipe, other texts or other word vectors",
            "say the same as then, or give another folder with --out",
        )
    out.mkdir(parents=True, exist_ok=True)
    replace_whole(file, content)


def notice(text: str) -> None:
    """Tell of the course of long work, on standard error."""
    errors.print(text, style="dim", markup=False)

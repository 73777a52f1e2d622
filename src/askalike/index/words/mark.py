"""The file of the candidate index's mark, beside its entries."""

from __future__ import annotations

import json
from pathlib import Path

from askalike.files import Owned, replace_whole
from askalike.index.cursor import Mark

FORMAT = 1
MARK_FILE = "mark.json"

_ENTRIES = Owned(
    r"meta\.json|\.managed\.json|\.tantivy-(writer|meta)\.lock|\.tmp\w+|[0-9a-f]{32}(\.\d+)?\.[a-z]+(\.temp)?"
)
OWNED = Owned(r"(mark|sums)\.json(\.\d+\.tmp)?", (("entries", _ENTRIES),))
"""What lies in the folder of an index: its own files, and those that tantivy writes."""


def read_mark(state: bytes | None) -> Mark:
    """Return the mark that the file's bytes hold, None standing for no file.

    Raises:
        ValueError: there is none, it was written by another version, or it is damaged.
    """
    if state is None:
        raise ValueError(f"its file {MARK_FILE} is not there")
    try:
        return Mark.from_json(json.loads(state), FORMAT)
    except RecursionError as error:
        raise ValueError(f"its file {MARK_FILE} is none: {error}") from error


def write_mark(folder: Path, mark: Mark) -> None:
    """Put the mark on disk, durably and in one step."""
    replace_whole(folder / MARK_FILE, json.dumps(mark.to_json(FORMAT)).encode())

"""What a training leaves to be read: its course as a table, and what an autoencoder made of a few texts.

``log.csv`` has one value a line, so that any tool can plot it: ``stage, epoch, step, measure, value``. Epoch 0 is the
state before the first step. A training that goes on after a kill takes back what it had written after its checkpoint.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from askalike.errors import DamagedModelError
from askalike.files import replace_whole
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary
from askalike.training.objectives.objective import Example

COLUMNS = ("stage", "epoch", "step", "measure", "value")


@dataclass(frozen=True, slots=True)
class Entry:
    """One value."""

    stage: str
    epoch: int
    step: int
    measure: str
    value: float


class Log:
    """A file that values are added to; every line is written at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, stage: str, epoch: int, earlier: Collection[str] = ()) -> None:
        """Keep what was written of the stages before this one, and of this one up to ``epoch``; take back the rest.

        Raises:
            DamagedModelError: the log cannot be read.
        """
        kept = [
            entry
            for entry in read_log(self.path)
            if entry.stage in earlier or (entry.stage == stage and entry.epoch <= epoch)
        ]
        replace_whole(self.path, (",".join(COLUMNS) + "\n" + _lines(kept)).encode())

    def add(self, stage: str, epoch: int, step: int, measures: Mapping[str, float]) -> None:
        """Write the values of one moment."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(_lines(Entry(stage, epoch, step, name, value) for name, value in measures.items()))


def read_log(path: Path) -> list[Entry]:
    """Return what a log holds, nothing where there is none; an unfinished last line is left out.

    Raises:
        DamagedModelError: a line that is no entry; names it.
    """
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")[0]
    found = []
    for number, row in enumerate(csv.reader(io.StringIO(whole)), start=1):
        if number == 1 and tuple(row) == COLUMNS:
            continue
        try:
            stage, epoch, step, measure, value = row
            found.append(Entry(stage, int(epoch), int(step), measure, float(value)))
        except ValueError as error:
            raise DamagedModelError(
                f"{path}, line {number}: {','.join(row)[:80]!r}, but expected {', '.join(COLUMNS)}",
                "take the line away, or delete the file",
            ) from error
    return found


def _lines(entries: Iterable[Entry]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        (entry.stage, entry.epoch, entry.step, entry.measure, f"{entry.value:.6g}") for entry in entries
    )
    return text.getvalue()


_FILE: Final = "examples.json"
_UNKNOWN_WORD: Final = "[unknown]"


def write_examples(examples: Sequence[Example], vocabulary: Vocabulary, folder: Path) -> None:
    """Write the words that were read and written, one text a line each; no file where there is no example."""
    if not examples:
        return

    def words(ids: Iterable[int]) -> str:
        return " ".join(_UNKNOWN_WORD if number == UNKNOWN else vocabulary.words[number - 1] for number in ids)

    found = [{"read": words(one.read), "written": words(one.written)} for one in examples]
    replace_whole(folder / _FILE, (json.dumps(found, ensure_ascii=False, indent=2) + "\n").encode())

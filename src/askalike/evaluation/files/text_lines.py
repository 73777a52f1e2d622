"""Lines of a text file, with errors that name file and line.

Enters: a path. Leaves: numbered lines; parsed fields. May import: askalike.errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path

from askalike.errors import DamagedInputError, EvaluationError, InputError

__all__ = ["Place", "check_ids", "damaged", "parse_score", "read_lines", "write_lines"]

Place = tuple[Path, int]
"""A file and the number of a line in it; 1 is the first."""


def damaged(place: Place, message: str, hint: str = "") -> DamagedInputError:
    """Return the error for a line, its file and number put before the message."""
    path, number = place
    return DamagedInputError(f"{path}, line {number}: {message}", hint)


def read_lines(path: Path) -> Iterator[tuple[Place, str]]:
    """Yield the lines of a UTF-8 file that are not blank, each with its place; a byte order mark is left out.

    Raises:
        InputError: there is no such file.
        DamagedInputError: a line is not UTF-8, or no line holds anything.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}", "check the path")
    has_any = False
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            place = (path, number)
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise damaged(place, f"byte {error.start + 1} is not UTF-8", "convert the file to UTF-8") from error
            if line.strip():
                has_any = True
                yield place, line
    if not has_any:
        raise DamagedInputError(f"{path} is empty; expected at least one line")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by a line feed on every system."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def parse_score(text: str, place: Place) -> float:
    """Return a finite number.

    Raises:
        DamagedInputError: it is none.
    """
    try:
        score = float(text)
    except ValueError:
        raise damaged(place, f"the score is {text!r}; expected a number") from None
    if not isfinite(score):
        raise damaged(place, f"the score is {text}; expected a finite number", "find out why the ranker gave it")
    return score


def check_ids(ids: Iterable[str], layout: str) -> None:
    """Do nothing when all ids can be written between white space.

    Raises:
        EvaluationError: one is empty or holds white space, so that the file could not be read again.
    """
    for name in ids:
        if name.split() != [name]:
            raise EvaluationError(
                f"the id {name!r} cannot be written as {layout}; expected ids without white space", "rename it"
            )

"""The rows of the table as data: which system, what it is learned by, what is drawn at random.

Enters: nothing. Leaves: ``Row`` values. May import: errors, its own folder.

Source: Das et al. 2016 (ACL), table 2. BM25 is no row there; it stands here beside T-SCQA, half of which it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from askalike.errors import SettingError
from askalike.experiments.das2016.reported import REPORTED

__all__ = ["BASELINE", "COMPARED", "ROWS", "Row", "chosen_rows"]

System = Literal["bm25", "language", "siamese"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Args:
        id: its name on the command line and in files.
        name: what the paper calls it, "" for a row that it lacks.
        system: how it is run.
        learner: what trains it: a kind of language model, "scqa" or "dsqa"; "" for none. Rows of one learner share
            what it has learned.
        is_drawn: something of its training is drawn, so that it is run with several seeds.
        has_words: the scores of BM25 are mixed in.
        reported: MAP, MRR and P@1 times 100, or nothing.
    """

    id: str
    name: str
    system: System
    learner: str = ""
    is_drawn: bool = False
    has_words: bool = False
    reported: tuple[float, ...] = ()


def _language(kind: str, name: str, *, is_drawn: bool = False) -> Row:
    return Row(kind, name, "language", kind, is_drawn, reported=REPORTED[kind])


def _siamese(identifier: str, learner: str) -> Row:
    has_words = identifier.startswith("t-")
    name = identifier.upper()
    return Row(identifier, name, "siamese", learner, is_drawn=True, has_words=has_words, reported=REPORTED[identifier])


_ALL: Final[Sequence[Row]] = (
    Row("bm25", "", "bm25"),
    _language("lmir", "LMIR"),
    _language("translation", "translation(word)"),
    _language("translm", "translation+LM"),
    _language("phrase", "translation(phrase)"),
    _language("qatm", "Q-A topic model", is_drawn=True),
    _language("sqatm", "Q-A topic model(s)", is_drawn=True),
    _siamese("dsqa", "dsqa"),
    _siamese("t-dsqa", "dsqa"),
    _siamese("scqa", "scqa"),
    _siamese("t-scqa", "scqa"),
)

ROWS: Final[Mapping[str, Row]] = {row.id: row for row in _ALL}
"""id → row, in the order of the table."""

BASELINE: Final = "lmir"
"""What every row is tested against."""

COMPARED: Final[Sequence[tuple[str, str]]] = (
    ("translation", "lmir"),
    ("translm", "lmir"),
    ("phrase", "lmir"),
    ("qatm", "translm"),
    ("sqatm", "translm"),
    ("scqa", "dsqa"),
    ("t-scqa", "t-dsqa"),
    ("t-scqa", "scqa"),
    ("t-scqa", "bm25"),
)
"""What the paper says of rows, in order: translation helps, topics help more, shared weights help, and words help."""


def chosen_rows(names: Iterable[str]) -> list[Row]:
    """Return the rows of these ids or systems, in the table's order; all when none is named.

    Raises:
        SettingError: no row has this name.

    >>> [row.id for row in chosen_rows(["scqa", "lmir"])], len(chosen_rows([]))
    (['lmir', 'scqa'], 11)
    >>> [row.id for row in chosen_rows(["siamese"])]
    ['dsqa', 't-dsqa', 'scqa', 't-scqa']
    """
    wanted = list(names)
    for name in wanted:
        if not any(name in (row.id, row.system) for row in _ALL):
            systems = ", ".join(dict.fromkeys(row.system for row in _ALL))
            raise SettingError(
                f"there is no row or set {name!r}", f"expected one of {', '.join(ROWS)}, or a system ({systems})"
            )
    return [row for row in _ALL if not wanted or row.id in wanted or row.system in wanted]

"""The one table of formats: a new reader is a file in this folder and a line here.

Enters: the readers. Leaves: ``READERS``, by name. May import: the readers of this folder.
"""

from __future__ import annotations

from askalike.read.discourse import DiscourseReader
from askalike.read.frame import Reader
from askalike.read.jsonl import JsonlReader
from askalike.read.pairs import PairsReader
from askalike.read.stackexchange import StackExchangeReader
from askalike.read.table import TableReader

__all__ = ["READERS"]

_ALL: tuple[Reader, ...] = (
    StackExchangeReader(),
    DiscourseReader(),
    JsonlReader(),
    TableReader(),
    PairsReader(),
)

READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}

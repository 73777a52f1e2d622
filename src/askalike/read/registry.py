"""The one table of formats: a new reader is a file in this folder and a line here.

Enters: the readers. Leaves: ``READERS``, by name. May import: the readers of this folder.
"""

from __future__ import annotations

from askalike.read.frame import Reader

__all__ = ["READERS"]

_ALL: tuple[Reader, ...] = ()

READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}

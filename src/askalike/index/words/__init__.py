"""The word index: BM25 over titles and whole texts through tantivy."""

from askalike.index.words.index import IndexEntry, WordIndex, WordWriter
from askalike.index.words.snapshot import FieldWeights, WordSnapshot

__all__ = [
    "FieldWeights",
    "IndexEntry",
    "WordIndex",
    "WordSnapshot",
    "WordWriter",
]

"""The word index: BM25 over titles and whole texts through tantivy."""

from askalike.index.words.index import LexicalIndex
from askalike.index.words.snapshot import FieldWeights, LexicalSnapshot
from askalike.index.words.writer import IndexEntry, LexicalWriter

__all__ = [
    "FieldWeights",
    "IndexEntry",
    "LexicalIndex",
    "LexicalSnapshot",
    "LexicalWriter",
]

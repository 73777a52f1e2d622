"""Candidate search and term-based scorers, one file per model."""

from askalike.lexical.bm25 import BM25
from askalike.lexical.index import LexicalIndex
from askalike.lexical.snapshot import FieldWeights, LexicalSnapshot
from askalike.lexical.statistics import CollectionStatistics
from askalike.lexical.tfidf import TfIdf
from askalike.lexical.writer import IndexEntry, LexicalWriter

__all__ = [
    "BM25",
    "CollectionStatistics",
    "FieldWeights",
    "IndexEntry",
    "LexicalIndex",
    "LexicalSnapshot",
    "LexicalWriter",
    "TfIdf",
]

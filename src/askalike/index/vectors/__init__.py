"""Vectors and their numbers → the nearest numbers by cosine; it knows no model and no text."""

from askalike.index.vectors.index import VectorIndex, VectorSnapshot
from askalike.index.vectors.writer import VectorWriter

__all__ = ["VectorIndex", "VectorSnapshot", "VectorWriter"]

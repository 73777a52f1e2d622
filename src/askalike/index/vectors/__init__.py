"""Vectors and their numbers → the nearest numbers by cosine; it knows no model and no text."""

from askalike.index.vectors.graph import GraphSettings
from askalike.index.vectors.index import VectorIndex, VectorSnapshot
from askalike.index.vectors.writer import VectorWriter

__all__ = ["GraphSettings", "VectorIndex", "VectorSnapshot", "VectorWriter"]

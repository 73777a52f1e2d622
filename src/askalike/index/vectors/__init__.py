"""Vectors and their numbers → the nearest numbers by cosine; it knows no model and no text."""

from askalike.index.cursor import Mark
from askalike.index.vectors.graph import GraphSettings
from askalike.index.vectors.index import VectorIndex
from askalike.index.vectors.state import VectorSnapshot
from askalike.index.vectors.writer import VectorWriter

__all__ = ["GraphSettings", "Mark", "VectorIndex", "VectorSnapshot", "VectorWriter"]

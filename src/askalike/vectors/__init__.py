"""Vectors and their numbers → the nearest numbers by cosine; it knows no model and no text."""

from askalike.mark import Mark
from askalike.vectors.graph import GraphSettings
from askalike.vectors.index import VectorIndex
from askalike.vectors.state import VectorSnapshot
from askalike.vectors.writer import VectorWriter

__all__ = ["GraphSettings", "Mark", "VectorIndex", "VectorSnapshot", "VectorWriter"]

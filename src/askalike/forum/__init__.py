"""A forum as its users hold it: archive, indexes and search behind one class."""

from askalike.forum.duplicates import Duplicate
from askalike.forum.exchange import ImportOptions, ImportReport
from askalike.forum.forum import Forum, Info
from askalike.forum.indexes import ForumSettings
from askalike.index.vector_sets import VectorsState
from askalike.progress import Progress

__all__ = [
    "Duplicate",
    "Forum",
    "ForumSettings",
    "ImportOptions",
    "ImportReport",
    "Info",
    "Progress",
    "VectorsState",
]

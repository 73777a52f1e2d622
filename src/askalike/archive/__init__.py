"""A forum on disk: SQLite in WAL mode, the one source of truth; everything else is rebuilt from it.

May import: ``askalike.types``, ``askalike.errors``.
"""

from askalike.archive.archive import Archive, Change
from askalike.archive.feedback import add_feedback, all_feedback, last_feedback, standing_verdicts, verdicts_on
from askalike.archive.inspection import Counts, check, count
from askalike.archive.layout import Layout
from askalike.archive.listing import answer_counts, changed_questions, links_of, newest, numbers
from askalike.archive.load import LoadCounts, LoadReport, load
from askalike.archive.posts import delete_answers, delete_links, put_answers
from askalike.archive.writes import Operation

__all__ = [
    "Archive",
    "Change",
    "Counts",
    "Layout",
    "LoadCounts",
    "LoadReport",
    "Operation",
    "add_feedback",
    "all_feedback",
    "answer_counts",
    "changed_questions",
    "check",
    "count",
    "delete_answers",
    "delete_links",
    "last_feedback",
    "links_of",
    "load",
    "newest",
    "numbers",
    "put_answers",
    "standing_verdicts",
    "verdicts_on",
]

"""A forum on disk: SQLite in WAL mode, the one source of truth; everything else is rebuilt from it."""

from askalike.archive.archive import Archive, Change
from askalike.archive.feedback import add_feedback, all_feedback, feedback_version, standing_verdicts, verdicts_on
from askalike.archive.inspection import Counts, check, count, unreadable_dates
from askalike.archive.layout import Layout
from askalike.archive.listing import answer_counts, changed_questions, links_of, newest, numbers
from askalike.archive.load import LoadCounts, LoadReport, load
from askalike.archive.posts import delete_answers, delete_links, put_answers
from askalike.archive.rows import check_question
from askalike.archive.staging import is_loading
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
    "check_question",
    "count",
    "delete_answers",
    "delete_links",
    "feedback_version",
    "is_loading",
    "links_of",
    "load",
    "newest",
    "numbers",
    "put_answers",
    "standing_verdicts",
    "unreadable_dates",
    "verdicts_on",
]

"""A forum on disk: SQLite in WAL mode, the one source of truth; everything else is rebuilt from it."""

from askalike.store.archive import Archive, Change
from askalike.store.feedback import add_feedback, all_feedback, feedback_version, standing_verdicts, verdicts_on
from askalike.store.layout import Layout
from askalike.store.listing import (
    Counts,
    answer_counts,
    changed_questions,
    check,
    count,
    links_of,
    newest,
    numbers,
    unreadable_dates,
)
from askalike.store.load import LoadCounts, LoadReport, load
from askalike.store.posts import delete_answers, delete_links, put_answers
from askalike.store.rows import check_question
from askalike.store.staging import is_loading
from askalike.store.writes import Operation

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

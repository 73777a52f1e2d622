"""A forum's questions, answers, links and judgements: the one source of truth; everything else is rebuilt from it.

The rest of askalike knows ``Store`` and ``PairStore`` alone. Today they are SQLite files in the forum's folder.
"""

from askalike.addresses import site_pattern
from askalike.store.layout import ForumLayout
from askalike.store.pairs import PairStore
from askalike.store.protocol import (
    Change,
    ChangeLog,
    Contents,
    Counts,
    LoadCounts,
    LoadReport,
    Operation,
    Position,
    SourceCounts,
    Store,
)
from askalike.store.rows import check_question
from askalike.store.sqlite.helped import Helped
from askalike.store.sqlite.pairs import SqlitePairStore
from askalike.store.sqlite.soundness import pair_faults, stored_faults
from askalike.store.sqlite.store import SqliteStore

__all__ = [
    "Change",
    "ChangeLog",
    "Contents",
    "Counts",
    "ForumLayout",
    "LoadCounts",
    "LoadReport",
    "Operation",
    "Position",
    "SourceCounts",
    "Store",
    "check_question",
    "create_store",
    "open_helped",
    "open_pairs",
    "open_store",
    "pair_faults",
    "stored_faults",
]


def open_store(layout: ForumLayout) -> Store:
    """Open a forum's store.

    Raises:
        ForumNotFoundError: there is none, or it was not finished when it was made.
        ForumVersionError: it is one of another program or format.
        DamagedForumError, ForumError: it cannot be read, or not written.
        InputError, SettingError: its config.toml cannot be read, or names no address of questions.
    """
    return SqliteStore(layout.archive, site_pattern(layout.config))


def create_store(layout: ForumLayout, settings: dict[str, str]) -> Store:
    """Make a new, empty store; an unfinished one of a killed process is finished.

    Args:
        settings: of the forum; where another process has made the store meanwhile, that one's stay.
    """
    return SqliteStore.create(layout.archive, settings)


def open_helped(layout: ForumLayout) -> Helped:
    """Return the counts of questions that answered others; the file is made at the first one."""
    return Helped(layout.helped)


def open_pairs(layout: ForumLayout) -> PairStore:
    """Return the store of likely pairs; it is made at its first use."""
    return SqlitePairStore(layout.pairs)

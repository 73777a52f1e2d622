"""The engine of one machine: records from SQLite, candidates from the lexical index.

Enters: an open archive and index. Leaves: what ``rank.Engine`` promises. May import: archive, lexical, rank, types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from askalike.archive import Archive
from askalike.lexical import FieldWeights, LexicalIndex
from askalike.rank.engine import Candidate
from askalike.types import Answer, Filters, Question

__all__ = ["LocalEngine"]


class LocalEngine:
    """``rank.Engine`` over an archive and its lexical index."""

    def __init__(self, archive: Archive, index: LexicalIndex, fields: FieldWeights) -> None:
        self._archive = archive
        self._index = index
        self._fields = fields

    def size(self) -> int:
        """Return how many questions are in the index."""
        return self._index.entries

    def document_frequency(self, term: str) -> int:
        """Return in how many questions the term occurs."""
        return self._index.document_frequency(term)

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        """Return the best entries of the lexical index."""
        return [Candidate(num, score) for num, score in self._index.search(weights, self._fields, limit, filters)]

    def questions(self, keys: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these internal numbers."""
        return self._archive.questions_by_num(keys)

    def answers(self, question_id: str) -> list[Answer]:
        """Return a question's answers, best first."""
        return self._archive.answers(question_id)

    def originals(self, question_id: str) -> tuple[str, ...]:
        """Return what the question is marked a duplicate of."""
        return self._archive.originals(question_id)

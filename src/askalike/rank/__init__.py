"""From a question to ranked similar questions, over any engine that gives candidates and records.

May import: types, errors, text, lexical. Knows neither SQLite nor tantivy.
"""

from askalike.rank.engine import Candidate, Engine
from askalike.rank.query import Query, QuerySettings, QueryTerm
from askalike.rank.search import SearchSettings, ranking, similar

__all__ = ["Candidate", "Engine", "Query", "QuerySettings", "QueryTerm", "SearchSettings", "ranking", "similar"]

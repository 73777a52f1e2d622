"""From a question to ranked similar questions, over any engine that gives candidates and records.

May import: types, errors, text, lexical. Knows neither SQLite nor tantivy, and no model.
"""

from askalike.rank.encoder import Encoder
from askalike.rank.engine import Candidate, Engine
from askalike.rank.explanation import explanations
from askalike.rank.query import Query, QuerySettings, QueryTerm
from askalike.rank.rankers import RANKERS
from askalike.rank.search import Ranking, Searcher
from askalike.rank.settings import JoinSettings, SearchSettings

__all__ = [
    "RANKERS",
    "Candidate",
    "Encoder",
    "Engine",
    "JoinSettings",
    "Query",
    "QuerySettings",
    "QueryTerm",
    "Ranking",
    "SearchSettings",
    "Searcher",
    "explanations",
]

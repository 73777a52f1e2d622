"""From a question to ranked similar questions, over any engine that gives candidates and records."""

from askalike.rank.encoder import Encoder
from askalike.rank.engine import Candidate, Engine
from askalike.rank.explanation import explanations
from askalike.rank.query import Query, QuerySettings, QueryTerm
from askalike.rank.rankers import RANKER_NAMES, RANKERS
from askalike.rank.reranker import RERANKERS, Reranker, learned_as, learned_with
from askalike.rank.search import Ranking, Search, Searcher
from askalike.rank.settings import JoinSettings, SearchSettings
from askalike.rank.suggestions import Suggestions, suggestions

__all__ = [
    "RANKERS",
    "RANKER_NAMES",
    "RERANKERS",
    "Candidate",
    "Encoder",
    "Engine",
    "JoinSettings",
    "Query",
    "QuerySettings",
    "QueryTerm",
    "Ranking",
    "Reranker",
    "Search",
    "SearchSettings",
    "Searcher",
    "Suggestions",
    "explanations",
    "learned_as",
    "learned_with",
    "suggestions",
]

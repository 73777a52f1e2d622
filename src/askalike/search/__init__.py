"""From a question to ranked similar questions, over any engine that gives candidates and records."""

from askalike.search.engine import Candidate, Encoder, Engine
from askalike.search.explanation import explanations
from askalike.search.query import Query, QuerySettings, QueryTerm
from askalike.search.rankers import RANKER_NAMES, RANKERS
from askalike.search.reranker import RERANKERS, Reranker, learned_as, learned_with
from askalike.search.searcher import Ranking, Search, Searcher
from askalike.search.settings import JoinSettings, SearchSettings
from askalike.search.suggestions import Suggestions, suggestions

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

"""From a question to ranked similar questions, over any engine that gives candidates and records."""

from askalike.search.candidates import Candidates
from askalike.search.engine import Candidate, Encoder, Engine
from askalike.search.query import QuerySettings, QueryTerm
from askalike.search.rankers import RANKER_NAMES, RANKERS
from askalike.search.reranker import Reranker
from askalike.search.searcher import Searcher
from askalike.search.settings import JoinSettings, SearchSettings
from askalike.types import Query

__all__ = [
    "RANKERS",
    "RANKER_NAMES",
    "Candidate",
    "Candidates",
    "Encoder",
    "Engine",
    "JoinSettings",
    "Query",
    "QuerySettings",
    "QueryTerm",
    "Reranker",
    "SearchSettings",
    "Searcher",
]

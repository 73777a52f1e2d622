"""RAMN, the reduced attentive matching network: an unsupervised ranker over the hidden states of an autoencoder.

May import: errors, types, rank's values, its own folder. Source: Zhang and Wu 2018 (AAAI).
"""

from askalike.rank.ramn.comparison import Comparison, compare
from askalike.rank.ramn.reranker import RamnReranker, StateSource
from askalike.rank.ramn.score import log_scores, scores
from askalike.rank.ramn.settings import RamnSettings

__all__ = ["Comparison", "RamnReranker", "RamnSettings", "StateSource", "compare", "log_scores", "scores"]

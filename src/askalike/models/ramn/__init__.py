"""RAMN, the reduced attentive matching network: an unsupervised ranker over the hidden states of an autoencoder.

Source: Zhang and Wu 2018 (AAAI).
"""

from askalike.models.ramn.comparison import Comparison, compare
from askalike.models.ramn.score import log_scores, scores
from askalike.models.ramn.settings import RamnSettings

__all__ = ["Comparison", "RamnSettings", "compare", "log_scores", "scores"]

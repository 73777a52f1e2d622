"""Language models of retrieval: how likely a candidate makes a query, by its words and by what they translate into.

Enters: terms as ids, pairs of texts. Leaves: what was learned, and scores. May import: types, errors, durable, text,
lexical, and what encode has for vocabularies and folders of models.
"""

from askalike.models.query_likelihood.collection import Collection
from askalike.models.query_likelihood.likelihood import QueryModel, QueryScorer, log_likelihoods, mean_ratios
from askalike.models.query_likelihood.lists import TermLists
from askalike.models.query_likelihood.parallel import Parallel
from askalike.models.query_likelihood.smoothing import QueryLikelihood, Smoothing
from askalike.models.query_likelihood.terms import term_ids
from askalike.models.translation.ibm1 import Alignment, learn_translations
from askalike.models.translation.translation import TranslationModel
from askalike.models.translation.translations import Translations
from askalike.models.translation.translm import Mixture, TransLM

__all__ = [
    "Alignment",
    "Collection",
    "Mixture",
    "Parallel",
    "QueryLikelihood",
    "QueryModel",
    "QueryScorer",
    "Smoothing",
    "TermLists",
    "TransLM",
    "TranslationModel",
    "Translations",
    "learn_translations",
    "log_likelihoods",
    "mean_ratios",
    "term_ids",
]

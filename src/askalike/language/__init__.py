"""Language models of retrieval: how likely a candidate makes a query, by its words and by what they translate into.

Enters: terms as ids, pairs of texts. Leaves: what was learned, and scores. May import: types, errors, durable, text,
lexical, and what encode has for vocabularies and folders of models.
"""

from askalike.language.collection import Collection
from askalike.language.ibm1 import Alignment, learn_translations
from askalike.language.likelihood import QueryModel, QueryScorer, log_likelihoods, mean_ratios
from askalike.language.lists import TermLists
from askalike.language.parallel import Parallel
from askalike.language.smoothing import QueryLikelihood, Smoothing
from askalike.language.terms import term_ids
from askalike.language.translation import TranslationModel
from askalike.language.translations import Translations
from askalike.language.translm import Mixture, TransLM

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

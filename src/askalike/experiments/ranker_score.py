"""How good a ranker that a forum has learned is on a task.

Enters: an open forum, a task, a ranker's name. Leaves: its score. May import: archive, encode, forum, language, rank,
siamese, its own folder.
"""

from __future__ import annotations

from askalike.archive import Layout
from askalike.experiments.likelihoods import likelihood_score
from askalike.experiments.matcher import ramn_score
from askalike.experiments.systems import Hybrid, Vectors
from askalike.experiments.tasks import RerankTask, judge
from askalike.experiments.vector_scorer import VectorScorer
from askalike.forum import Forum
from askalike.models.encoders.model import Model
from askalike.models.language.kinds import KINDS
from askalike.models.language.model import LanguageModel
from askalike.models.siamese.config import SIAMESE_KINDS
from askalike.models.siamese.model import SiameseModel
from askalike.rank import learned_as
from askalike.rank.siamese import TextualSettings

__all__ = ["ranker_score", "siamese_score"]


def ranker_score(task: RerankTask, forum: Forum, name: str) -> float:
    """Return the MRR of a task's candidates in the order that a ranker gives them with what the forum has learned.

    Raises:
        ModelError: the forum has not learned it, or it cannot be read.
    """
    folder, search = Layout(forum.path).ranker(learned_as(name)), forum.settings.search
    if name in KINDS:
        return likelihood_score(task, LanguageModel.load(folder), forum.answers)
    if learned_as(name) in SIAMESE_KINDS:
        return siamese_score(task, SiameseModel.load(folder), None if name in SIAMESE_KINDS else search.textual)
    return ramn_score(task, Model.load(folder), search.ramn)


def siamese_score(task: RerankTask, model: SiameseModel, textual: TextualSettings | None = None) -> float:
    """Return the MRR of a task's candidates in the order of a siamese model, beside BM25 where it is said how."""
    scorer = VectorScorer(model)
    system = Vectors(scorer) if textual is None else Hybrid(scorer, textual.alpha)
    return judge(task, system.rerank(task)).means["mrr"]

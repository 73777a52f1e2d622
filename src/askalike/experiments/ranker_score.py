"""How good a ranker that a forum has learned is on a task.

Enters: an open forum, a task, a ranker's name. Leaves: its score. May import: archive, encode, forum, language, its own
folder.
"""

from __future__ import annotations

from askalike.archive import Layout
from askalike.encode.model import Model
from askalike.experiments.likelihoods import likelihood_score
from askalike.experiments.matcher import ramn_score
from askalike.experiments.tasks import RerankTask
from askalike.forum import Forum
from askalike.language.kinds import KINDS
from askalike.language.model import LanguageModel

__all__ = ["ranker_score"]


def ranker_score(task: RerankTask, forum: Forum, name: str) -> float:
    """Return the MRR of a task's candidates in the order that a ranker gives them with what the forum has learned.

    Raises:
        ModelError: the forum has not learned it, or it cannot be read.
    """
    folder = Layout(forum.path).ranker(name)
    if name in KINDS:
        return likelihood_score(task, LanguageModel.load(folder), forum.answers)
    return ramn_score(task, Model.load(folder), forum.settings.search.ramn)

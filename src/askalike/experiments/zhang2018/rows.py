"""The rows of the tables: which layers of RAMN are on, and how dev chooses what the paper leaves open.

Enters: matchers of several seeds, dev. Leaves: settings by row. May import: rank, its own folder and its neighbours in
experiments.

Policy, in this one place; all choices are by the mean of dev MAP over the seeds, the first of equals:

- *treatment*: similarity, floor and repeats, the full model's best over the paper's grid of α;
- *full*: all three layers with that treatment and its best α; *mismatch*: without the rank; *base*: without both;
- *tuned*: the same features, each layer with a weight: γ of the mismatch, α from 0, product or mean over words;
- *both*: as tuned, per word, and the candidate's words are matched in the query too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from statistics import fmean
from typing import Final

from askalike.experiments.matcher import Matcher
from askalike.experiments.tasks import RerankTask, judge
from askalike.models.ramn.comparison import Similarity
from askalike.models.ramn.score import ALPHAS, RamnSettings, Repeats

__all__ = ["LAYERS", "Choice", "choose_settings"]

LAYERS: Final = ("base", "mismatch", "full", "tuned", "both")
SIMILARITIES: Final[tuple[Similarity, ...]] = ("dot", "cosine", "shifted-cosine")
REPEATS: Final[tuple[Repeats, ...]] = ("each", "once")
FLOORS: Final = (1e-3, 1e-2, 0.1)
WEIGHTS: Final = tuple(round(0.1 * step, 1) for step in range(11))


@dataclass(frozen=True, slots=True)
class Choice:
    """What dev chose.

    Args:
        settings: layers that are on → settings.
        tried: every treatment with its best α, and its dev MAP, best first.
    """

    settings: Mapping[str, RamnSettings]
    tried: Sequence[Mapping[str, object]]


def choose_settings(matchers: Sequence[Matcher], dev: RerankTask) -> Choice:
    """Return the settings of each row for one kind of autoencoder.

    Args:
        matchers: one for each seed.
    """
    tried: list[tuple[float, RamnSettings]] = []
    for similarity, floor, repeats in product(SIMILARITIES, FLOORS, REPEATS):
        treated = RamnSettings(similarity=similarity, floor=floor, repeats=repeats)
        tried.append(_best(matchers, dev, (replace(treated, alpha=alpha) for alpha in ALPHAS)))
    full = max(tried, key=lambda one: one[0])[1]
    weighted = [
        replace(full, mismatch_weight=weight, alpha=alpha) for weight, alpha in product(WEIGHTS, (0.0, *ALPHAS))
    ]
    per_word = [replace(one, is_per_word=True) for one in weighted]
    both = [replace(one, repeats="each", is_both_ways=True) for one in per_word]
    settings = {
        "base": replace(full, has_mismatch=False, alpha=0.0),
        "mismatch": replace(full, alpha=0.0),
        "full": full,
        "tuned": _best(matchers, dev, weighted + per_word)[1],
        "both": _best(matchers, dev, both)[1],
    }
    ordered = sorted(tried, key=lambda one: -one[0])
    return Choice(settings, [{**asdict(one), "dev_map": value} for value, one in ordered])


def _best(matchers: Sequence[Matcher], dev: RerankTask, settings: Iterable[RamnSettings]) -> tuple[float, RamnSettings]:
    found = [(fmean(judge(dev, one.run(dev, each)).means["map"] for one in matchers), each) for each in settings]
    return max(found, key=lambda one: one[0])

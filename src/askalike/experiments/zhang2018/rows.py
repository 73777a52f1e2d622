"""The rows of the tables: which layers of RAMN are on, and how dev chooses what the paper leaves open.

Enters: matchers of several seeds, dev. Leaves: settings by row. May import: rank, its own folder and its neighbours in
experiments.

Policy, in this one place; all choices are by the mean of dev MAP over the seeds, the first of equals:

- *treatment*: similarity, floor and repeats, the full model's best over the paper's grid of α;
- *full*: all three layers with that treatment and its best α; *mismatch*: without the rank; *base*: without both;
- *tuned*: the same features, each layer with a weight: γ of the mismatch, α from 0, product or mean over words;
- *both*: as tuned, per word, and the candidate's words are matched in the query too;
- *white-base*, *white-full*, *white-both*: base, full and both with whitened states, and the treatment that is best
  for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from statistics import fmean
from typing import Final

from askalike.experiments.matcher import Matcher
from askalike.experiments.tasks import RerankTask, judge
from askalike.rank.ramn import RamnSettings
from askalike.rank.ramn.settings import ALPHAS, Repeats
from askalike.rank.word_states import Similarity

__all__ = ["LAYERS", "WHITE", "Choice", "choose_settings"]

LAYERS: Final = ("base", "mismatch", "full", "tuned", "both")
WHITE: Final = ("white-base", "white-full", "white-both")
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
    tried = _treatments(matchers, dev, RamnSettings())
    full = max(tried, key=lambda one: one[0])[1]
    weighted, both = _weighted(full)
    settings = {
        "base": replace(full, has_mismatch=False, alpha=0.0),
        "mismatch": replace(full, alpha=0.0),
        "full": full,
        "tuned": _best(matchers, dev, weighted)[1],
        "both": _best(matchers, dev, both)[1],
    }
    if all(one.whitened is not None for one in matchers):
        of_white = _treatments(matchers, dev, RamnSettings(is_whitened=True))
        white = max(of_white, key=lambda one: one[0])[1]
        settings |= {
            "white-base": replace(white, has_mismatch=False, alpha=0.0),
            "white-full": white,
            "white-both": _best(matchers, dev, _weighted(white)[1])[1],
        }
        tried += of_white
    ordered = sorted(tried, key=lambda one: -one[0])
    return Choice(settings, [{**asdict(one), "dev_map": value} for value, one in ordered])


def _treatments(matchers: Sequence[Matcher], dev: RerankTask, begun: RamnSettings) -> list[tuple[float, RamnSettings]]:
    """Return every treatment with its best α, and its dev MAP."""
    tried = []
    for similarity, floor, repeats in product(SIMILARITIES, FLOORS, REPEATS):
        treated = replace(begun, similarity=similarity, floor=floor, repeats=repeats)
        tried.append(_best(matchers, dev, (replace(treated, alpha=alpha) for alpha in ALPHAS)))
    return tried


def _weighted(full: RamnSettings) -> tuple[list[RamnSettings], list[RamnSettings]]:
    """Return what each layer may weigh, as a product or per word; and per word in both directions."""
    weighted = [
        replace(full, mismatch_weight=weight, alpha=alpha) for weight, alpha in product(WEIGHTS, (0.0, *ALPHAS))
    ]
    per_word = [replace(one, is_per_word=True) for one in weighted]
    return weighted + per_word, [replace(one, repeats="each", is_both_ways=True) for one in per_word]


def _best(matchers: Sequence[Matcher], dev: RerankTask, settings: Iterable[RamnSettings]) -> tuple[float, RamnSettings]:
    found = [(fmean(judge(dev, one.run(dev, each)).means["map"] for one in matchers), each) for each in settings]
    return max(found, key=lambda one: one[0])

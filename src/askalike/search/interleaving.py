"""Two rankers compared by what people do: team-draft interleaving, and the test of who wins.

Source: Radlinski, Kurup and Joachims, "How Does Clickthrough Data Reflect Retrieval Quality?", CIKM 2008, Algorithm 2;
Chapelle, Joachims, Radlinski and Yue, "Large-Scale Validation and Analysis of Interleaved Search Evaluation", ACM TOIS
30(1), 2012, section 2.2 (team draft) and 3.3 (ties are left out of the sign test). The weight of a label that was shown
by chance is 1 / propensity: Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback", WSDM
2017, section 4.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from askalike.search.thresholds import clopper_pearson
from askalike.types import Comparison, Team

MOST_DRAFTED: Final = 20
"""So many places are drafted at most: each two need a coin, and all throws of the coins are looked at."""
SURE: Final = 0.975
"""Of each end of a two-sided 95 % interval."""
LEVEL: Final = 0.05


def team_draft(
    default: Sequence[str], rival: Sequence[str], limit: int, coins: Sequence[bool]
) -> list[tuple[str, Team]]:
    """Return one list of two rankings, each place with the team that picked it.

    Each round a coin says which team picks first; each picks the best of its ranking that is not in the list yet.
    Differs: the paper stops where one ranking has nothing left; here the rest of the other follows without a team, so
    that who asks is shown as many, and nobody gets credit for it.

    Args:
        default, rival: ids, best first, each once.
        limit: length of the list at most.
        coins: one a round: True lets the default pick first. ⌈limit / 2⌉ suffice.

    Example:
        The first coin lets the rival pick a, the default then picks b; the second lets the default pick c, and the
        rival picks d, since a is taken:

        >>> team_draft(["b", "c", "a"], ["a", "d", "b"], 4, [False, True])
        [('a', 'rival'), ('b', 'default'), ('c', 'default'), ('d', 'rival')]
    """
    sides: tuple[tuple[Team, Sequence[str]], ...] = (("default", default), ("rival", rival))
    drafted: dict[str, Team] = {}
    for coin in coins:
        for team, ranking in sides if coin else reversed(sides):
            pick = next((one for one in ranking if one not in drafted), None)
            if pick is None or len(drafted) >= limit:
                break
            drafted[pick] = team
        else:
            continue
        break
    for one in (*default, *rival):
        if len(drafted) >= limit:
            break
        drafted.setdefault(one, "")
    return list(drafted.items())


def propensities(default: Sequence[str], rival: Sequence[str], limit: int) -> dict[str, float]:
    """Return for each question the probability that ``team_draft`` shows it: the share of throws of the coins.

    Example:
        Of two places, the first coin decides whether a or b comes first; both are always there, but each is best of one
        ranking only, so that neither c nor d is ever shown:

        >>> propensities(["a", "c"], ["b", "d"], 2)
        {'a': 1.0, 'b': 1.0}

        Of three places the third is c or d, by the second coin:

        >>> propensities(["a", "c"], ["b", "d"], 3)
        {'a': 1.0, 'b': 1.0, 'c': 0.5, 'd': 0.5}
    """
    throws = list(itertools.product((True, False), repeat=(limit + 1) // 2))
    times = Counter(one for coins in throws for one, _ in team_draft(default, rival, limit, coins))
    return {one: count / len(throws) for one, count in sorted(times.items())}


def session_coins(session: str) -> tuple[bool, ...]:
    """Return the coins of a visit, always the same, so that its suggestions do not change places while one types."""
    bits = int.from_bytes(hashlib.blake2b(session.encode(), digest_size=2).digest(), "big")
    return tuple(bool(bits >> place & 1) for place in range(MOST_DRAFTED // 2))


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value that wins and losses are equally likely, ties left out.

    ``p = min(1, 2 · Σ_{i ≤ min(w, l)} C(n, i) / 2ⁿ)`` with n = w + l; 1 where n is 0.

    Example:
        Of 6 visits 5 were won: 2 · (1 + 6) / 64.

        >>> sign_test(5, 1)
        0.21875
    """
    count = wins + losses
    tail = sum(math.comb(count, one) for one in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / 2**count) if count else 1.0


def compared(taken: Iterable[tuple[int, int]]) -> Comparison:
    """Return how two rankers did.

    Args:
        taken: for each visit in which both teams had suggestions: how many of the default's and of the rival's were
            opened or said to help.

    Example:
        Three visits were won by the default, one by the rival, one was a tie, and in one nothing was opened:

        >>> found = compared([(1, 0), (2, 0), (2, 1), (0, 1), (1, 1), (0, 0)])
        >>> (found.visits, found.default, found.rival, found.ties, found.share, found.p_value, found.better)
        (6, 3, 1, 1, 0.75, 0.625, '')
    """
    visits = wins = losses = ties = 0
    for default, rival in taken:
        visits += 1
        wins += default > rival
        losses += rival > default
        ties += default == rival > 0
    low, high = clopper_pearson(wins, wins + losses, SURE)
    p_value = sign_test(wins, losses)
    better: Team = "" if p_value >= LEVEL else "default" if wins > losses else "rival"
    share = wins / (wins + losses) if wins + losses else None
    return Comparison(visits, wins, losses, ties, share, low, high, p_value, better)

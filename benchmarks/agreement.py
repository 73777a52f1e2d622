"""How far a second reading of graded pairs agrees with the first.

Command: ``python -m benchmarks.agreement``. 169 pairs of ``judged.jsonl`` and ``judged-first-five.jsonl`` were drawn by
grade (half of grade 2 or 3, a quarter of grade 1, the others 0), shuffled, and read again by a language model that had
read none of them, by the guide of the judged pools and without any grade, score or rank (``judged-again.jsonl``). Told
are the share of equal grades and of grades that differ by one at most, Cohen's kappa with quadratic weights, and kappa
of "2 or more". Writes ``results/agreement.json``.

Source: Cohen, "Weighted kappa", Psychological Bulletin 70, 1968.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from benchmarks.record import write

AGAIN = Path(__file__).with_name("judged-again.jsonl")


def agreement(first: list[int], again: list[int]) -> dict[str, Any]:
    """Return how far two readings of the same pairs agree."""
    one, two = np.array(first), np.array(again)
    found = {
        "pairs": len(one),
        "equal": float((one == two).mean()),
        "within one": float((abs(one - two) <= 1).mean()),
        "kappa, quadratic": float(cohen_kappa_score(one, two, weights="quadratic")),
        "kappa, 2 or more": float(cohen_kappa_score(one >= 2, two >= 2)),
    }
    return {name: round(value, 3) for name, value in found.items()}


def main() -> None:
    """Run it."""
    judged = [json.loads(line) for line in AGAIN.read_text(encoding="utf-8").splitlines()]
    forums = sorted({one["forum"] for one in judged})
    of_forum = {name: [one for one in judged if one["forum"] == name] for name in ("all", *forums)} | {"all": judged}
    found = {
        name: agreement([one["first"] for one in part], [one["again"] for one in part])
        for name, part in of_forum.items()
    }
    table = confusion_matrix([one["first"] for one in judged], [one["again"] for one in judged])
    write("agreement", "python -m benchmarks.agreement", {"found": found, "first by again": table.tolist()})
    for name, values in found.items():
        print(name, values)


if __name__ == "__main__":
    main()

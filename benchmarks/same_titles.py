"""Whether two questions with one title and two texts ask the same, by how informative the title is.

Command: ``python -m benchmarks.same_titles``. 76 pairs of four forums, drawn by the rarity of their titles, were read
by one language model by the guide of the judged pools, without being told any figure (``same-titles-judged.jsonl``): 1
for a grade of 2 or 3, ½ where it could be either. Rarity is the sum of the idf of the title's words over that of a word
that no question has. Beside it the probability that the package's scorer says of the first title, asked alone, and the
second question. Writes ``results/same-titles.json``.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from askalike.models.term_weighting import inverse_document_frequency
from askalike.search.query import QuerySettings, TermCounts, weigh
from askalike.search.scorer import WORD_VECTORS, WORDS, probability, scorers
from askalike.types import Query
from benchmarks.record import write
from benchmarks.scorer_sets import Site

JUDGED: Final = Path(__file__).with_name("same-titles-judged.jsonl")
ENDS: Final = (0.0, 0.75, 1.0, 1.25, 1.5, 2.0, 99.0)


def main() -> None:
    """Run it."""
    judged = [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]
    found: list[tuple[float, float, float, float]] = []
    for forum in sorted({one["forum"] for one in judged}):
        site = Site(forum, None)
        for one in judged:
            if one["forum"] == forum:
                title = site.forum.question(one["query"]).title
                counts = TermCounts(site.searcher.engine)
                terms = weigh(site.searcher.analyzer.prepare(title, "", "plain"), QuerySettings(), counts)
                size = counts.size or 1
                rarity = sum(inverse_document_frequency(size, counts.known.get(term, 0)) for term in terms)
                pair = site.pairs("title", Query(title), one["query"], {one["candidate"]: 0.0}, 0, with_minilm=False)
                assert pair is not None
                said = [
                    float(probability(scorers()[version].logits(features))[0])
                    for version, features in ((WORDS, pair.by_words), (WORD_VECTORS, pair.general))
                ]
                found.append((rarity / inverse_document_frequency(size, 0), one["is_same"], *said))
    rows: dict[str, Any] = {}
    table = np.array(found)
    for low, high in pairwise(ENDS):
        part = table[(table[:, 0] >= low) & (table[:, 0] < high)]
        means = part[:, 1:].mean(axis=0).round(3).tolist()
        rows[f"{low:g} to {high:g}"] = {
            "pairs": len(part),
            **dict(zip(("same", WORDS, WORD_VECTORS), means, strict=True)),
        }
        print(rows[f"{low:g} to {high:g}"])
    write("same-titles", "python -m benchmarks.same_titles", {"by rarity": rows})


if __name__ == "__main__":
    main()

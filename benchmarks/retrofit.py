"""Synonyms for the general encoder: its word vectors drawn towards those of WordNet's synonyms, on the judged pools.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.retrofit DIR`` with the folder of WordNet's files (``data.noun`` and
its siblings, as Debian's wordnet-base has them). WordNet has seen no forum, so that nothing can have leaked.

Each vector q_i of a word with synonyms becomes (mean of its synonyms' q_j + alpha * its own before) / (1 + alpha), ten
times over; Faruqui et al., Retrofitting Word Vectors to Semantic Lexicons, NAACL 2015, with alpha for their alpha_i and
1 / degree for beta_ij. The network over the vectors stays as it was trained. Pools, measure and how the weight
beside words is chosen are those of ``benchmarks.students``.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askalike.data import default_model
from askalike.evaluation.significance import bootstrap_difference
from askalike.models.encoders.model import Model
from askalike.models.vocabulary import Vocabulary
from benchmarks.record import write
from benchmarks.students import ARCHIVES, Pools, forum_of, near

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.retrofit DIR"
ALPHAS = (1.0, 2.0, 4.0)
ROUNDS = 10

Array = NDArray[np.float32]


def synonyms(folder: Path, vocabulary: Vocabulary) -> dict[int, list[int]]:
    """Return the ids of the words that share a set of synonyms with each word; words of several parts are left out."""
    found: dict[int, set[int]] = defaultdict(set)
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{kind}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            parts = line.split()
            words = [word.partition("(")[0].lower() for word in parts[4 : 4 + 2 * int(parts[3], 16) : 2]]
            ids = {vocabulary.ids([word])[0] for word in words if "_" not in word} - {0}
            for one in ids:
                found[one] |= ids - {one}
    return {one: sorted(others) for one, others in found.items() if others}


def retrofitted(vectors: Array, near_words: dict[int, list[int]], alpha: float) -> Array:
    """Return the vectors drawn towards those of their synonyms.  # (V, D)"""
    found = vectors.copy()
    for _ in range(ROUNDS):
        for one, others in near_words.items():
            found[one] = (found[others].mean(axis=0) + alpha * vectors[one]) / (1 + alpha)
    return found


def main() -> None:
    """Measure and write results/retrofit.json."""
    path = default_model()
    if len(sys.argv) != 2 or path is None:
        sys.exit(f"expected {COMMAND}")
    model = Model.load(path)
    near_words = synonyms(Path(sys.argv[1]), model.vocabulary)
    forums = {}
    for name in ARCHIVES:
        with forum_of(name) as forum:
            forums[name] = {question.id: question for question in forum.questions()}
    pools = Pools(forums)
    rows = {}
    for alpha in (None, *ALPHAS):
        vectors = model.embedding() if alpha is None else retrofitted(model.embedding(), near_words, alpha)
        used = Model.build(model.settings, model.vocabulary, vectors, model.parameters())
        name = "general encoder" if alpha is None else f"with synonyms, alpha {alpha:g}"
        rows[name] = pools.row(near(used.encode(pools.asked), [used.encode(some) for some in pools.candidates]))
        print(name, {part: rows[name][part]["all"] for part in ("alone", "with words")}, flush=True)
    before = rows["general encoder"]
    compared = {
        f"{name}, {part}": bootstrap_difference(row[part]["queries"], before[part]["queries"])
        for name, row in rows.items()
        for part in ("alone", "with words")
        if row is not before
    }
    differences = {
        name: {"mean": round(one.mean, 2), "low": round(one.low, 2), "high": round(one.high, 2)}
        for name, one in compared.items()
    }
    words = {"words with synonyms": len(near_words), "links": sum(map(len, near_words.values()))}
    write("retrofit", COMMAND, {**words, "rows": rows, "differences": differences})


if __name__ == "__main__":
    main()

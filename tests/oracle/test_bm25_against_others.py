"""BM25 of given pairs against the word index's own count, which is another implementation of the formula."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from askalike.index.words import FieldWeights, IndexEntry, WordIndex
from askalike.models.term_weighting import BM25, CollectionStatistics


def test_pair_scores_equal_the_engines_on_short_texts(tmp_path: Path) -> None:
    # texts of up to 39 terms: their lengths are exact in the engine's one byte
    chance = random.Random(3)
    words = [f"w{number}" for number in range(60)]
    documents = [chance.choices(words, weights=range(60, 0, -1), k=chance.randint(1, 39)) for _ in range(200)]
    index = WordIndex.create(tmp_path / "lexical", applied=0, fingerprint="f")
    with index.writing() as writer:
        for num, document in enumerate(documents):
            writer.put(IndexEntry(num, [], document))
        writer.commit(index.cursor)
    scorer = BM25(CollectionStatistics.count(documents))
    for _ in range(30):
        query = list(dict.fromkeys(chance.choices(words, k=5)))
        engine = dict(index.search(dict.fromkeys(query, 1.0), FieldWeights(0.0, 1.0), 200))
        ours = {num: score for num, score in enumerate(scorer.scores(query, documents)) if score > 0}
        assert engine.keys() == ours.keys()
        for num, score in ours.items():
            assert engine[num] == pytest.approx(score, rel=1e-4)

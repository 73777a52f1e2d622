"""What the test of misspellings does to words and to figures."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.misspelling import compared, edited, misspelled, with_edits
from benchmarks.spelling import mistyped, one_misspelt
from benchmarks.systems import RetrievalTask

from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question


def distance(first: str, second: str) -> int:
    """Return the least number of letters left out, put in, changed, or swapped with their neighbour."""
    table = {(i, 0): i for i in range(len(first) + 1)} | {(0, j): j for j in range(len(second) + 1)}
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            ways = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (first[i - 1] != second[j - 1])]
            if i > 1 and j > 1 and first[i - 2 : i] == second[j - 2 : j][::-1]:
                ways.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(ways)
    return table[len(first), len(second)]


@pytest.mark.parametrize("word", ["visa", "Transit", "aaa", "passport"])
def test_an_edit_is_one_step_away_and_all_four_kinds_come(word: str) -> None:
    chance = np.random.default_rng(0)
    found = {edited(word, chance) for _ in range(300)}
    assert {distance(word, one) for one in found} == {1}
    assert {len(one) - len(word) for one in found} == {-1, 0, 1}


def test_only_content_words_are_edited() -> None:
    text = "Can I take the 2nd bus to X-5, at 10:30?"
    words = misspelled(text, np.random.default_rng(1)).split()
    assert [one for one, old in zip(words, text.split(), strict=True) if one == old] == [
        "Can", "I", "the", "2nd", "to", "X-5,", "at", "10:30?",
    ]  # fmt: skip


def test_draws_differ_and_the_collection_stays() -> None:
    question = Question("q", "Transit visa", "<p>Which passport</p>", "html")
    task = RetrievalTask("t", {"q": question}, (question,), {}, {})
    first, again, other = (with_edits(task, draw) for draw in (0, 0, 1))
    assert first == again != other
    assert first.collection == (question,)
    assert (first.queries["q"].markup, "<p>" in first.queries["q"].body) == ("plain", False)


def test_what_is_lost_is_the_mean_difference() -> None:
    found = compared({"a": 1.0, "b": 0.5}, {"a": 0.5, "b": 0.5})
    assert (found["written"]["mean"], found["misspelled"]["mean"], found["lost"]["mean"]) == (75.0, 50.0, 25.0)
    assert found["lost_share"] == 0.3333
    assert found["p_value"] == 1.0


def test_one_word_of_a_title_is_misspelt_so_that_its_term_changes() -> None:
    chance = np.random.default_rng(0)
    analyzer = Analyzer(TextSettings())
    written = "Do I need (visas) for /etc/hosts or an OpenSSL upgrade?"
    for _ in range(200):
        made = one_misspelt(written, analyzer, chance, mistyped)
        assert made is not None
        title, word, typo = made
        assert word in ("need", "visas", "upgrade")
        assert title == written.replace(word, typo)
        assert analyzer.terms(typo) != analyzer.terms(word)
    assert one_misspelt("Is it on?", analyzer, chance, mistyped) is None
    assert all(mistyped("letter", chance) != "letter" for _ in range(100))

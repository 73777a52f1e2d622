"""IBM's model 1: worked by hand, against loops, and what must hold of every training."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.naive_language import NaiveModelOne

from askalike.errors import SettingError
from askalike.models.language.likelihood import Parallel
from askalike.models.language.translation import Alignment, ModelOne, learn_translations

DAS, HAUS, BUCH, EIN, THE, HOUSE, BOOK, A = range(1, 9)
CORPUS = [([DAS, HAUS], [THE, HOUSE]), ([DAS, BUCH], [THE, BOOK]), ([EIN, BUCH], [A, BOOK])]


def drawn(seed: int, pairs: int = 40, size: int = 30) -> list[tuple[list[int], list[int]]]:
    """Return pairs with repeated words, of many lengths."""
    chance = np.random.default_rng(seed)
    return [
        (
            chance.integers(1, size, chance.integers(1, 9)).tolist(),
            chance.integers(1, size, chance.integers(1, 14)).tolist(),
        )
        for _ in range(pairs)
    ]


def test_two_steps_give_what_they_give_by_hand() -> None:
    model = ModelOne(Parallel.of(CORPUS), 9)
    likelihood = model.step()
    assert likelihood == pytest.approx(6 * np.log(1 / 4)), "every target word is one of four, all alike"
    first = {(THE, DAS): 1 / 2, (HOUSE, DAS): 1 / 4, (BOOK, DAS): 1 / 4, (THE, HAUS): 1 / 2, (A, BUCH): 1 / 4}
    for (word, source), expected in {**first, (BOOK, BUCH): 1 / 2, (A, EIN): 1 / 2, (A, DAS): 0.0}.items():
        assert model.probability(word, source) == pytest.approx(expected)
    # c(the|das) = ½/(½+½) + ½/(½+¼) = 7/6, c(house|das) = ¼/(¼+½) = 1/3 = c(book|das); c(the|das) / 11/6 = 7/11
    model.step()
    second = {(THE, DAS): 7 / 11, (HOUSE, DAS): 2 / 11, (HOUSE, HAUS): 4 / 7, (BOOK, BUCH): 7 / 11, (A, EIN): 4 / 7}
    for (word, source), expected in second.items():
        assert model.probability(word, source) == pytest.approx(expected)


def test_with_null_the_first_step_gives_it_its_part() -> None:
    model = ModelOne(Parallel.of([([1], [2, 3]), ([4], [2])]), 5, has_null=True)
    assert model.step() == pytest.approx(3 * np.log(1 / 2)), "two target words, whichever source"
    # each target word is half from NULL: c(2|NULL) = 1, c(3|NULL) = ½; c(2|1) = c(3|1) = ½; c(2|4) = ½
    found = [model.probability(*pair) for pair in ((2, 5), (3, 5), (2, 1), (3, 1), (2, 4))]
    assert found == pytest.approx([2 / 3, 1 / 3, 1 / 2, 1 / 2, 1.0])
    assert 5 not in model.translations().sources, "NULL is left out of what is kept"


@pytest.mark.parametrize("null", [None, 30])
@pytest.mark.parametrize("places", [7, 1 << 21])
def test_every_step_is_that_of_plain_loops(null: int | None, places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.models.language.translation._CELLS_AT_ONCE", places)  # many blocks, or one
    pairs = drawn(1)
    model, naive = ModelOne(Parallel.of(pairs), 30, has_null=null is not None), NaiveModelOne(pairs, null)
    for _ in range(4):
        assert model.step() == pytest.approx(naive.step(), rel=1e-12)
        for (word, source), expected in naive.table.items():
            assert model.probability(word, source) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("has_null", [False, True])
def test_the_likelihood_never_falls(has_null: bool) -> None:
    model = ModelOne(Parallel.of(drawn(2)).both_ways(), 30, has_null=has_null)
    found = [model.step() for _ in range(30)]
    assert all(after >= before - 1e-9 for before, after in pairwise(found))


def test_what_a_source_translates_into_sums_to_one() -> None:
    model = ModelOne(Parallel.of(drawn(3)), 30)
    for _ in range(3):
        model.step()
    sums = np.asarray(model.translations().matrix().sum(axis=0)).ravel()
    assert sums[sums > 0] == pytest.approx(1.0, rel=1e-5)


def test_small_probabilities_are_left_out_and_the_others_stay() -> None:
    pairs, told = Parallel.of(drawn(4)), []
    every = learn_translations(pairs, 30, Alignment(3, least=0.0))
    kept = learn_translations(pairs, 30, Alignment(3, least=0.1), lambda done, value: told.append((done, value)))
    assert 0 < len(kept) < len(every)
    dense = every.matrix().toarray()
    np.testing.assert_allclose(kept.matrix().toarray(), np.where(dense >= 0.1, dense, 0), rtol=1e-6)
    assert [done for done, _ in told] == [1, 2, 3]
    assert told[0][1] < told[2][1] < 0


def test_the_same_pairs_give_the_same_bytes() -> None:
    first, second = (learn_translations(Parallel.of(drawn(5)), 30, Alignment(4)) for _ in range(2))
    assert first.values.tobytes() == second.values.tobytes()
    assert first.sources.tobytes() == second.sources.tobytes()


def test_nothing_is_learned_from_nothing() -> None:
    assert len(learn_translations(Parallel.of([]), 5, Alignment(2))) == 0
    assert len(learn_translations(Parallel.of([([1], [])]).both_ways(), 5, Alignment(2))) == 0


def test_settings_out_of_range_are_refused() -> None:
    for wrong in ({"iterations": 0}, {"least": 1.0}, {"least": -0.1}):
        with pytest.raises(SettingError, match=r"(iterations|least) is .*, but expected a"):
            Alignment(**wrong)  # type: ignore[arg-type]

"""Laws that hold for any gold and run."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askalike.evaluation import (
    PROTOCOLS,
    bootstrap_mean,
    components,
    evaluate,
    randomisation_test,
    read_run,
    split_components,
    write_trec_qrels,
    write_trec_run,
)
from askalike.evaluation.files import read_trec_qrels
from askalike.types import Qrels, Run

MEASURES = ["map", "mrr", "p@1", "p@5", "recall@5", "ndcg@10", "success@3"]
DOCUMENTS = st.text("abcdé0", min_size=1, max_size=3)
SCORES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0])
EVERY = pytest.mark.parametrize("protocol", PROTOCOLS)
GIVEN = settings(max_examples=60, deadline=None)


@st.composite
def gold_and_run(draw: st.DrawFn, *, has_ties: bool = True) -> tuple[Qrels, Run]:
    """Draw gold in which every query has a positive among its ranked documents, and their scores."""
    queries = draw(st.lists(st.text("qr1", min_size=1, max_size=3), min_size=1, max_size=5, unique=True))
    qrels: Qrels = {}
    run: Run = {}
    for query in queries:
        names = draw(st.lists(DOCUMENTS, min_size=1, max_size=12, unique=True))
        qrels[query] = {name: draw(st.integers(-1, 3)) for name in names}
        qrels[query][draw(st.sampled_from(names[:8]))] = draw(st.integers(1, 3))
        scores = draw(st.lists(SCORES, min_size=len(names), max_size=len(names), unique=not has_ties))
        run[query] = list(zip(names, scores, strict=True))
    return qrels, run


@EVERY
@GIVEN
@given(given_=gold_and_run())
def test_values_lie_between_zero_and_one(protocol: str, given_: tuple[Qrels, Run]) -> None:
    report = evaluate(*given_, protocol, MEASURES)
    values = [value for values in report.per_query.values() for value in values.values()]
    assert all(0 <= value <= 1 + 1e-12 for value in [*values, *report.means.values()])


@EVERY
@GIVEN
@given(given_=gold_and_run())
def test_ranking_by_grade_is_worth_one(protocol: str, given_: tuple[Qrels, Run]) -> None:
    qrels, _ = given_
    run: Run = {query: [(name, float(grade)) for name, grade in marks.items()] for query, marks in qrels.items()}
    report = evaluate(qrels, run, protocol, ["map", "mrr", "p@1", "ndcg@10", "success@1"])
    assert report.means == pytest.approx(dict.fromkeys(report.measures, 1.0))


@EVERY
@GIVEN
@given(given_=gold_and_run(), seed=st.integers(0, 1000))
def test_the_order_of_queries_and_judgements_changes_nothing(
    protocol: str, given_: tuple[Qrels, Run], seed: int
) -> None:
    qrels, run = given_
    chance = random.Random(seed)
    shuffled = {
        query: dict(chance.sample(list(qrels[query].items()), len(qrels[query])))
        for query in chance.sample(list(qrels), len(qrels))
    }
    turned = dict(reversed(run.items()))
    assert evaluate(shuffled, turned, protocol, MEASURES).means == evaluate(qrels, run, protocol, MEASURES).means


@GIVEN
@given(given_=gold_and_run(), seed=st.integers(0, 1000))
def test_the_order_of_a_run_changes_nothing_under_trec(given_: tuple[Qrels, Run], seed: int) -> None:
    qrels, run = given_
    chance = random.Random(seed)
    shuffled = {query: chance.sample(entries, len(entries)) for query, entries in run.items()}
    assert evaluate(qrels, shuffled, "trec", MEASURES) == evaluate(qrels, run, "trec", MEASURES)


@EVERY
@GIVEN
@given(given_=gold_and_run(has_ties=False), seed=st.integers(0, 1000))
def test_the_order_of_a_run_without_ties_changes_nothing(protocol: str, given_: tuple[Qrels, Run], seed: int) -> None:
    qrels, run = given_
    chance = random.Random(seed)
    shuffled = {query: chance.sample(entries, len(entries)) for query, entries in run.items()}
    assert evaluate(qrels, shuffled, protocol, MEASURES) == evaluate(qrels, run, protocol, MEASURES)


@EVERY
@GIVEN
@given(given_=gold_and_run())
def test_renaming_documents_in_order_changes_nothing(protocol: str, given_: tuple[Qrels, Run]) -> None:
    qrels, run = given_
    renamed_qrels = {query: {f"x{name}": grade for name, grade in marks.items()} for query, marks in qrels.items()}
    renamed_run = {query: [(f"x{name}", score) for name, score in entries] for query, entries in run.items()}
    assert evaluate(renamed_qrels, renamed_run, protocol).means == evaluate(qrels, run, protocol).means


@GIVEN
@given(given_=gold_and_run())
def test_files_give_back_what_was_written(given_: tuple[Qrels, Run]) -> None:
    qrels, run = given_
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines"
        write_trec_qrels(path, qrels)
        assert read_trec_qrels(path) == qrels
        write_trec_run(path, run)
        written = read_run(path)
    for query, entries in run.items():
        assert [name for name, _ in written[query]] == [name for name, _ in entries]
        scores = np.array([score for _, score in written[query]]).astype(np.float32)
        order = sorted(range(len(entries)), key=lambda place: -entries[place][1])
        assert (np.diff(scores[order]) < 0).all(), "its order is kept, in single precision too"
        if len({np.float32(score) for _, score in entries if abs(score) < 1e38}) == len(entries):
            assert written[query] == entries, "what falls already is not touched"


@GIVEN
@given(pairs=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30), seed=st.integers(0, 2**32))
def test_p_values_and_intervals_are_sound(pairs: list[tuple[float, float]], seed: int) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    test = randomisation_test(first, second, rounds=200, seed=seed)
    assert 0 < test.p_value <= 1
    assert test.p_value == randomisation_test(second, first, rounds=200, seed=seed).p_value
    interval = bootstrap_mean(first, rounds=200, seed=seed)
    assert min(first) - 1e-12 <= interval.low <= interval.high <= max(first) + 1e-12


IDS = st.text("abcdef", min_size=1, max_size=2)


@GIVEN
@given(links=st.lists(st.tuples(IDS, IDS), max_size=30), ids=st.lists(IDS, max_size=5), seed=st.integers())
def test_a_split_by_component_never_leaks_and_loses_nothing(
    links: list[tuple[str, str]], ids: list[str], seed: int
) -> None:
    parts = split_components(links, {"train": 0.6, "dev": 0.2, "test": 0.2}, seed, ids)
    groups = components(links, ids)
    assert all(any(set(group) <= set(part) for part in parts.values()) for group in groups)
    everything = sorted({name for link in links for name in link} | set(ids))
    assert sorted(name for part in parts.values() for name in part) == everything
    assert sorted(name for group in groups for name in group) == everything
    assert split_components(list(reversed(links)), {"test": 0.2, "dev": 0.2, "train": 0.6}, seed, ids) == parts

"""Max-margin and InfoNCE: formulas worked by hand, gradients against differences, and what batches hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
from tests.tiny_training import STAGES, tiny_corpus, tiny_data

from askalike.errors import SettingError
from askalike.models.encoders.settings import EncoderConfig
from askalike.training.corpus import Corpus, TrainingData
from askalike.training.recipe import OBJECTIVES
from askalike.types import Answer, Question

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.models.encoders.networks.encoder import build  # noqa: E402
from askalike.training.decoders import (  # noqa: E402
    Decoding,
    Reconstruction,
)
from askalike.training.objectives import (  # noqa: E402
    Contrastive,
    MaxMargin,
    TextNetwork,
    info_nce,
    max_margin,
)

KINDS = {
    "decoding": Decoding,
    "max-margin": MaxMargin,
    "contrastive": Contrastive,
    "reconstruction": Reconstruction,
}
ENCODERS = {"decoding": ("rcnn", "lstm", "gru"), "reconstruction": ("gru", "attention")}
WITH_ENCODERS = [
    (name, kind) for name in KINDS for kind in ENCODERS.get(name, ("rcnn", "lstm", "gru", "cnn", "attention"))
]
every_objective = pytest.mark.parametrize("name", KINDS)


def network(corpus: Corpus, kind: Any = "gru", pooling: Any = "mean") -> TextNetwork:
    words = int(corpus.texts.ids.max(initial=0)) + 1
    embedding = torch.randn(words, 4, generator=torch.Generator().manual_seed(1))
    config = EncoderConfig(kind, 4, 4 if kind == "attention" else 5, pooling=pooling)
    return TextNetwork(build(config), embedding, is_embedding_trained=True)


def objective(name: str, corpus: Corpus | None = None, kind: str = "gru", **options: Any) -> Any:
    corpus = corpus or tiny_corpus()
    return KINDS[name](network(corpus, kind), corpus, OBJECTIVES[name](**{**STAGES[name], **options}))


def no_bars(size: int) -> Any:
    return torch.zeros(size, size, dtype=torch.bool)


def test_max_margin_takes_the_worst_negative_of_each_row() -> None:
    scores = torch.tensor([[0.5, 0.6, 0.2], [0.9, 0.0, 0.1], [0.2, 0.1, 0.3]])
    assert max_margin(scores, 0.2).item() == pytest.approx((0.3 + 0.0 + 0.3) / 3)


def test_info_nce_is_the_mean_of_both_directions() -> None:
    scores = torch.tensor([[1.0, 0.0], [0.5, 0.2]])
    forth = log(exp(2) + 1) - 2 + log(exp(1) + exp(0.4)) - 0.4  # τ = 1/2
    back = log(exp(2) + exp(1)) - 2 + log(1 + exp(0.4)) - 0.4
    assert info_nce(scores, no_bars(2), 0.5).item() == pytest.approx((forth / 2 + back / 2) / 2, rel=1e-6)


@pytest.mark.parametrize(("name", "kind"), WITH_ENCODERS)
def test_the_gradient_of_an_objective_is_that_of_small_differences(name: str, kind: str) -> None:
    trained = objective(name, kind=kind).double()
    trained.eval()
    batch = trained.batches(0, 0)[0]
    trained(batch).backward()
    random = np.random.default_rng(0)
    for parameter in (value for value in trained.parameters() if value.grad is not None):
        flat, gradient = parameter.detach().view(-1), parameter.grad.view(-1)
        for place in random.choice(len(flat), min(3, len(flat)), replace=False).tolist():
            around = []
            for step in (1e-6, -2e-6):
                flat[place] += step
                around.append(trained(batch).item())
            flat[place] += 1e-6
            assert gradient[place].item() == pytest.approx((around[0] - around[1]) / 2e-6, rel=1e-4, abs=1e-7)


@every_objective
def test_batches_depend_on_seed_and_epoch_alone(name: str) -> None:
    def batches(epoch: int, seed: int) -> list[Any]:
        return [batch.tolist() for batch in objective(name).batches(epoch, seed)]

    assert batches(3, 1) == batches(3, 1)
    assert len({str(batches(epoch, seed)) for epoch in (0, 1) for seed in (1, 2)}) == 4


def test_max_margin_sees_every_pair_once_an_epoch() -> None:
    corpus = tiny_corpus()
    seen = np.concatenate(objective("max-margin", corpus).batches(0, 0))
    assert seen.shape == (16, 2 + 3)
    assert sorted(seen[:, :2].tolist()) == sorted(corpus.pairs.tolist())


def test_pairs_of_a_query_lie_in_one_batch_and_share_its_negatives() -> None:
    questions = [Question(str(number), f"word{number}") for number in range(12)]
    pairs = [("0", "1"), ("2", "3"), ("0", "4"), ("5", "6"), ("2", "0")]
    trained = objective("max-margin", tiny_corpus(TrainingData(questions, pairs)), drawn_for="query", batch_size=2)
    batches = trained.batches(0, 0)
    assert sorted(len(set(batch[:, 0].tolist())) for batch in batches) == [1, 2], "three queries, two a batch"
    seen = np.concatenate(batches)
    assert sorted(seen[:, :2].tolist()) == sorted([int(a), int(b)] for a, b in pairs)
    for query in (0, 2, 5):
        negatives = seen[seen[:, 0] == query][:, 2:]
        assert (negatives == negatives[0]).all()
        assert not {query, *trained.corpus.labelled()[query]} & set(negatives[0].tolist())


def test_a_negative_is_never_the_query_nor_marked_with_it() -> None:
    questions = [Question(str(number), f"word{number}") for number in range(12)]
    pairs = [("0", str(number)) for number in range(1, 11)] + [("11", "3"), ("4", "5")]
    corpus = tiny_corpus(TrainingData(questions, pairs))
    trained = objective("max-margin", corpus, negatives=40)
    drawn = np.concatenate([batch for epoch in range(5) for batch in trained.batches(epoch, 7)])
    marked = corpus.labelled()
    for query, _, *negatives in drawn.tolist():
        assert not {query, *marked[query]} & set(negatives)
    of_first = drawn[drawn[:, 0] == 0]
    assert (of_first[:, 2:] == 11).all()  # all that is left to question 0
    counts = np.bincount(drawn[drawn[:, 0] == 11][:, 2:].ravel(), minlength=12)
    assert (counts[[3, 11]] == 0).all()
    assert (np.delete(counts, [3, 11]) > 0).all()


def test_a_pair_without_any_negative_is_left_out() -> None:
    questions = [Question(str(number), f"word{number}") for number in range(4)]
    pairs = [("0", "1"), ("0", "2"), ("0", "3"), ("1", "0")]
    trained = objective("max-margin", tiny_corpus(TrainingData(questions, pairs)))
    assert [row[:2] for row in trained.batches(0, 0)[0].tolist()] == [[1, 0]]
    with pytest.raises(SettingError, match="3 labelled pairs among 4 questions, but max-margin learns"):
        objective("max-margin", tiny_corpus(TrainingData(questions, pairs[:3])))


@pytest.mark.parametrize("kind", ["rcnn", "gru"])
@pytest.mark.parametrize(("margin", "dropout"), [(0.2, 0.0), (0.2, 0.4), (1.9, 0.4), (1e-4, 0.0)])
def test_max_margin_learns_from_the_hardest_negative_what_it_would_from_all(
    kind: str, margin: float, dropout: float
) -> None:
    trained = objective("max-margin", kind=kind, margin=margin)
    network, texts = trained.network, trained.corpus.texts
    network.dropout = dropout
    batch = trained.batches(0, 0)[0]
    parameters = list(network.parameters())
    torch.manual_seed(2)
    loss = trained(batch)
    slopes = torch.autograd.grad(loss, parameters)
    torch.manual_seed(2)
    distinct, places = np.unique(batch, return_inverse=True)
    vectors = network.questions(texts, distinct, network.question_dropout(texts, distinct))
    unit = torch.nn.functional.normalize(vectors)[torch.from_numpy(places.reshape(batch.shape))]
    whole = max_margin((unit[:, :1] * unit[:, 1:]).sum(-1), margin)
    torch.testing.assert_close(loss, whole)
    for ours, expected in zip(slopes, torch.autograd.grad(whole, parameters), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-6)


def test_what_dropout_leaves_out_of_questions_is_drawn_anew_and_only_in_training() -> None:
    objective = network(tiny_corpus())
    texts, rows = tiny_corpus().texts, np.array([2, 0, 5])
    assert objective.question_dropout(texts, rows) is None
    objective.dropout = 0.5
    torch.manual_seed(2)
    first, second = (objective.question_dropout(texts, rows) for _ in range(2))
    assert set(first.words.unique().tolist()) == set(first.pooled.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(first.words, second.words)
    whole = objective.questions(texts, rows, first)
    torch.testing.assert_close(objective.questions(texts, rows[1:], first.of(np.array([1, 2]))), whole[1:])
    objective.eval()
    assert objective.question_dropout(texts, rows) is None


def test_the_loss_of_info_nce_is_that_of_views_taken_one_by_one() -> None:
    corpus = tiny_corpus()
    trained = objective("contrastive", corpus)
    for batch in trained.batches(0, 0):
        sides = [row[:2] for row in batch.tolist()], [row[2:4] for row in batch.tolist()]
        first, second = ([_view(trained, corpus, rows) for rows in side] for side in sides)
        keys = [{row[4], row[5]} for row in batch.tolist()]
        near = [_with_marked(corpus, marked) for marked in keys]
        forth, back = [], []
        for row in range(len(batch)):
            kept = [column for column in range(len(second)) if column == row or not near[row] & keys[column]]
            forth.append(_log_share([first[row] @ second[column] / 0.2 for column in kept], kept.index(row)))
            kept = [column for column in range(len(batch)) if column == row or not near[column] & keys[row]]
            back.append(_log_share([first[column] @ second[row] / 0.2 for column in kept], kept.index(row)))
        assert trained(batch).item() == pytest.approx(-(np.mean(forth) + np.mean(back)) / 2, rel=1e-4)


def _view(trained: Any, corpus: Corpus, rows: list[int]) -> Any:
    with torch.no_grad():
        vectors = [trained.network.encode(corpus.texts, np.array([row])).numpy()[0] for row in rows if row >= 0]
    total = np.sum(vectors, axis=0, dtype=np.float64)
    return total / np.linalg.norm(total)


def _with_marked(corpus: Corpus, questions: set[int]) -> set[int]:
    return questions.union(*(corpus.labelled().get(question, ()) for question in questions))


def _log_share(logits: list[float], place: int) -> float:
    return float(logits[place] - np.log(np.sum(np.exp(logits))))


def rows(views: dict[str, float], data: TrainingData | None = None, epoch: int = 0, **chosen: Any) -> Iterator[Any]:
    for batch in objective("contrastive", tiny_corpus(data), views=views, **chosen).batches(epoch, 0):
        yield from batch.tolist()


def test_an_epoch_goes_over_views_as_often_as_it_is_told() -> None:
    assert len(list(rows({"title-body": 1.0}))) == 32
    assert len(list(rows({"title-body": 0.5, "marked": 2.0, "answers": 0.0}))) == 16 + 2 * 16
    half = [{row[4] for row in rows({"title-body": 0.5}, epoch=epoch)} for epoch in (0, 1)]
    assert half[0] != half[1]


def test_views_without_words_are_left_out() -> None:
    questions = [Question(str(number), "word", "" if number % 2 else "text") for number in range(8)]
    questions.append(Question("empty", "", "?"))
    answers = [Answer("1", "0", "?"), Answer("2", "1", "so"), Answer("3", "empty", "no"), Answer("4", "2", "yes")]
    data = TrainingData(questions, [("0", "1"), ("empty", "2"), ("2", "3")], answers)
    assert sorted(row[4] for row in rows({"title-body": 1.0}, data)) == [0, 2, 4, 6]
    assert sorted(row[4] for row in rows({"answers": 1.0}, data)) == [1, 2]
    assert sorted(row[4] for row in rows({"marked": 1.0}, data)) == [0, 2]


def test_a_batch_of_one_pair_of_views_is_left_out() -> None:
    assert len(list(rows({"marked": 1.0}, batch_size=5))) == 15


def test_too_few_views_are_refused_and_counted() -> None:
    data = replace(tiny_data(), pairs=[("0-0", "0-1")], answers=[])
    with pytest.raises(SettingError, match="1 of marked, 0 of answers; but expected at least two"):
        list(rows({"marked": 1.0, "answers": 1.0}, data))

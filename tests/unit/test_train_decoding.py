"""The encoder-decoder: what it reads and writes, its probabilities, perplexity, and what is held out."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest
from tests.tiny_training import tiny_corpus, tiny_data

from askalike.errors import SettingError
from askalike.models.encoders.settings import EncoderConfig
from askalike.training.corpus import Corpus, TrainingData
from askalike.training.recipe import DecodingOptions
from askalike.types import Question

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.models.encoders.networks.encoder import build  # noqa: E402
from askalike.models.encoders.networks.packing import Packing  # noqa: E402
from askalike.training import decoders  # noqa: E402
from askalike.training.decoders import (  # noqa: E402
    Decoding,
)
from askalike.training.objectives import TextNetwork  # noqa: E402

with_state = pytest.mark.parametrize("kind", ["rcnn", "lstm", "gru"])


def trained(corpus: Corpus | None = None, kind: Any = "gru", size: int = 8, seed: int = 0, **chosen: Any) -> Decoding:
    corpus = corpus or tiny_corpus()
    words = int(corpus.texts.ids.max()) + 1
    embedding = torch.randn(words, 4, generator=torch.Generator().manual_seed(1))
    network = TextNetwork(build(EncoderConfig(kind, 4, size)), embedding)
    return Decoding(network, corpus, DecodingOptions(**{"batch_size": 8, **chosen}), seed=seed)


def log_likelihoods(objective: Decoding, context: int, title: int) -> list[float]:
    """Return log P of each word of a title and of its end, one step after the other."""
    texts, network = objective.corpus.texts, objective.network
    ids = [*texts[title].tolist(), None]
    logs = []
    with torch.no_grad():
        read = network.embedding[texts[context].tolist()]
        _, carry = network.encoder.go_on(read, Packing.of(torch.tensor([len(read)])))
        word = torch.zeros(1, 4)
        for number in ids:
            states, carry = objective.decoder.go_on(word, Packing.of(torch.tensor([1])), carry)
            target = 0 if number is None else number + 1
            logs.append(float(objective.output.log_prob(states)[0, target]))
            word = network.embedding[[number or 0]]
    return logs


@with_state
def test_the_loss_is_the_mean_over_words_and_ends_taken_one_by_one(kind: str) -> None:
    objective = trained(kind=kind)
    for batch in objective.batches(0, 0)[:3]:
        naive = [value for context, title, _ in batch.tolist() for value in log_likelihoods(objective, context, title)]
        assert objective(batch).item() == pytest.approx(-np.mean(naive), rel=1e-5)


@with_state
def test_perplexity_is_that_of_the_held_out_titles_taken_one_by_one(kind: str) -> None:
    objective = trained(kind=kind, held_out=3)
    kept, corpus = objective.kept_out.tolist(), objective.corpus
    naive: dict[str, list[float]] = {"title": [], "body": [], "similar": []}
    for question in kept:
        naive["title"] += log_likelihoods(objective, 2 * question, 2 * question)
        naive["body"] += log_likelihoods(objective, 2 * question + 1, 2 * question)
        for other in corpus.labelled().get(question, ()):
            for context in (2 * other, 2 * other + 1):
                naive["similar"] += log_likelihoods(objective, context, 2 * question)
    assert objective.held_out() == pytest.approx(
        {f"perplexity from {name}": exp(-np.mean(values)) for name, values in naive.items()}, rel=1e-5
    )


@pytest.mark.parametrize("heads", [(2_000,), (6, 12, 20)])
@pytest.mark.parametrize("size", [4, 8])
def test_the_probabilities_of_all_words_add_up_to_one(
    monkeypatch: pytest.MonkeyPatch, heads: tuple[int, ...], size: int
) -> None:
    monkeypatch.setattr(decoders, "_HEAD", heads)
    objective = trained(size=size)
    states = torch.randn(5, size, generator=torch.Generator().manual_seed(2))
    logs = objective.output.log_prob(states)
    assert logs.shape == (5, len(objective.network.embedding) + 1)
    torch.testing.assert_close(logs.exp().sum(1), torch.ones(5))


def test_a_context_is_the_title_the_body_or_a_marked_question() -> None:
    def items(name: str) -> list[list[int]]:
        return sorted(np.concatenate(trained(contexts=(name,), held_out=0).batches(0, 0)).tolist())

    assert items("title") == [[2 * row, 2 * row, row] for row in range(32)]
    assert items("body") == [[2 * row + 1, 2 * row, row] for row in range(32)]
    marked = [[row, 2 * question, question] for question, other in tiny_pairs() for row in (2 * other, 2 * other + 1)]
    assert items("similar") == sorted(marked)


def tiny_pairs() -> list[tuple[int, int]]:
    return [pair for topic in range(0, 32, 4) for a, b in ((0, 1), (2, 1)) for pair in both(topic + a, topic + b)]


def both(first: int, second: int) -> list[tuple[int, int]]:
    return [(first, second), (second, first)]


def test_texts_without_words_are_neither_read_nor_written() -> None:
    questions = [Question("0", "one"), Question("1", "", "body"), Question("2", "two words", "text")]
    corpus = tiny_corpus(TrainingData(questions, [("0", "1"), ("1", "2")]))
    objective = trained(corpus)
    batches = np.concatenate(objective.batches(0, 0)).tolist()
    assert sorted(batches) == [[0, 0, 0], [3, 0, 0], [3, 4, 2], [4, 4, 2], [5, 4, 2]]
    assert objective(np.array([[0, 0, 0]])).item() == pytest.approx(-np.mean(log_likelihoods(objective, 0, 0)))
    assert objective.held_out() == {}  # a tenth of three questions is none


def test_held_out_titles_are_never_in_a_batch() -> None:
    objective = trained(held_out=3)
    kept = set(objective.kept_out.tolist())
    assert len(kept) == 3
    for batch in (batch for epoch in range(3) for batch in objective.batches(epoch, 5)):
        assert not kept & {*batch[:, 2].tolist(), *(batch[:, 0] // 2).tolist(), *(batch[:, 1] // 2).tolist()}


def test_dropout_is_off_while_perplexity_is_measured() -> None:
    objective = trained(held_out=3)
    objective.network.dropout = 0.5
    assert objective.held_out() == objective.held_out()
    assert objective.training
    batch = objective.batches(0, 0)[0]
    assert objective(batch).item() != objective(batch).item()


def test_questions_that_are_named_to_be_held_out_are_measured_and_never_learned_from() -> None:
    data = tiny_data()
    named = {data.questions[place].id for place in (4, 1)}
    objective = trained(tiny_corpus(replace(data, held_out=named)), held_out=3)
    assert objective.kept_out.tolist() == [1, 4], "these, and none that are drawn"
    learned = {question for batch in objective.batches(0, 0) for question in batch[:, 2].tolist()}
    assert not learned & {1, 4}
    assert "perplexity from body" in objective.held_out()
    assert replace(data, held_out=named).digest() != data.digest()
    with pytest.raises(SettingError, match="names question 'nobody'"):
        tiny_corpus(replace(data, held_out={"nobody"}))

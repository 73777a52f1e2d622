"""The autoencoders: what they read and write, their loss and perplexity, what is held out."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np
import pytest
from tests.tiny_training import tiny_corpus

from askalike.models.encoders.settings import EncoderConfig
from askalike.training.corpus import Corpus, TrainingData
from askalike.training.recipe import ReconstructionOptions
from askalike.types import Answer, Question

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.models.encoders.networks.encoder import build  # noqa: E402
from askalike.models.encoders.networks.packing import Packing  # noqa: E402
from askalike.training.decoders import (  # noqa: E402
    DECODERS,
    EncodedTexts,
    Reconstruction,
)
from askalike.training.objectives import TextNetwork  # noqa: E402

SIZE = 8
every_kind = pytest.mark.parametrize("kind", sorted(DECODERS))


def made(corpus: Corpus | None = None, kind: Any = "attention", seed: int = 0, **chosen: Any) -> Reconstruction:
    corpus = corpus or tiny_corpus()
    words = int(corpus.texts.ids.max(initial=0)) + 1
    embedding = torch.randn(words, SIZE, generator=torch.Generator().manual_seed(1))
    encoder = build(EncoderConfig(kind, SIZE, SIZE, pooling="mean", layers=2))
    network = TextNetwork(encoder, embedding, is_embedding_trained=True)
    return Reconstruction(network, corpus, ReconstructionOptions(**{"batch_size": 8, **chosen}), seed=seed)


def log_likelihoods(objective: Reconstruction, row: int) -> list[float]:
    """Return log P of each word of a text and of its end, each from a decoder that sees the words before it alone."""
    network, values = objective.network, []
    ids = objective.corpus.texts[row].tolist()
    with torch.no_grad():
        text, packing = network.packed(objective.corpus.texts, np.array([row]))
        read = EncodedTexts(network.encoder.network(network.embedding[text], packing), packing)
        for step, number in enumerate([*ids, -1]):
            words = torch.cat([torch.zeros(1, SIZE), network.embedding[ids[:step]]])
            states = objective.decoder(words, Packing.of(torch.tensor([step + 1])), read)
            values.append(float(objective.output.log_prob(states[-1:])[0, number + 1]))
    return values


def trained(objective: Reconstruction, steps: int, rows: Sequence[int]) -> list[float]:
    adam = torch.optim.Adam(objective.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        adam.zero_grad()
        loss = objective(np.array(rows))
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses


@every_kind
def test_the_loss_is_the_mean_over_words_and_ends_taken_one_by_one(kind: str) -> None:
    objective = made(kind=kind)
    for batch in objective.batches(0, 0)[:2]:
        naive = [value for row in batch.tolist() for value in log_likelihoods(objective, row)]
        assert objective(batch).item() == pytest.approx(-np.mean(naive), rel=1e-5)


@every_kind
def test_perplexity_is_that_of_the_held_out_texts_taken_one_by_one(kind: str) -> None:
    objective = made(kind=kind, held_out=3)
    naive = [value for row in objective.kept_out.tolist() for value in log_likelihoods(objective, row)]
    assert objective.held_out() == {"perplexity": pytest.approx(exp(-np.mean(naive)), rel=1e-5)}


def test_every_title_and_body_with_words_is_in_one_batch_of_an_epoch() -> None:
    questions = [Question("0", "one", "two"), Question("1", "", "body"), Question("2", "three words here")]
    data = TrainingData(questions, answers=[Answer("a", "0", "an answer")])
    objective = made(tiny_corpus(data))
    assert sorted(np.concatenate(objective.batches(0, 0)).tolist()) == [0, 1, 3, 4]
    assert objective.held_out() == {}  # a tenth of three questions is none
    joined = made(tiny_corpus(data, reads="joined"))
    assert sorted(np.concatenate(joined.batches(0, 0)).tolist()) == [0, 2, 4]


def test_batches_are_shuffled_anew_every_epoch_and_hold_texts_of_like_length() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 60, 900)
    questions = [Question(str(row), " ".join(["word"] * length)) for row, length in enumerate(lengths.tolist())]
    objective = made(tiny_corpus(TrainingData(questions)), batch_size=4, held_out=0)
    first, again, other = (objective.batches(epoch, 0) for epoch in (0, 0, 1))
    assert all(np.array_equal(batch, two) for batch, two in zip(first, again, strict=True))
    assert len(first) == 225
    assert {tuple(sorted(batch.tolist())) for batch in first} & {
        tuple(sorted(batch.tolist())) for batch in other
    } == set()
    assert (
        sorted(np.concatenate(first).tolist())
        == sorted(np.concatenate(other).tolist())
        == [2 * row for row in range(900)]
    )
    spread = [np.ptp(lengths[batch // 2]) for batch in first]
    assert np.mean(spread) < 3
    means = [lengths[batch // 2].mean() for batch in first]
    assert abs(np.corrcoef(means, range(225))[0, 1]) < 0.3  # short ones do not come first


def test_held_out_questions_are_never_in_a_batch() -> None:
    objective = made(held_out=3)
    assert len(objective.kept_out) == 6
    assert len({row // 2 for row in objective.kept_out.tolist()}) == 3
    for batch in (batch for epoch in range(3) for batch in objective.batches(epoch, 5)):
        assert not {row // 2 for row in objective.kept_out.tolist()} & {row // 2 for row in batch.tolist()}


def test_dropout_is_off_while_texts_are_measured() -> None:
    objective = made(held_out=3)
    objective.network.dropout = 0.5
    assert objective.held_out() == objective.held_out()
    assert objective.training
    batch = objective.batches(0, 0)[0]
    assert objective(batch).item() != objective(batch).item()


@every_kind
def test_texts_are_learned_by_heart(kind: str) -> None:
    questions = [
        Question("0", "how do i reset the router"),
        Question("1", "reset"),
        Question("2", "the router how the router why the router drops"),
        Question("3", "i do drops"),
    ]
    objective = made(tiny_corpus(TrainingData(questions)), kind=kind)
    losses = trained(objective, 110, [4, 0, 6, 2])
    assert losses[-1] < 0.15 * losses[0]

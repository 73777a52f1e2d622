"""SCQA and DSQA: the sparse network beside the dense one, the loss by hand, trainings that learn, repeat, resume."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from askalike.errors import DamagedModelError, ModelNotFoundError, SettingError
from askalike.evaluation import CandidateTask
from askalike.papers.das2016.scqa import HELD_OUT_LOSS, RECIPE, SIDES, ScqaSettings, TrigramReader, trigrams
from askalike.settings import read_settings
from askalike.training.corpus import TrainingData
from askalike.training.loop import read_log
from askalike.training.recipe import SgdSettings
from askalike.types import Answer, Question

torch = pytest.importorskip("torch", reason="the siamese network is trained with torch, which is not installed")

from torch.nn import functional  # noqa: E402

from askalike.papers.das2016.scqa_network import (  # noqa: E402
    PairCorpus,
    QuestionAnswer,
    SiameseModel,
    SiameseNetwork,
    fit_siamese,
    pair_loss,
    read_pairs,
)
from askalike.training.encoder import TrainingRun  # noqa: E402

TABLE: dict[str, tuple[int, ScqaSettings]] = {
    "SCQA": (90, ScqaSettings(4, (3, 2, 4), (3, 2, 1), 6)),
    "SCQA that pools in the first block alone": (190, ScqaSettings(4, (3, 2, 3), (14, 1, 1), 5)),
    "SCQA in wide windows": (400, ScqaSettings(10, (2, 3), (22, 2), 4)),
    "SCQA of one block": (40, ScqaSettings(10, (3,), (4,), 5)),
    "DSQA": (90, ScqaSettings(4, (3, 2, 4), (3, 2, 1), 6, is_shared=False)),
}
everywhere = pytest.mark.parametrize("name", TABLE)


def texts_of(size: int, lengths: list[int], seed: int = 0) -> csr_array:
    """Return counts of texts with so many distinct trigrams each, of which the last ones of the vocabulary are some."""
    random = np.random.default_rng(seed)
    rows = [np.sort(random.choice(size, length, replace=False)) for length in lengths]
    places = np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int32)
    counts = random.integers(1, 4, len(places)).astype(np.float32)
    return csr_array((counts, places, np.cumsum([0, *lengths])), shape=(len(lengths), size))


def network_of(name: str, seed: int = 3, kind: Any = torch.float32) -> SiameseNetwork:
    size, settings = TABLE[name]
    network = SiameseNetwork(settings, size, seed).to(kind)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for key, value in network.named_parameters():
            if "bias" in key:  # so that no block is silent, and no gradient zero for that
                value.copy_(torch.rand(value.shape, generator=generator) + 0.3)
    return network


def dense(texts: csr_array, network: SiameseNetwork, side: str) -> Any:
    """Return the vectors of texts as the paper writes the network: every place of every text, nothing left out."""
    own = network.sides["shared" if network.settings.is_shared else side]
    whole = torch.from_numpy(texts.toarray()).to(own["dense"])[:, None]
    for number, pooling in enumerate(network.settings.poolings, start=1):
        convolved = functional.conv1d(whole, own[f"kernel_{number}"], own[f"bias_{number}"])
        whole = functional.max_pool1d(convolved, pooling).relu()
    return functional.linear(whole.transpose(1, 2).flatten(1), own["dense"], own["dense_bias"])


@everywhere
def test_the_sparse_network_is_the_dense_one_with_its_gradients(name: str) -> None:
    size, settings = TABLE[name]
    texts = texts_of(size, [5, 1, 30, 2, 9])
    wanted = torch.randn(5, settings.output_size, generator=torch.Generator().manual_seed(1)).double()
    slopes = []
    for is_sparse in (True, False):
        network = network_of(name, kind=torch.float64)
        for side in SIDES:
            vectors = network.encode(texts, side) if is_sparse else dense(texts, network, side)
            expected = dense(texts, network, side)
            torch.testing.assert_close(vectors, expected, rtol=1e-12, atol=1e-12)
            (vectors * wanted).sum().backward()
        slopes.append({key: value.grad for key, value in network.named_parameters()})
    for key, slope in slopes[0].items():
        assert slope.any() or "dense" not in key
        assert (slope - slopes[1][key]).abs().max() <= 1e-11 * slopes[1][key].abs().max(), key
    assert {key: array.shape for key, array in network.arrays().items()} == settings.shapes(size)
    rows = np.array([3, 0, 3])
    torch.testing.assert_close(network.encode(texts[rows]), network.encode(texts)[rows])


def test_the_readings_leave_the_places_that_are_told() -> None:
    places = {
        poolings: [block.windows for block in ScqaSettings(poolings=poolings).blocks(48_536)]
        for poolings in ((5, 5, 4), (100, 1, 1), (485, 1, 1))
    }
    assert places == {(5, 5, 4): [9705, 1939, 482], (100, 1, 1): [485, 476, 467], (485, 1, 1): [100, 91, 82]}
    with pytest.raises(SettingError, match="leave nothing"):
        ScqaSettings(poolings=(100, 100, 100)).blocks(1_090_908)
    assert ScqaSettings(poolings=(100, 100, 100)).blocks(1_090_909)[-1].windows == 1


def test_a_trigram_that_only_the_end_sees_changes_nothing_and_texts_without_any_are_zero() -> None:
    network = SiameseNetwork(ScqaSettings(4, (2,), (10,), 3), 48)  # four windows of the places 0 to 42
    single, two = (csr_array((np.ones(len(p), np.float32), p, [0, len(p)]), shape=(1, 48)) for p in ([3], [3, 47]))
    torch.testing.assert_close(network.encode(single), network.encode(two), rtol=0, atol=0)
    network = network_of("SCQA")
    assert network.encode(texts_of(90, [0, 3, 0])).any(dim=1).tolist() == [False, True, False]
    network.encode(texts_of(90, [0, 0])).sum().backward()
    assert not any(parameter.grad.any() for parameter in network.parameters() if parameter.grad is not None)
    assert network.encode_all(texts_of(90, [])).shape == (0, 6)
    begun = SiameseNetwork(ScqaSettings(), 2000, 1).arrays()
    assert not any(begun[f"bias_{block}"].any() for block in (1, 2, 3))
    assert begun["dense"].std() == pytest.approx((2 / begun["dense"].shape[1]) ** 0.5, rel=0.1)
    two = network_of("DSQA").arrays()
    assert not np.array_equal(two["question.dense"], two["answer.dense"]), "sides begin apart"


# -- training ------------------------------------------------------------------------------------------------------

TOPICS = [
    (["router", "wifi", "antenna"], ["signal", "channel", "firmware"]),
    (["printer", "paper", "toner"], ["cartridge", "tray", "roller"]),
    (["battery", "charger", "laptop"], ["voltage", "adapter", "cell"]),
    (["kernel", "boot", "grub"], ["partition", "initrd", "chroot"]),
]
SMALL = ScqaSettings(
    kernel_width=4,
    channels=(8, 8),
    poolings=(3, 2),
    output_size=16,
    batch_size=16,
    held_out=4,
    reduction="sum",
    loop=SgdSettings(epochs=30, patience=0, learning_rate=0.03, momentum=0.05, clip=1e9),
)


def toy_data() -> TrainingData:
    """Return 48 answered questions of four topics; questions and answers of a topic share no word."""
    random = np.random.default_rng(0)
    questions, answers = [], []
    for number in range(48):
        words_asked, answered = (list(random.permutation(words)[:2]) for words in TOPICS[number % 4])
        questions.append(Question(f"q{number}", " ".join(words_asked)))
        answers.append(Answer(f"a{number}", f"q{number}", " ".join(answered)))
    candidates = [[4 + (row + shift) % 4 for shift in (1, 2, 3, 0)] for row in range(4)]
    dev = CandidateTask(questions[:8], [0, 1, 2, 3], candidates, [[0, 0, 0, 1]] * 4)
    return TrainingData(questions, answers=answers, dev={"toy": dev})


@pytest.fixture(scope="module")
def corpus() -> PairCorpus:
    return read_pairs(toy_data(), 4, 0)


def is_same(first: SiameseModel, second: SiameseModel) -> bool:
    parameters, others = first.network.arrays(), second.network.arrays()
    return all(np.array_equal(parameters[name], others[name]) for name in parameters)


def test_the_loss_is_that_of_the_paper() -> None:
    cosines, others = torch.tensor([0.5, -0.5]), torch.tensor([0.9, 0.2])
    assert pair_loss(cosines, others, 0.25, "sum").item() == pytest.approx(0.5 + 1.5 + 0.65)
    assert pair_loss(cosines, others, 0.0, "sum").item() == pytest.approx(0.5 + 1.5 + 0.9 + 0.2)
    assert pair_loss(cosines, others, 0.25, "mean").item() == pytest.approx((0.5 + 1.5 + 0.65) / 4)


def test_the_loss_of_a_batch_is_the_sum_over_its_samples_or_their_mean(corpus: PairCorpus) -> None:
    batch, slopes = np.array([[0, 3], [3, 7], [7, 0]]), {}
    for reduction in ("sum", "mean"):
        network = SiameseNetwork(replace(SMALL, reduction=reduction), len(corpus.vocabulary.words))
        objective = QuestionAnswer(network, corpus)
        loss = objective(batch)
        loss.backward()
        slopes[reduction] = network.sides["shared"].dense_bias.grad
        cosines = network.encode_all(corpus.questions) @ network.encode_all(corpus.answers).T
        expected = sum(1 - cosines[q, q] + max(0, cosines[q, other]) for q, other in batch)
        assert loss.item() == pytest.approx(expected / (6 if reduction == "mean" else 1), rel=1e-5)
        assert 0 < objective.held_out()[HELD_OUT_LOSS] < 2, "a sample's mean under either"
    torch.testing.assert_close(slopes["mean"] * 6, slopes["sum"])


def test_pairs_are_what_has_words_on_both_sides_and_trigrams_those_of_what_is_learned_from(corpus: PairCorpus) -> None:
    assert len(corpus.held_out) == 4
    assert sorted([*corpus.learned, *corpus.held_out]) == list(range(48))
    assert "rou" in corpus.vocabulary
    totals = np.asarray(corpus.questions[corpus.learned].sum(axis=0) + corpus.answers[corpus.learned].sum(axis=0))
    assert totals.min() >= 1
    assert (np.diff(totals) <= 0).all(), "the most frequent first"
    data = toy_data()
    fewer = read_pairs(replace(data, answers=[replace_body(data.answers[0], "?!"), *data.answers[1:]]), 4, 0)
    assert sorted([*fewer.learned, *fewer.held_out]) == list(range(1, 48))
    with pytest.raises(SettingError, match="0 questions with an answer"):
        read_pairs(TrainingData([], answers=[]), 4, 0)


def replace_body(answer: Answer, body: str) -> Answer:
    return Answer(answer.id, answer.question_id, body)


def test_batches_hold_every_pair_once_each_with_another(corpus: PairCorpus) -> None:
    objective = QuestionAnswer(SiameseNetwork(SMALL, len(corpus.vocabulary.words)), corpus)
    batches = objective.batches(0, 1)
    assert [len(batch) for batch in batches] == [8, 8, 8, 8, 8, 4]
    together = np.concatenate(batches)
    assert all(np.array_equal(np.sort(column), corpus.learned) for column in together.T)
    assert (together[:, 0] != together[:, 1]).all()
    assert all(np.array_equal(a, b) for a, b in zip(batches, objective.batches(0, 1), strict=True))
    others = {
        int(b) for epoch in range(200) for a, b in np.concatenate(objective.batches(epoch, 1)) if a == corpus.learned[0]
    }
    assert others == {*corpus.learned[1:].tolist()}


@pytest.mark.parametrize("shared", [True, False], ids=["SCQA", "DSQA"])
def test_training_makes_the_loss_smaller_and_finds_what_asks_the_same(tmp_path: Path, shared: bool) -> None:
    model = fit_siamese(replace(SMALL, is_shared=shared), toy_data(), TrainingRun(tmp_path, seed=1))
    log = read_log(tmp_path / "log.csv")
    for measure in ("loss", HELD_OUT_LOSS):
        course = [entry.value for entry in log if entry.measure == measure]
        assert course[-1] < 0.5 * course[0], measure
    texts = [Question("1", "wifi"), Question("2", "printer toner"), Question("3", "zzzz"), Question("4", "")]
    scores = model.score(Question("q", "router antenna"), texts)
    assert scores[0] > scores[1] + 0.3
    vectors = model.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 0, 0], atol=1e-6)
    assert scores[2:].tolist() == [0, 0], "nothing of them is known"
    np.testing.assert_allclose(model.encode(texts[::-1]), vectors[::-1], atol=1e-6)


def test_the_same_seed_gives_the_same_model_and_a_saved_one_is_loaded_bit_for_bit(tmp_path: Path) -> None:
    short = replace(SMALL, loop=replace(SMALL.loop, epochs=2))
    first, again, other = (
        fit_siamese(short, toy_data(), TrainingRun(tmp_path / name, seed=seed))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert is_same(first, again)
    assert not is_same(first, other)
    first.save(tmp_path / "x")
    loaded = SiameseModel.load(tmp_path / "x")
    loaded.save(tmp_path / "y")
    files = [{entry.name: entry.read_bytes() for entry in (tmp_path / name).iterdir()} for name in "xy"]
    assert files[0] == files[1]
    assert is_same(loaded, first)
    assert (loaded.network.settings, loaded.training_data) == (short, toy_data().digest())
    with pytest.raises(ModelNotFoundError):
        SiameseModel.load(tmp_path / "none")
    weights = tmp_path / "x" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])
    with pytest.raises(DamagedModelError):
        SiameseModel.load(tmp_path / "x")


# -- settings ------------------------------------------------------------------------------------------------------


def test_the_recipe_that_ships_has_the_defaults_and_settings_survive_json() -> None:
    assert ScqaSettings.read(RECIPE) == ScqaSettings()
    stored = json.loads(ScqaSettings().to_json())
    assert stored["loop"]["momentum"] == 0.05
    assert read_settings(ScqaSettings, stored, "settings") == ScqaSettings()


def test_a_recipe_that_cannot_be_used_names_the_place(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for changed, message in (
        ("channels = [4]", "as many of both"),
        ("channels = [8, 0, 8]", "channels is [8, 0, 8]"),
        ("kernel_width = '4'", "kernel_width is '4'"),
        ("width = 4", "unexpected keyword argument 'width'"),
        ("batch_size = 5", "expected an even number"),
        ("margin = 1.0", "margin is 1.0"),
        ("reduction = 'max'", "reduction is 'max'"),
        ("loop = 5", "loop is 5, but expected `object`"),
        ("[loop]\nepochs = 0", "loop: epochs is 0"),
        ("[loop", "is no TOML"),
    ):
        path.write_text(f"{changed}\n", encoding="utf-8")
        with pytest.raises(SettingError, match=rf"(?s)mine\.toml.*{re.escape(message)}"):
            ScqaSettings.read(path)
    with pytest.raises(SettingError, match="cannot be read"):
        ScqaSettings.read(tmp_path / "none.toml")


# -- trigrams ------------------------------------------------------------------------------------------------------

READER = TrigramReader()


def test_a_text_is_the_trigrams_of_its_words_between_delimiters_without_case_stop_words_and_endings() -> None:
    assert trigrams("table") == ("#ta", "tab", "abl", "ble", "le#")
    assert [trigrams(word) for word in ("", "c", "22")] == [(), ("#c#",), ("#22", "22#")]
    for text, words in (
        ("Do I mount THE drives?! (read-only)", "mount drive read onli"),
        ("***", ""),
        ("/boot/resolv.conf 22.04 c++ x@host.org #tag", "boot resolv conf 22 04 c x host org tag"),
        ("can't user’s", "cant user"),
        ("中国 हिन्दी Straße ＡＢＣ ½", "中 国 हिन्दी strass abc 1 2"),
    ):
        assert READER.words(text) == words.split()
    grams = READER.question(Question("1", "", "<p>kernel kernel</p>", "html"))
    assert grams == READER.answer(Answer("1", "1", "kernel kernel")) == 2 * list(trigrams("kernel"))


@given(st.text())
def test_no_word_holds_a_delimiter_white_space_or_punctuation(text: str) -> None:
    for word in READER.words(text):
        assert word.split() == [word]
        assert not set(word) & set("#/.-_@:+'\"")
        assert len(trigrams(word)) == len(word)

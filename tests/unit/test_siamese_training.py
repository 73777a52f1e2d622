"""Training a siamese network: the loss by hand, what pairs are, and that training learns, repeats and resumes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from askalike.errors import DamagedModelError, SettingError
from askalike.evaluation import CandidateTask
from askalike.models.siamese.model import SiameseModel
from askalike.text.analyzer import TextSettings
from askalike.training.corpus import TrainingData
from askalike.training.loop import read_log
from askalike.training.recipe import HELD_OUT_LOSS, PairOptions, SgdSettings, SiameseRecipe, load_recipe, network_recipe
from askalike.training.siamese import PairCorpus, best_answers, paired, read_pairs
from askalike.types import Answer, Question

torch = pytest.importorskip("torch", reason="the siamese network is trained with torch, which is not installed")

from askalike.models.siamese.network import build  # noqa: E402
from askalike.training.encoder import TrainingRun  # noqa: E402
from askalike.training.siamese import STAGE, Epoch, QuestionAnswer, fit_siamese, pair_loss  # noqa: E402  # noqa: E402

TOPICS = [
    (["router", "wifi", "antenna"], ["signal", "channel", "firmware"]),
    (["printer", "paper", "toner"], ["cartridge", "tray", "roller"]),
    (["battery", "charger", "laptop"], ["voltage", "adapter", "cell"]),
    (["kernel", "boot", "grub"], ["partition", "initrd", "chroot"]),
]
RECIPE = SiameseRecipe(
    kernel_width=4,
    channels=(8, 8),
    poolings=(3, 2),
    output_size=16,
    pairs=PairOptions(batch_size=16, margin=0.0, held_out=4, reduction="sum"),
    loop=SgdSettings(epochs=30, patience=0, learning_rate=0.03, momentum=0.05, clip=1e9),
)


def toy_data() -> TrainingData:
    """Return 48 answered questions of four topics; questions and answers of a topic share no word."""
    random = np.random.default_rng(0)
    questions, answers = [], []
    for number in range(48):
        asked, answered = (list(random.permutation(words)[:2]) for words in TOPICS[number % 4])
        questions.append(Question(f"q{number}", " ".join(asked)))
        answers.append(Answer(f"a{number}", f"q{number}", " ".join(answered), score=2))
        answers.append(Answer(f"b{number}", f"q{number}", "nonsense", score=1))
    candidates = [[4 + (row + shift) % 4 for shift in (1, 2, 3, 0)] for row in range(4)]
    dev = CandidateTask(questions[:8], [0, 1, 2, 3], candidates, [[0, 0, 0, 1]] * 4)
    return TrainingData(questions, answers=answers, dev={"toy": dev})


class Stopper:
    """Stops the training at a step, counted over all epochs."""

    def __init__(self, stop_at: int = -1) -> None:
        self.left = stop_at
        self._is_training = False

    def start(self, phase: str, total: int, unit: str) -> None:
        self._is_training = unit == "batches"

    def advance(self, count: int) -> None:
        if self._is_training and count == 1:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    def notice(self, text: str) -> None: ...


def corpus() -> PairCorpus:
    return read_pairs(toy_data(), RECIPE, 0, lambda _: None)


def same(first: SiameseModel, second: SiameseModel) -> bool:
    one, other = first.parameters(), second.parameters()
    return all(np.array_equal(one[name], other[name]) for name in one)


def test_the_loss_is_that_of_the_paper() -> None:
    cosines, others = torch.tensor([0.5, -0.5]), torch.tensor([0.9, 0.2, -1.0])
    assert pair_loss(cosines, others, 0.25).item() == pytest.approx(0.5 + 1.5 + 0.65)
    assert pair_loss(cosines, others, 0.0).item() == pytest.approx(0.5 + 1.5 + 0.9 + 0.2)


def test_the_mean_of_the_loss_is_over_positive_and_negative_samples_together() -> None:
    cosines, others = torch.tensor([0.5, -0.5]), torch.tensor([0.9, 0.2])
    assert pair_loss(cosines, others, 0.25, "sum").item() == pytest.approx(0.5 + 1.5 + 0.65)
    assert pair_loss(cosines, others, 0.25, "mean").item() == pytest.approx((0.5 + 1.5 + 0.65) / 4)


def test_a_step_by_the_mean_is_that_of_the_sum_divided_by_the_samples() -> None:
    pairs, batch = corpus(), np.array([[0, 3], [3, 7], [7, 0]])
    slopes = {}
    for reduction in ("sum", "mean"):
        options = replace(RECIPE.pairs, reduction=reduction)
        objective = QuestionAnswer(build(RECIPE.network(len(pairs.vocabulary.words))), pairs, options)
        objective(batch).backward()
        slopes[reduction] = objective.network.sides["shared"].dense_bias.grad
        held_out = objective.held_out()[HELD_OUT_LOSS]
        assert 0 < held_out < 2, "a sample's mean under either, so that they can be compared"
    torch.testing.assert_close(slopes["mean"] * 6, slopes["sum"])


def test_shuffled_trigrams_are_the_same_in_an_order_of_the_seed() -> None:
    plain = corpus().vocabulary.words
    shuffled = [
        read_pairs(toy_data(), replace(RECIPE, order="shuffled"), seed, lambda _: None).vocabulary.words
        for seed in (0, 0, 1)
    ]
    assert shuffled[0] == shuffled[1] != shuffled[2]
    assert sorted(shuffled[0]) == sorted(plain)
    assert shuffled[0] != plain


def test_the_loss_of_a_batch_is_the_sum_over_its_samples() -> None:
    pairs = corpus()
    objective = QuestionAnswer(build(RECIPE.network(len(pairs.vocabulary.words))), pairs, RECIPE.pairs)
    batch = np.array([[0, 3], [3, 7], [7, 0]])
    network = objective.network
    asked, answered = (
        torch.nn.functional.normalize(network.encode(texts, np.arange(48)))
        for texts in (pairs.questions, pairs.answers)
    )
    cosines = asked @ answered.T
    expected = sum(
        1 - cosines[q, a] + max(torch.zeros(()), cosines[q, b]) for (q, b), a in zip(batch, batch[:, 0], strict=True)
    )
    assert objective(batch).item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_best_answer_is_the_accepted_one_then_that_with_most_votes_then_the_first() -> None:
    first, voted = Answer("a", "1", "x"), Answer("b", "1", "y", score=5)
    accepted = Answer("c", "1", "z", score=-3, is_accepted=True)
    assert best_answers([first, voted, accepted])["1"] is accepted
    assert best_answers([first, voted])["1"] is voted
    assert best_answers([first, structs.replace(first, id="d")])["1"] is first
    assert best_answers([Answer("e", "1", "x", score=-1), Answer("f", "1", "x", score=0)])["1"].id == "f"


def test_pairs_are_what_has_words_on_both_sides() -> None:
    found = corpus()
    assert len(found.questions) == len(found.answers) == 48
    assert len(found.held_out) == 4
    assert sorted([*found.learned, *found.held_out]) == list(range(48))
    assert "non" not in found.vocabulary
    assert "rou" in found.vocabulary
    data = toy_data()
    answers = [*data.answers]
    answers[0] = structs.replace(answers[0], body="?!", score=9)
    fewer = read_pairs(replace(data, answers=answers), RECIPE, 0, lambda _: None)
    assert 0 not in {*fewer.learned.tolist(), *fewer.held_out.tolist()}
    assert len(fewer.learned) + len(fewer.held_out) == 47


def test_trigrams_are_those_of_what_is_learned_from_most_frequent_first() -> None:
    found = corpus()
    totals = np.zeros(len(found.vocabulary.words))
    for texts in (found.questions, found.answers):
        entries = texts.entries(found.learned)
        np.add.at(totals, texts.places[entries], texts.counts[entries])
    assert totals.min() >= 1
    assert (np.diff(totals) <= 0).all()
    few = read_pairs(toy_data(), replace(RECIPE, max_size=20), 0, lambda _: None)
    assert few.vocabulary.words == found.vocabulary.words[:20]


def test_batches_hold_every_pair_once_each_with_another() -> None:
    pairs = corpus()
    objective = QuestionAnswer(build(RECIPE.network(len(pairs.vocabulary.words))), pairs, RECIPE.pairs)
    batches = objective.batches(0, 1)
    assert [len(batch) for batch in batches] == [8, 8, 8, 8, 8, 4]
    together = np.concatenate(batches)
    for column in together.T:
        assert np.array_equal(np.sort(column), pairs.learned)
    assert (together[:, 0] != together[:, 1]).all()
    assert all(np.array_equal(a, b) for a, b in zip(batches, objective.batches(0, 1), strict=True))
    assert not np.array_equal(together, np.concatenate(objective.batches(1, 1)))
    others = {
        int(b) for epoch in range(200) for a, b in np.concatenate(objective.batches(epoch, 1)) if a == pairs.learned[0]
    }
    assert others == {*pairs.learned[1:].tolist()}


@pytest.mark.parametrize("is_shared", [True, False], ids=["SCQA", "DSQA"])
def test_training_makes_the_loss_smaller_and_finds_what_asks_the_same(tmp_path: Path, is_shared: bool) -> None:
    model = fit_siamese(replace(RECIPE, is_shared=is_shared), toy_data(), TrainingRun(tmp_path, seed=1))
    log = read_log(tmp_path / "log.csv")
    for measure in ("loss", HELD_OUT_LOSS):
        course = [entry.value for entry in log if entry.measure == measure]
        assert course[-1] < 0.5 * course[0], measure
    assert [entry.value for entry in log if entry.measure == "mrr"][-1] == model.origin.dev_scores["mrr"]
    near, far = model.encode_text(["router antenna", "wifi"]), model.encode_text(["printer toner"])
    assert near[0] @ near[1] > near[0] @ far[0] + 0.3
    answers = model.encode_answers([Answer("1", "1", "firmware channel"), Answer("2", "2", "tray roller")])
    assert near[0] @ answers[0] > near[0] @ answers[1] + 0.3
    assert model.origin.training_data == toy_data().digest()


def test_the_same_seed_gives_the_same_model_and_another_another(tmp_path: Path) -> None:
    short = replace(RECIPE, loop=replace(RECIPE.loop, epochs=2))
    first, again, other = (
        fit_siamese(short, toy_data(), TrainingRun(tmp_path / name, seed=seed))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert same(first, again)
    assert not same(first, other)
    for model, name in ((first, "x"), (again, "y")):
        model.save(tmp_path / name)
    files = [{entry.name: entry.read_bytes() for entry in (tmp_path / name).iterdir()} for name in "xy"]
    assert files[0] == files[1]


def test_each_epoch_is_told_with_the_model_as_it_is_then(tmp_path: Path) -> None:
    recipe = replace(RECIPE, loop=replace(RECIPE.loop, epochs=3, patience=0))
    told: list[tuple[Epoch, SiameseModel]] = []
    whole = fit_siamese(
        recipe, toy_data(), TrainingRun(tmp_path / "whole"), lambda epoch: told.append((epoch, epoch.model()))
    )
    assert [epoch.number for epoch, _ in told] == [0, 1, 2, 3]
    assert same(told[3][1], whole)
    assert not same(told[2][1], whole)
    assert "loss" not in told[0][0].measures
    assert {"loss", HELD_OUT_LOSS, "mrr", "map"} <= told[1][0].measures.keys()
    assert told[3][0].measures["mrr"] == whole.origin.dev_scores["mrr"]
    with pytest.raises(KeyboardInterrupt):
        fit_siamese(recipe, toy_data(), TrainingRun(tmp_path / "part", checkpoint_s=0, progress=Stopper(9)))
    late: list[int] = []
    fit_siamese(recipe, toy_data(), TrainingRun(tmp_path / "part"), lambda epoch: late.append(epoch.number))
    assert late == [2, 3]


def test_pairs_alone_are_training_data(tmp_path: Path) -> None:
    data = toy_data()
    best = best_answers(data.answers)
    pairs = [(question, structs.replace(best[question.id], question_id="")) for question in data.questions]
    recipe = replace(RECIPE, loop=replace(RECIPE.loop, epochs=1))
    found = fit_siamese(recipe, paired(pairs, data.dev), TrainingRun(tmp_path / "a"))
    assert same(found, fit_siamese(recipe, data, TrainingRun(tmp_path / "b")))
    assert found.origin.dev_scores.keys() >= {"mrr", "map"}


@pytest.mark.parametrize("stop_at", [1, 5, 6, 7, 11])
@pytest.mark.parametrize("is_shared", [True, False], ids=["SCQA", "DSQA"])
def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(
    tmp_path: Path, stop_at: int, is_shared: bool
) -> None:
    loop = SgdSettings(epochs=3, patience=2, learning_rate=0.05, momentum=0.5, clip=1e9, stop_on=HELD_OUT_LOSS)
    recipe = replace(RECIPE, is_shared=is_shared, loop=loop)
    whole = fit_siamese(recipe, toy_data(), TrainingRun(tmp_path / "whole", checkpoint_s=0))
    with pytest.raises(KeyboardInterrupt):
        fit_siamese(recipe, toy_data(), TrainingRun(tmp_path / "part", checkpoint_s=0, progress=Stopper(stop_at)))
    resumed = fit_siamese(recipe, toy_data(), TrainingRun(tmp_path / "part", checkpoint_s=0))
    assert same(whole, resumed)
    logs = [read_log(tmp_path / name / "log.csv") for name in ("whole", "part")]
    first, second = ([row for row in log if row.measure != "seconds"] for log in logs)
    assert first == second
    only_read = fit_siamese(recipe, toy_data(), TrainingRun(tmp_path / "part", progress=Stopper(1)))
    assert same(whole, only_read)


def test_a_damaged_checkpoint_is_refused_and_one_of_another_training_set_aside(tmp_path: Path) -> None:
    short = replace(RECIPE, loop=replace(RECIPE.loop, epochs=1))
    fit_siamese(short, toy_data(), TrainingRun(tmp_path))
    path = tmp_path / f"{STAGE}.safetensors"
    fit_siamese(replace(short, pairs=replace(short.pairs, margin=0.4)), toy_data(), TrainingRun(tmp_path))
    assert (tmp_path / f"{STAGE}.other.safetensors").exists()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DamagedModelError, match="checkpoint"):
        fit_siamese(replace(short, pairs=replace(short.pairs, margin=0.4)), toy_data(), TrainingRun(tmp_path))


def test_data_that_nothing_can_be_learned_from_is_refused(tmp_path: Path) -> None:
    data = toy_data()
    model = fit_siamese(replace(RECIPE, loop=replace(RECIPE.loop, epochs=1)), data, TrainingRun(tmp_path / "a"))
    with pytest.raises(SettingError, match="0 questions with an answer"):
        fit_siamese(RECIPE, replace(data, answers=()), TrainingRun(tmp_path / "b"))
    with pytest.raises(SettingError, match="names question 'x'"):
        fit_siamese(RECIPE, replace(data, answers=[Answer("1", "x", "y")]), TrainingRun(tmp_path / "b"))
    with pytest.raises(SettingError, match="leave nothing of"):
        fit_siamese(replace(RECIPE, poolings=(100, 2)), data, TrainingRun(tmp_path / "b"))
    with pytest.raises(SettingError, match="begins anew"):
        fit_siamese(RECIPE, data, TrainingRun(tmp_path / "b", start=model))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_count": 0},
        {"max_size": 0},
        {"reads": "body"},
        {"poolings": (5, 5)},
        {"channels": (8, 8, 0)},
        {"is_shared": None},
        {"order": "random"},
    ],
)
def test_a_recipe_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        SiameseRecipe(**wrong)


def test_the_recipes_that_ship_are_the_defaults() -> None:
    assert load_recipe("scqa") == SiameseRecipe()
    assert load_recipe("dsqa") == SiameseRecipe(is_shared=False)
    assert [load_recipe(name).ranker for name in ("scqa", "dsqa")] == ["scqa", "dsqa"]
    with pytest.raises(SettingError, match="trains no encoder, but scqa"):
        network_recipe("scqa")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("[loop]\nepochs = 0", "loop: epochs is 0"),
        ("[network]\nchannels = [4]", "as many of both"),
        ("[network]\nkernel_width = '4'", "kernel_width is '4'"),
        ("[network]\nwidth = 4", "network: width is unknown"),
        ("[network]\nis_shared = true", "network: is_shared is unknown"),
        ("[pairs]\nbatch_size = 5", "pairs: batch_size is 5"),
        ("[stage]\nepochs = 5", "top level: stage is unknown"),
        ("initial = 'zero'", "initial is 'zero', but expected one of: he, even"),
        ("loop = 5", "expected a table"),
    ],
)
def test_a_file_that_cannot_be_used_names_the_place(tmp_path: Path, changed: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"ranker = 'dsqa'\n{changed}\n", encoding="utf-8")
    with pytest.raises(SettingError, match=re.escape(message)):
        load_recipe(path)


@pytest.mark.parametrize(
    "wrong", [{"batch_size": 5}, {"batch_size": 2}, {"margin": 1.0}, {"held_out": -1}, {"reduction": "max"}]
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} is"):
        PairOptions(**wrong)


def test_a_recipe_in_one_language_is_named_as_before_there_were_several() -> None:
    assert "languages" not in SiameseRecipe().to_json()
    assert "languages" in SiameseRecipe(text=TextSettings.of("en,de")).to_json()

"""From questions to a saved model: stopped and gone on with, stages left out, another model as the beginning."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_training import recipe, stage, tiny_data

from askalike import Question
from askalike.errors import SettingError
from askalike.models.encoders.model import Model
from askalike.models.vocabulary import QuestionReader
from askalike.training.corpus import TrainingData
from askalike.training.loop import Entry, read_log
from askalike.training.recipe import LoopSettings, Recipe

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.training.encoder import TrainingRun, train_encoder  # noqa: E402

LOOP = LoopSettings(epochs=2, patience=1, learning_rate=0.02, schedule="linear")
THREE = recipe(
    stage("decoding", replace(LOOP, stop_on="perplexity from title"), dropout=0.2),
    stage("max-margin", LOOP, needs="pairs"),
    stage("contrastive", LOOP),
    is_trained=True,
)


class Heard:
    """Keeps what it is told, and stops the training after so many batches."""

    def __init__(self, stop_at: int = -1) -> None:
        self.phases: list[str] = []
        self.notices: list[str] = []
        self.batches = 0
        self._stop_at = stop_at

    def start(self, phase: str, total: int, unit: str) -> None:
        self.phases.append(phase)

    def advance(self, count: int) -> None:
        self.batches += count == 1
        if self.batches == self._stop_at:
            raise KeyboardInterrupt

    def notice(self, text: str) -> None:
        self.notices.append(text)


def contents(model: Model, folder: Path) -> dict[str, bytes]:
    model.save(folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def without_seconds(folder: Path) -> list[Entry]:
    return [row for row in read_log(folder / "log.csv") if row.measure != "seconds"]


def test_a_training_stopped_again_and_again_gives_the_same_bytes(tmp_path: Path) -> None:
    heard = Heard()
    whole = contents(
        train_encoder(THREE, tiny_data(), TrainingRun(tmp_path / "whole", progress=heard)), tmp_path / "model"
    )
    model, stops = None, 0
    while model is None and stops < heard.batches:
        try:
            run = TrainingRun(tmp_path / "stopped", progress=Heard(6 + stops % 2), checkpoint_s=0.0)
            model = train_encoder(THREE, tiny_data(), run)
        except KeyboardInterrupt:
            stops += 1
    assert model is not None
    assert stops > 5
    assert contents(model, tmp_path / "again") == whole
    assert without_seconds(tmp_path / "stopped") == without_seconds(tmp_path / "whole")
    assert len({row.stage for row in without_seconds(tmp_path / "whole")}) == 3


def changed(base: Recipe, number: int, **chosen: Any) -> Recipe:
    stages = list(base.stages)
    stages[number] = replace(stages[number], **chosen)
    return replace(base, stages=tuple(stages))


def test_a_change_of_a_later_stage_spares_the_earlier_ones(tmp_path: Path) -> None:
    train_encoder(THREE, tiny_data(), TrainingRun(tmp_path / "work"))
    heard = Heard()
    other = changed(THREE, 2, dropout=0.5)
    files = contents(train_encoder(other, tiny_data(), TrainingRun(tmp_path / "work", progress=heard)), tmp_path / "a")
    assert heard.phases[0] == "reading"
    assert all(phase.startswith("3-contrastive") for phase in heard.phases[1:])
    assert files == contents(train_encoder(other, tiny_data(), TrainingRun(tmp_path / "fresh")), tmp_path / "b")
    assert without_seconds(tmp_path / "work") == without_seconds(tmp_path / "fresh")


@pytest.mark.parametrize("what", ["recipe", "data", "dev", "seed", "start"])
def test_another_training_in_the_same_folder_begins_anew_and_keeps_the_old_checkpoint(
    tmp_path: Path, what: str
) -> None:
    base = recipe(stage("contrastive"))
    data, run = tiny_data(), TrainingRun(tmp_path / "work")
    train_encoder(base, data, run)
    before = (tmp_path / "work" / "1-contrastive.safetensors").read_bytes()
    chosen = changed(base, 0, dropout=0.3) if what == "recipe" else base
    if what == "data":
        data = replace(data, pairs=data.pairs[1:])
    elif what == "dev":
        data = replace(data, dev={"other": data.dev["tiny"]})
    elif what == "seed":
        run = replace(run, seed=1)
    elif what == "start":
        run = replace(run, start=train_encoder(base, data, TrainingRun(tmp_path / "other")))
    heard = Heard()
    files = contents(train_encoder(chosen, data, replace(run, progress=heard)), tmp_path / "a")
    assert [text for text in heard.notices if "belongs to another training" in text]
    assert (tmp_path / "work" / "1-contrastive.other.safetensors").read_bytes() == before
    assert files == contents(train_encoder(chosen, data, replace(run, folder=tmp_path / "fresh")), tmp_path / "b")


def test_stages_that_need_pairs_are_left_out_where_there_are_too_few(tmp_path: Path) -> None:
    chosen = recipe(
        stage("decoding", LOOP), stage("contrastive", LOOP, needs="pairs"), stage("max-margin", needs="pairs")
    )
    for pairs, done in (((), {"1-decoding"}), ((("0-0", "0-1"),), {"1-decoding", "3-max-margin"})):
        heard = Heard()
        folder = tmp_path / str(len(pairs))
        train_encoder(chosen, replace(tiny_data(), pairs=pairs), TrainingRun(folder, progress=heard))
        assert {row.stage for row in read_log(folder / "log.csv")} == done
        assert (
            f"stage 2-contrastive is skipped: it needs 2 labelled pairs, and the data has {len(pairs)}" in heard.notices
        )


def test_a_recipe_of_which_no_stage_can_be_trained_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SettingError, match=r"every stage of the recipe needs labelled pairs, and the data has 0 \(label"
    ):
        train_encoder(recipe(stage("max-margin", needs="pairs")), replace(tiny_data(), pairs=[]), TrainingRun(tmp_path))


def test_going_on_from_a_model_begins_with_its_vectors_and_new_words(tmp_path: Path) -> None:
    base = recipe(stage("contrastive", replace(LOOP, epochs=4, patience=0)), is_trained=True)
    data = tiny_data()
    first = train_encoder(base, data, TrainingRun(tmp_path / "a"))
    added = [Question(f"new{number}", f"new words{number}", "brand new things") for number in range(4)]
    more = replace(data, questions=[*data.questions, *added])
    second = train_encoder(recipe(stage("max-margin"), is_trained=True), more, TrainingRun(tmp_path / "b", start=first))
    assert second.vocabulary.words[: len(first.vocabulary.words)] == first.vocabulary.words
    assert set(second.vocabulary.words) - set(first.vocabulary.words) >= {"new", "brand", "things", "words0"}
    rows = read_log(tmp_path / "b" / "log.csv")
    assert [rows[0].epoch, rows[0].measure] == [0, "tiny mrr"]
    assert rows[0].value == pytest.approx(first.origin.dev_scores["tiny mrr"], rel=1e-5)
    assert second.encode(added).any(axis=1).all()


def test_the_model_knows_how_often_its_words_occurred(tmp_path: Path) -> None:
    data = tiny_data()
    chosen = recipe(stage("max-margin"), reads="joined", word_limit=9, stems="english", min_count=7)
    model = train_encoder(chosen, data, TrainingRun(tmp_path / "work"))
    assert (model.settings.reads, model.settings.stems) == ("joined", "english")
    reader = QuestionReader("joined", 9, "english")
    read = [reader.title(question) for question in data.questions] + [
        reader.text(answer.body) for answer in data.answers
    ]
    counted = Counter(word for text in read for word in text)
    assert model.counts is not None
    assert model.counts[1:].tolist() == [counted[word] for word in model.vocabulary.words]
    assert model.counts[0] == sum(count for word, count in counted.items() if word not in model.vocabulary)
    assert model.counts[0] > 0
    saved = contents(model, tmp_path / "model")
    assert contents(Model.load(tmp_path / "model"), tmp_path / "again") == saved


def test_a_model_that_reads_other_stems_is_no_beginning(tmp_path: Path) -> None:
    start = train_encoder(recipe(stage("max-margin"), stems="english"), tiny_data(), TrainingRun(tmp_path / "a"))
    for other in ("", "german"):
        with pytest.raises(SettingError, match=f"to go on from has stems 'english', the recipe '{other}'"):
            train_encoder(
                recipe(stage("max-margin"), stems=other), tiny_data(), TrainingRun(tmp_path / "b", start=start)
            )


def test_a_model_of_another_kind_or_size_is_no_beginning(tmp_path: Path) -> None:
    start = train_encoder(recipe(stage("max-margin")), tiny_data(), TrainingRun(tmp_path / "a"))
    for other in (recipe(stage("max-margin"), kind="gru"), recipe(stage("max-margin"), order=3)):
        with pytest.raises(SettingError, match=r"the model to go on from has the encoder .*'rcnn'.*the recipe"):
            train_encoder(other, tiny_data(), TrainingRun(tmp_path / "b", start=start))


def test_the_settings_of_torch_are_set_back(tmp_path: Path) -> None:
    before = torch.get_float32_matmul_precision()
    chosen = recipe(stage("max-margin"), arithmetic="bfloat16")
    train_encoder(chosen, tiny_data(), TrainingRun(tmp_path))
    with pytest.raises(SettingError):
        train_encoder(chosen, TrainingData([Question("a", "?")]), TrainingRun(tmp_path))
    assert torch.get_float32_matmul_precision() == before

"""A language model's folder: what is saved is what is loaded, and what is damaged is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from tests.tiny_models import synonym_model

from askalike.errors import DamagedModelError, ModelNotFoundError, SettingError
from askalike.models.encoders.model import Model
from askalike.models.folder import Contents, read_folder, write_folder
from askalike.models.language.kinds import (
    KINDS,
    Learned,
    LikelihoodOptions,
    PhraseOptions,
    TopicOptions,
    TransLMOptions,
    VotedTopicOptions,
)
from askalike.models.language.likelihood import Collection, TermLists
from askalike.models.language.model import LanguageModel, LanguageSettings
from askalike.models.language.phrases import PhraseBook, PhraseTable
from askalike.models.language.topics import Topics
from askalike.models.language.translation import Translations
from askalike.models.vocabulary import Vocabulary
from askalike.text.settings import TextSettings
from askalike.types import Answer, Question

PHRASES = PhraseTable(  # 2, 4 and 2 4; 4 becomes 2 4 and 2 becomes 4
    PhraseBook(np.array([2, 4, 1 * 5 + 4]), 5, 2),
    np.array([0, 0, 1, 2]),
    np.array([0, 1]),
    np.array([0.3, 0.6], np.float32),
)
HELD = np.array([[0, 0], [0.5, 0], [0.3, 0.25], [0.1, 0.25], [0.1, 0.5]], np.float32)
TOPICS = Topics(HELD, HELD[:, ::-1].copy(), alpha=0.1)


def built(kind: str = "translm") -> LanguageModel:
    """Return a model of four terms with what its kind learns: two translations, phrases or topics, or nothing."""
    options = KINDS[kind](**({"topics": 2, "share": 0.6} if kind in ("qatm", "sqatm") else {}))  # type: ignore[arg-type]
    settings = LanguageSettings(kind, options, text=TextSettings("german"))
    translations = Translations.of(np.array([1, 3]), np.array([2, 2]), np.array([0.5, 0.25]), 5)
    collection = Collection(np.array([2, 9, 4, 1, 0], np.int64))
    words = Vocabulary(["wlan", "funk", "netz", "weg"])
    learned = {
        "lmir": None,
        "phrase": Learned(phrases=PHRASES),
        "qatm": Learned(topics=TOPICS),
        "sqatm": Learned(translations, topics=TOPICS),
    }.get(kind, Learned(translations))
    return LanguageModel.build(settings, words, collection, learned, training_data="ab" * 32)


def scores(model: LanguageModel) -> list[float]:
    asked = model.question_ids(Question("", "WLAN weg, Kabel weg"))
    texts = TermLists.of([model.question_ids(Question("", title)) for title in ("Funk weg", "Kabel", "")])
    return model.scorer.log_likelihoods(asked, texts).tolist()


@pytest.mark.parametrize("kind", list(KINDS))
def test_what_is_saved_is_what_is_loaded(kind: str, tmp_path: Path) -> None:
    model = built(kind)
    model.save(tmp_path / "model")
    again = LanguageModel.load(tmp_path / "model")
    assert again.settings == model.settings
    assert again.vocabulary.words == model.vocabulary.words
    assert again.origin.training_data == "ab" * 32
    assert scores(again) == scores(model)
    if kind != "lmir":
        assert scores(model) != scores(LanguageModel.build(model.settings, model.vocabulary, model.collection))
    again.save(tmp_path / "again")
    for file in (tmp_path / "model").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_a_model_reads_as_it_was_told_to() -> None:
    model = built()
    question, answer = Question("q", "Funk", "<p>weg</p>", "html"), Answer("a", "q", "<b>Netz</b>", "html")
    assert model.question_ids(question).tolist() == [2, 4]
    assert model.answer_ids(answer).tolist() == [3]
    title = LanguageModel.build(
        LanguageSettings("lmir", LikelihoodOptions(), "title"), model.vocabulary, model.collection
    )
    assert title.question_ids(question).tolist() == [2]


def test_phrases_are_those_of_their_own_kind_alone(tmp_path: Path) -> None:
    built("phrase").save(tmp_path / "model")
    manifest, contents = read_folder(tmp_path / "model")
    config = LanguageSettings("translm", TransLMOptions()).to_json()
    write_folder(tmp_path / "model", Contents(config, contents.vocabulary, contents.arrays), manifest)
    with pytest.raises(DamagedModelError, match="phrase_keys"):
        LanguageModel.load(tmp_path / "model")


def test_options_out_of_range_are_refused() -> None:
    for wrong in ({"share": 0.0}, {"topics": 0}, {"alpha": 0.0}, {"iterations": 0}, {"weight": 2.0}):
        with pytest.raises(SettingError):
            TopicOptions(**wrong)  # type: ignore[arg-type]
    for wrong in ({"segmentation": "worst"}, {"heuristic": "guess"}, {"longest": 11}, {"least": 0}, {"kept": 1.5}):
        with pytest.raises(SettingError):
            PhraseOptions(**wrong)  # type: ignore[arg-type]
    for wrong in ({"share": 1.5}, {"words": -1.0}, {"most_answers": 0}, {"accepted_votes": -1}, {"eta": 0.0}):
        with pytest.raises(SettingError):
            VotedTopicOptions(**wrong)  # type: ignore[arg-type]
    assert not TopicOptions(answer_weight=0.0).reads_answers
    assert not VotedTopicOptions(answer_weight=0.0).reads_answers
    assert VotedTopicOptions(answer_weight=0.0, answer=0.1).reads_answers


def test_a_forum_without_answers_has_an_empty_table(tmp_path: Path) -> None:
    bare = built("phrase")
    LanguageModel.build(bare.settings, bare.vocabulary, bare.collection).save(tmp_path / "model")
    assert set(read_folder(tmp_path / "model")[1].arrays) == {"counts"}
    assert len(LanguageModel.load(tmp_path / "model").learned.phrases) == 0


def test_a_folder_of_another_sort_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        LanguageModel.load(tmp_path)
    built().save(tmp_path / "model")
    with pytest.raises(DamagedModelError, match=r"config\.json"):
        Model.load(tmp_path / "model")
    synonym_model().save(tmp_path / "encoder")
    with pytest.raises(DamagedModelError, match="settings of a language model are embedding_precision"):
        LanguageModel.load(tmp_path / "encoder")


def test_a_changed_byte_is_told(tmp_path: Path) -> None:
    built().save(tmp_path / "model")
    for name in ("weights.safetensors", "vocabulary.txt", "config.json"):
        file = tmp_path / "model" / name
        before = file.read_bytes()
        file.write_bytes(before[:-3] + b"x" + before[-2:])
        with pytest.raises(DamagedModelError, match=f"{name} is not what manifest.json says"):
            LanguageModel.load(tmp_path / "model")
        file.write_bytes(before)
    LanguageModel.load(tmp_path / "model")


def _put(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda arrays: arrays.update({name: value})


DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no counts": (lambda arrays: arrays.pop("counts"), "expected counts"),
    "half a table": (lambda arrays: arrays.pop("starts"), "expected counts"),
    "counts of another vocabulary": (_put("counts", np.arange(4)), r"counts int64 \(4,\)"),
    "counts below 0": (_put("counts", np.array([1, 2, -3, 4, 5])), "whole numbers ≥ 0"),
    "counts of another type": (_put("counts", np.ones(5, np.float32)), "counts float32"),
    "starts that fall": (_put("starts", np.array([0, 2, 1, 1, 2, 2])), "expected them to rise"),
    "starts beyond the end": (_put("starts", np.array([0, 0, 1, 1, 2, 3])), "expected them to rise"),
    "too few starts": (_put("starts", np.array([0, 2])), r"starts int64 \(2,\)"),
    "a source outside": (_put("sources", np.array([2, 5])), "outside the 4 terms"),
    "the source 0": (_put("sources", np.array([0, 2])), "outside the 4 terms"),
    "too few sources": (_put("sources", np.array([2])), r"sources int64 \(1,\)"),
    "a probability above 1": (_put("values", np.array([0.5, 1.5], np.float32)), "no probabilities"),
    "no number": (_put("values", np.array([0.5, np.nan], np.float32)), "no probabilities"),
}

PHRASE_DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "half a table": (lambda arrays: arrays.pop("phrase_values"), "and perhaps"),
    "keys of another type": (_put("phrase_keys", np.ones(3, np.float32)), "phrase_keys float32"),
    "keys that fall": (_put("phrase_keys", np.array([4, 2, 9])), "no phrases of up to 10 of 4 terms"),
    "a key that begins with itself": (_put("phrase_keys", np.array([2, 11, 12])), "no phrases"),
    "a key of no term": (_put("phrase_keys", np.array([2, 4, 10])), "no phrases"),
    "a key below 0": (_put("phrase_keys", np.array([-2, 4, 9])), "no phrases"),
    "a phrase that is too long": (_put("phrase_keys", np.arange(15) * 5 + 1), "no phrases"),
    "too few starts": (_put("phrase_starts", np.array([0, 2])), r"phrase_starts int64 \(2,\)"),
    "starts that fall": (_put("phrase_starts", np.array([0, 2, 1, 2])), "phrase_starts from 0"),
    "a source outside": (_put("phrase_sources", np.array([0, 3])), "outside the 3 phrases"),
    "no number": (_put("phrase_values", np.array([0.5, np.nan], np.float32)), "phrase_values that are no prob"),
}
TOPIC_DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "one language alone": (lambda arrays: arrays.pop("topic_answers"), "and perhaps"),
    "another type": (_put("topic_answers", HELD.astype(np.float16)), "topic_answers float16"),
    "topics of another vocabulary": (_put("topic_questions", HELD[1:]), r"topic_questions float32 \(4, 2\)"),
    "too many topics": (_put("topic_answers", np.zeros((5, 3), np.float32)), r"expected float32 \(5, 2\)"),
    "above 1 together": (_put("topic_answers", np.full((5, 2), 0.3, np.float32)), "no probabilities"),
    "below 0": (_put("topic_questions", -HELD), "no probabilities"),
    "no number": (_put("topic_questions", np.full((5, 2), np.nan, np.float32)), "no probabilities"),
}
EVERY_KIND = {"translm": DAMAGE, "phrase": PHRASE_DAMAGE, "qatm": TOPIC_DAMAGE}
EVERY_DAMAGE = [(kind, *one) for kind, damage in EVERY_KIND.items() for one in damage.values()]
NAMES = [f"{kind}: {name}" for kind, damage in EVERY_KIND.items() for name in damage]


@pytest.mark.parametrize(("kind", "spoil", "message"), EVERY_DAMAGE, ids=NAMES)
def test_numbers_that_do_not_fit_are_refused(
    kind: str, spoil: Callable[[dict[str, Any]], Any], message: str, tmp_path: Path
) -> None:
    built(kind).save(tmp_path / "model")
    manifest, contents = read_folder(tmp_path / "model")
    arrays = dict(contents.arrays)
    spoil(arrays)
    write_folder(tmp_path / "model", Contents(contents.config, contents.vocabulary, arrays), manifest)
    with pytest.raises(DamagedModelError, match=message):
        LanguageModel.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "magic"}, "no language model 'magic'"),
        ({"reads": "all"}, "reads is 'all'"),
        ({"reads": 3}, "reads is 3"),
        ({"text": {"language": "martian"}}, "martian"),
        ({"options": {"weight": 1.0}}, "options of translm are weight"),
        ({"extra": 1}, "settings of a language model are extra, kind"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    built().save(tmp_path / "model")
    manifest, contents = read_folder(tmp_path / "model")
    changed = Contents({**contents.config, **change}, contents.vocabulary, contents.arrays)
    write_folder(tmp_path / "model", changed, manifest)
    with pytest.raises(DamagedModelError, match=message):
        LanguageModel.load(tmp_path / "model")


def test_options_of_a_wrong_type_or_value_are_refused() -> None:
    for wrong in ({"smoothing": 1, "weight": 1.0}, {"smoothing": "dirichlet", "weight": True}):
        with pytest.raises(SettingError, match=r"is (1|True), but expected"):
            LanguageSettings.from_json({"kind": "lmir", "options": wrong, "reads": "title", "text": {}})
    with pytest.raises(SettingError, match=r"weight is -1\.0"):
        LikelihoodOptions("dirichlet", -1.0)
    with pytest.raises(SettingError, match="options of lmir"):
        LanguageSettings("lmir", TransLMOptions())


def test_a_saved_model_holds_plain_files_alone(tmp_path: Path) -> None:
    built().save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))["kind"] == "translm"
    arrays = safetensors.numpy.load_file(tmp_path / "model" / "weights.safetensors")
    assert {name: array.tolist() for name, array in arrays.items() if name != "values"} == {
        "counts": [2, 9, 4, 1, 0],
        "starts": [0, 0, 1, 1, 2, 2],
        "sources": [2, 2],
    }

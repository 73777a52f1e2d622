"""``askalike train`` as a user types it, with networks of a few numbers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.command import Run
from tests.tiny_models import synonym_model, tiny_general
from tests.tiny_training import dev_score_of

from askalike import Forum, Question
from askalike.data import bundled_forum
from askalike.index.vector_sets import OWN_PACE
from askalike.text.settings import TextSettings
from askalike.types import Link

TINY = """
[words]
size = 8
vectors = "random"

[encoder]
kind = "rcnn"
hidden_size = 8

[[stage]]
objective = "contrastive"
views = { title-body = 1.0, answers = 1.0 }
batch_size = 64
epochs = 2

[[stage]]
objective = "contrastive"
needs = "pairs"
views = { marked = 1.0 }
batch_size = 32
epochs = 1
"""


@pytest.fixture(autouse=True)
def no_general_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.models.encoder_settings.general_folder", lambda: None)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture
def to_the_end(tmp_path: Path) -> Path:
    """Return a recipe whose last epoch is kept: going on from a model gives another one, whatever dev says."""
    path = tmp_path / "end.toml"
    path.write_text(TINY.replace("epochs", "patience = 0\nepochs"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def indexed(words_alone: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indexed") / "home.forum"
    with Forum.create(path) as forum:
        forum.load(bundled_forum())
    return path


@pytest.fixture
def forum(indexed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed, tmp_path / "home.forum"))


@pytest.fixture
def dev_says(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], None]:
    """Let dev find a search of this worth before and after, whatever was trained."""

    def say(before: float, after: float) -> None:
        scores = iter([dev_score_of(before), dev_score_of(after)] * 9)
        monkeypatch.setattr("askalike.training.session.dev_score", lambda *_: next(scores))

    return say


def test_the_plan_is_told_first_and_a_better_model_answers(
    run: Run, forum: Path, recipe: Path, dev_says: Callable[[float, float], None]
) -> None:
    dev_says(0.3, 0.4)
    done = run("train", forum, "--recipe", recipe)
    assert done.code == 0
    plan, result = done.out.split("dev MRR")
    facts = dict(re.split("  +", line, maxsplit=1) for line in plan.splitlines())
    assert (facts["questions"], facts["links"], facts["groups"], facts["dev queries"]) == ("252", "60", "54", "13")
    assert (facts["answers"], facts["learned links"], facts["dev queries that count"]) == ("216", "47", "11")
    assert facts["encoder"].startswith("rcnn, 8 dimensions")
    assert (facts["training"], facts["folder"]) == ("from the start", f"{forum}/training")
    assert "0.3000" in result
    assert "better on dev and is in use from now on" in result
    assert (forum / "training" / "log.csv").read_text(encoding="utf-8").startswith("stage,epoch,step,measure,value")
    info = run("info", forum, "--json").json
    assert (info["model"], info["encoded"]) == ("own (rcnn, 8 dimensions)", 252)


def test_a_model_that_is_not_better_is_taken_only_when_told_to(
    run: Run, forum: Path, recipe: Path, dev_says: Callable[[float, float], None]
) -> None:
    dev_says(0.3, 0.2)
    done = run("train", forum, "--recipe", recipe)
    assert "training did not help: the search by words alone stays" in done.out
    assert "--keep" in done.out
    assert run("info", forum, "--json").json["model"] is None
    kept = run("train", forum, "--recipe", recipe, "--keep", "--json").json
    assert (kept["is_better"], kept["is_taken"], kept["beginning"]) == (False, True, "finished")
    assert run("info", forum, "--json").json["model"] == "own (rcnn, 8 dimensions)"


def test_the_same_training_again_gives_the_same_model_and_a_fresh_one_begins_anew(
    run: Run, forum: Path, recipe: Path
) -> None:
    words = ("train", forum, "--recipe", recipe, "--keep", "--json")
    first = run(*words).json
    before = (forum / "model" / "manifest.json").read_bytes()
    assert first["dev_after"]["cosine"] > 0
    difference = first["dev_difference"]
    assert difference["search"] == pytest.approx(first["dev_after"]["search"] - first["dev_before"]["search"])
    assert difference["interval95"][0] <= difference["search"] <= difference["interval95"][1]
    assert 0 < difference["p_value"] <= 1
    assert difference["queries"] == first["dev_queries_that_count"]
    again = run(*words).json
    assert (first["beginning"], again["beginning"]) == ("anew", "anew"), "a model that was taken needs no checkpoints"
    assert sorted(file.name for file in (forum / "training").iterdir()) == ["lock", "log.csv"]
    assert again["before"] == "own"
    assert (forum / "model" / "manifest.json").read_bytes() == before
    fresh = run(*words, "--fresh", "--seed", 1).json
    assert fresh["beginning"] == "anew"
    assert (forum / "model" / "manifest.json").read_bytes() != before


def test_a_training_keeps_the_parts_that_evaluate_then_scores(run: Run, forum: Path, recipe: Path) -> None:
    run("train", forum, "--recipe", recipe, "--hold-out-test")
    kept = json.loads((forum / "parts.json").read_text(encoding="utf-8"))["parts"]
    test = {question: "dev" if part == "test" else part for question, part in kept.items()}
    (forum / "parts.json").write_text(json.dumps({"format": 1, "seed": 0, "parts": test}), encoding="utf-8")
    words = ("evaluate", forum, "--system", "words", "--protocol", "retrieval", "--split")
    assert run(*words, "dev", "--json").json["retrieval"]["systems"]["words"]["queries"] == 25
    assert "no duplicate link falls into the split 'test'" in run(*words, "test").err


@pytest.mark.slow  # trains several times
def test_evaluate_says_how_many_of_the_marks_the_own_model_has_learned(run: Run, forum: Path, to_the_end: Path) -> None:
    words = ("evaluate", forum, "--protocol", "retrieval", "--system")
    assert run(*words, "search", "--json").json["learned_queries"] == 0
    run("train", forum, "--recipe", to_the_end, "--keep", "--hold-out-test")
    done = run(*words, "search", "--json")
    assert done.json["learned_queries"] == 35
    assert "learned from 35 of these 60 questions; --split test after" in done.err
    assert run(*words, "search", "--split", "train", "--json").json["learned_queries"] == 35
    for part in ("dev", "test"):
        done = run(*words, "search", "--split", part, "--json")
        assert (done.json["learned_queries"], done.err) == (0, "")
    assert run(*words, "words", "--json").json["learned_queries"] == 0, "words have learned nothing"
    run("train", forum, "--recipe", to_the_end, "--keep")
    assert run(*words, "meaning", "--json").json["learned_queries"] == 47
    synonym_model().save(forum.parent / "other")
    run("encode", forum, "--model", forum.parent / "other")
    assert run(*words, "meaning", "--json").json["learned_queries"] == 0


def test_without_marks_texts_alone_are_learned_from_and_nothing_is_compared(
    run: Run, tmp_path: Path, recipe: Path
) -> None:
    texts = [Question(str(number), f"wifi drops {number % 3}", "the router is old") for number in range(6)]
    with Forum.create(tmp_path / "f") as forum:
        forum.add(texts)
        forum.store.put_links([Link("1", "2", "related")])
    done = run("train", tmp_path / "f", "--recipe", recipe)
    assert done.code == 0
    assert "0 groups of duplicates" in done.out
    assert "not compared: the forum has no labelled dev split" in done.out
    assert run("info", tmp_path / "f", "--json").json["encoded"] == 6


@pytest.fixture
def general(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package carry an encoder."""
    tiny_general(tmp_path / "packaged")
    users = ("models.text_questions", "models.encoder_settings", "models.adapted", "training.session")
    for user in (f"askalike.{name}" for name in users):
        monkeypatch.setattr(f"{user}.general_folder", lambda: tmp_path / "packaged")


@pytest.fixture
def not_trained(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let every training from now on fail."""

    def fail(*_: object) -> None:
        raise AssertionError("nothing is to be trained")

    return lambda: monkeypatch.setattr("askalike.training.encoder.train_encoder", fail)


@pytest.mark.usefixtures("general")
def test_by_default_the_bundled_encoder_is_adapted(
    run: Run, forum: Path, dev_says: Callable[[float, float], None]
) -> None:
    dev_says(0.3, 0.4)
    done = run("train", forum)
    assert done.code == 0
    assert "the bundled one, adapted" in done.out
    assert "the new model is better on dev and is in use from now on" in done.out
    info = run("info", forum, "--json").json
    assert (info["model"], info["encoded"]) == ("adapted (the bundled encoder, trained on the forum)", 252)
    assert len(run("search", forum, "wifi drops", "--ranker", "meaning", "--json").json) == 10
    assert run("check", forum).code == 0


@pytest.mark.usefixtures("general")
def test_without_duplicates_titles_that_find_their_own_bodies_decide(run: Run, tmp_path: Path) -> None:
    subjects = ("wifi", "wireless", "printer", "the router", "is")
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question(str(number), f"{subjects[number % 5]} drops", f"{number} offline") for number in range(40)])
    done = run("train", tmp_path / "f")
    assert done.code == 0
    assert "MRR of a title's own body among those of 8 questions; duplicates are not in it" in done.out
    assert run("train", tmp_path / "f", "--json").json["dev_after"]["cosine"] > 0


@pytest.mark.usefixtures("general")
def test_a_forum_in_another_language_is_not_adapted(run: Run, tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f", text=TextSettings(language="german")) as forum:
        forum.add([Question("1", "Das WLAN bricht ab", "Jeden Abend")])
    done = run("train", tmp_path / "f")
    assert (done.code, "the forum's language is german" in done.err) == (2, True)
    assert "--recipe lei2016" in done.err


@pytest.mark.usefixtures("general")
def test_without_a_dev_part_a_model_that_is_there_stays_unless_told_to(
    run: Run, tmp_path: Path, recipe: Path, not_trained: Callable[[], None]
) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question(str(number), f"wifi drops {number % 3}", "the router is old") for number in range(6)])
    words = ("train", tmp_path / "f", "--recipe", recipe)
    done = run(*words)
    assert "the forum has no labelled dev split: the encoder general@" in done.out
    assert "it is taken with --keep alone" in " ".join(done.err.split())
    assert f"until then it is kept in {tmp_path / 'f' / 'training'} (0 MB), which may be deleted" in done.out
    not_trained()
    kept = run(*words, "--keep")
    assert "nothing to train: it was finished before" in " ".join(kept.out.split())
    assert run("info", tmp_path / "f", "--json").json["model"] == "own (rcnn, 8 dimensions)"


@pytest.mark.slow  # trains several times
def test_a_finished_model_is_taken_later_though_questions_came_and_not_after_other_changes(
    run: Run, forum: Path, recipe: Path, dev_says: Callable[[float, float], None], not_trained: Callable[[], None]
) -> None:
    dev_says(0.3, 0.2)
    words = ("train", forum, "--recipe", recipe, "--json")
    assert not run(*words).json["is_taken"]
    with Forum.open(forum) as opened:
        opened.add(Question("new", "printer prints nothing"))
        assert not run(*words).json["is_taken"]
        opened.edit(Question("q1001", "something else"))
        assert run(*words, "--keep").json["beginning"] == "changed"
        assert not run(*words, "--seed", 1).json["is_taken"]
        opened.add(Question("newer", "scanner scans nothing"))
    not_trained()
    kept = run(*words, "--seed", 1, "--keep").json
    assert (kept["beginning"], kept["is_taken"]) == ("finished", True)


@pytest.mark.usefixtures("general")
def test_a_way_leads_back_to_the_general_model(
    run: Run, forum: Path, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("train", forum, "--recipe", recipe, "--keep")
    assert run("info", forum, "--json").json["model"] == "own (rcnn, 8 dimensions)"
    back = run("encode", forum, "--model", "general", "--json").json
    assert (back["model"].partition("@")[0], back["encoded"]) == ("general", 252)
    assert not (forum / "model").exists()
    synonym_model().save(tmp_path / "general")
    monkeypatch.chdir(tmp_path)
    run("encode", forum, "--model", "./general")
    assert (forum / "model").is_dir()
    monkeypatch.setattr("askalike.models.encoder_settings.general_folder", lambda: None)
    done = run("encode", forum, "--model", "general")
    assert done.code == 2
    assert "contains no encoder" in done.err
    assert (forum / "model").is_dir(), "nothing is taken away where nothing could stand for it"


def test_a_stopped_training_says_how_to_go_on(
    run: Run, forum: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("askalike.training.encoder.train_encoder", stopped)
    done = run("train", forum, "--recipe", recipe, "--fresh")
    assert done.code == 130
    assert f"kept in {forum}/training" in done.err
    assert f"askalike train {forum} --recipe {recipe}\n" in done.err


def test_stopped_while_the_new_model_encodes_the_same_again_goes_on_with_encoding(
    run: Run, forum: Path, recipe: Path, dev_says: Callable[[float, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    dev_says(0.3, 0.4)
    words = ("train", forum, "--recipe", recipe)
    with monkeypatch.context() as patched:
        patched.setattr(Forum, "encode", stopped)
        patched.setattr("askalike.index.vector_sets.OWN_PACE", OWN_PACE._replace(at_once=0))
        assert run(*words).code == 130
        assert run("info", forum, "--json").json["encoded"] == 0
        assert (forum / "model").is_dir()
    done = run(*words)
    assert done.code == 0
    assert "already uses this model" in done.out
    assert "did not help" not in done.out
    assert run("info", forum, "--json").json["encoded"] == 252
    assert sorted(file.name for file in (forum / "training").iterdir()) == ["lock", "log.csv"]


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (("--recipe", "magic"), 2, "no recipe 'magic'", "default, lei2016"),
        (("--recipe", "RECIPE", "--device", "abacus"), 2, "device 'abacus'", "cuda"),
    ],
)
def test_errors_say_what_and_what_to_do(
    run: Run, forum: Path, recipe: Path, words: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    done = run("train", forum, *(recipe if word == "RECIPE" else word for word in words))
    assert done.code == code
    assert not (forum / "training").exists()
    assert message in done.err
    assert hint in done.err


def test_without_torch_the_extra_is_named(run: Run, forum: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.training.session.importlib.util.find_spec", lambda name: None)
    done = run("train", forum)
    assert done.code == 1
    assert '"torch>=' in done.err

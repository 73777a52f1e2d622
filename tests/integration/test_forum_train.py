"""A library user trains a forum: one call, with progress, a result, and the model in use afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.embedding_server import WordHashes, serving
from tests.integration.test_cli_train import TINY

from askalike import Forum
from askalike.data import bundled_forum
from askalike.errors import EncoderError
from askalike.forum import ForumSettings
from askalike.progress import SilentProgress


class Phases(SilentProgress):
    """Keeps the phases that began, and what they were advanced by."""

    def __init__(self) -> None:
        self.phases: dict[str, int] = {}

    def start(self, phase: str, total: int, unit: str) -> None:
        self.phases[phase] = 0

    def advance(self, count: int) -> None:
        self.phases[list(self.phases)[-1]] += count


@pytest.fixture(autouse=True)
def no_general_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.models.encoder_settings.general_folder", lambda: None)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "home.forum") as forum:
        forum.load(bundled_forum())
    return tmp_path / "home.forum"


def test_an_open_forum_is_trained_and_searches_with_what_it_has_learned(home: Path, recipe: Path) -> None:
    shown = Phases()
    with Forum.open(home) as forum:
        assert forum.indexes.state().model == ""
        result = forum.train(recipe, is_kept=True, progress=shown)
        assert (result.is_taken, result.folder) == (True, home / "model")
        assert result.before is not None
        assert result.after is not None
        assert result.comparison is not None
        assert result.comparison.difference.mean == pytest.approx(result.after.search - result.before.search)
        assert forum.indexes.state().model == "own (rcnn, 8 dimensions)"
        assert len(forum.similar("wifi drops", ranker="meaning")) == 10
    assert {"reading the forum", "reading"} <= set(shown.phases)
    assert any("contrastive" in phase and done for phase, done in shown.phases.items())


def test_a_forum_that_was_opened_without_vectors_takes_the_model_and_encodes_later(home: Path, recipe: Path) -> None:
    with Forum.open(home, settings=ForumSettings(has_vectors=False)) as forum:
        assert forum.train(recipe, is_kept=True).is_taken
    with Forum.open(home) as forum:
        assert forum.indexes.state().model == "own (rcnn, 8 dimensions)"


def test_a_new_model_is_compared_with_the_text_encoder_that_answers_and_takes_its_place(
    home: Path, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    with serving() as server, Forum.open(home, encoder=server.named) as forum:
        forum.encode()
        monkeypatch.setenv("ASKALIKE_ENCODERS", server.named)
        result = forum.train(recipe, is_kept=True)
        assert result.present.startswith("openai:served@")
        assert result.before is not None
        assert result.is_taken
        assert forum.indexes.state().model == "own (rcnn, 8 dimensions)"


def test_what_a_new_model_cannot_be_compared_with_is_said_before_the_training(home: Path, recipe: Path) -> None:
    with Forum.open(home, encoder=WordHashes()) as forum:
        forum.encode()
    phases = Phases()
    with Forum.open(home) as forum, pytest.raises(EncoderError, match="an encoder that a program gave"):
        forum.train(recipe, progress=phases)
    assert not any("training" in phase for phase in phases.phases)

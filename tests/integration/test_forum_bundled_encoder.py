"""The bundled encoder of a forum before and after an upgrade of the package, missing, and damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.tiny_models import tiny_general

from askalike import Forum, Question
from askalike.errors import EncoderError
from askalike.index import vector_sets
from askalike.models.general import GRAPH_FILE, general_encoder

QUESTIONS = [
    Question("wifi", "Wifi drops"),
    Question("printer", "Printer offline"),
    Question("other", "Is the wifi offline?"),
]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the encoder of a pretended installation."""
    folder = tmp_path / "package" / "general"
    tiny_general(folder)
    for user in ("encoder_settings", "text_questions"):
        monkeypatch.setattr(f"askalike.models.{user}.general_folder", lambda: folder)
    return folder


@pytest.fixture
def path(tmp_path: Path, package: Path) -> Path:
    path = tmp_path / "my.forum"
    with Forum.create(path) as forum:
        forum.add(QUESTIONS)
        assert nearest(forum) == "wifi"
    return path


def nearest(forum: Forum) -> str:
    """Return what is nearest to the first question by meaning alone."""
    return forum.similar("Wifi drops", ranker="meaning")[0].question.id


def upgrade(package: Path) -> None:
    """Let the package bring another encoder."""
    shutil.rmtree(package)
    tiny_general(package, seed=1)
    general_encoder.cache_clear()  # as another process would have it


def test_another_process_that_opens_the_forum_after_an_upgrade_switches_it_for_all(path: Path, package: Path) -> None:
    with Forum.open(path) as before:
        name = before.models.encoder
        upgrade(package)
        with Forum.open(path) as after:
            assert after.models.encoder == before.models.encoder != name
            assert nearest(before) == nearest(after) == "wifi"


def test_a_large_forum_is_found_by_words_after_an_upgrade_until_it_is_encoded_and_says_so(
    path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_sets, "pace_of", lambda _: vector_sets.OWN_PACE._replace(at_once=2))
    upgrade(package)
    with Forum.open(path) as forum:
        assert forum.indexes.state().waiting == 3
        assert "the installed package contains general@" in forum.indexes.state().problem
        hits = forum.similar("wifi")
        assert {hit.question.id for hit in hits} == {"wifi", "other"}
        assert "encode anew" in hits[0].notice
        forum.encode()
        assert (forum.indexes.state().waiting, forum.indexes.state().problem) == (0, "")
        assert nearest(forum) == "wifi"


def test_a_forum_is_found_by_words_where_the_package_has_no_encoder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("encoder_settings", "text_questions"):
        monkeypatch.setattr(f"askalike.models.{user}.general_folder", lambda: None)
    with Forum.open(path) as forum:
        assert "contains no encoder" in forum.indexes.state().problem
        assert {hit.question.id for hit in forum.similar("wifi")} == {"wifi", "other"}
    assert Forum.check(path).is_sound


def test_a_damaged_encoder_is_named_with_what_mends_it(path: Path, package: Path) -> None:
    graph = package / GRAPH_FILE
    graph.write_bytes(graph.read_bytes()[:-1] + b"x")
    general_encoder.cache_clear()
    with Forum.open(path) as forum:
        with pytest.raises(EncoderError, match=r"model\.onnx is not as it was written.*install askalike again"):
            nearest(forum)
        assert {hit.question.id for hit in forum.similar("wifi", ranker="words")} == {"wifi", "other"}

"""The general model of the package: small forums use it where it lies, large ones keep a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.tiny_models import synonym_model

from askalike import Forum, Question
from askalike.errors import DamagedModelError
from askalike.index import vector_set, vector_sets
from askalike.store import ForumLayout

PRINTERS_ARE_WIRELESS = ({"wifi", "wireless", "printer"}, {"drops", "offline"})
QUESTIONS = [
    Question("wifi", "Wifi drops"),
    Question("printer", "Printer offline"),
    Question("other", "Which keyboard to buy"),
]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the general model of a pretended installation."""
    folder = tmp_path / "package" / "general"
    synonym_model().save(folder)
    monkeypatch.setattr("askalike.index.encoder_settings.default_model", lambda: folder)
    return folder


@pytest.fixture
def path(tmp_path: Path, package: Path) -> Path:
    path = tmp_path / "my.forum"
    with Forum.create(path) as forum:
        forum.add(QUESTIONS)
        assert nearest(forum) == ["wifi"]
    vector_set._MODELS.clear()  # as another process would have it
    return path


@pytest.fixture
def large(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the forum as one that is too large to be encoded when it is opened."""
    monkeypatch.setattr(vector_sets, "AT_ONCE", 2)
    Forum.open(path).close()
    return path


def nearest(forum: Forum) -> list[str]:
    """Return what is found by meaning alone."""
    return sorted(hit.question.id for hit in forum.similar("wireless", ranker="meaning") if hit.score > 1e-6)


def upgrade(package: Path) -> None:
    """Let the package bring a model by which printers are wireless."""
    shutil.rmtree(package)
    synonym_model(PRINTERS_ARE_WIRELESS).save(package)


def copies(path: Path) -> list[Path]:
    return sorted(ForumLayout(path).vectors.glob("*/model"))


def damage(folder: Path) -> None:
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")


# -- small ---------------------------------------------------------------------------------------------------------


def test_a_small_forum_has_no_copy_of_the_packages_model(path: Path) -> None:
    assert copies(path) == []
    assert not list(path.rglob("*.safetensors"))
    with Forum.open(path) as forum:
        assert forum.vectors.model == "general (rcnn, 4 dimensions)"
        assert nearest(forum) == ["wifi"]
        forum.encode()
    assert copies(path) == []


def test_a_small_forum_is_encoded_anew_when_it_is_opened_after_an_upgrade(path: Path, package: Path) -> None:
    upgrade(package)
    with Forum.open(path) as forum:
        assert (forum.vectors.entries, forum.vectors.waiting, forum.vectors.next_model) == (3, 0, "")
        assert nearest(forum) == ["printer", "wifi"]
    assert copies(path) == []
    assert len([one for one in ForumLayout(path).vectors.iterdir() if one.is_dir()]) == 1


def test_a_forum_that_had_not_read_its_model_before_an_upgrade_says_to_open_it_again(path: Path, package: Path) -> None:
    with Forum.open(path) as forum:
        upgrade(package)
        with pytest.raises(DamagedModelError, match=r"not the one of its vectors.*open the forum again"):
            nearest(forum)
    with Forum.open(path) as forum:
        assert nearest(forum) == ["printer", "wifi"]


def test_another_process_that_opens_the_forum_after_an_upgrade_switches_it_for_all(path: Path, package: Path) -> None:
    with Forum.open(path) as before:
        assert nearest(before) == ["wifi"]
        upgrade(package)
        assert nearest(before) == ["wifi"], "it has read its model"
        with Forum.open(path) as after:
            assert nearest(after) == ["printer", "wifi"]
        assert nearest(before) == ["printer", "wifi"]


def test_a_small_forum_is_found_by_words_where_the_package_has_no_model(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.index.encoder_settings.default_model", lambda: None)
    with Forum.open(path) as forum:
        assert forum.vectors.model == ""
        assert [hit.question.id for hit in forum.similar("wifi")] == ["wifi"]
    report = Forum.check(path)
    assert report.is_sound
    assert "does not carry" in report.findings[0].what


# -- large ---------------------------------------------------------------------------------------------------------


def test_a_forum_that_grows_too_large_to_be_encoded_when_opened_gets_a_copy(
    path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_sets, "AT_ONCE", 3)
    with Forum.open(path) as forum:
        assert copies(path) == []
        forum.add(Question("more", "Wlan lost"))
        assert len(copies(path)) == 1
        assert nearest(forum) == ["more", "wifi"]
    assert Forum.check(path).is_sound


def test_a_large_forum_answers_by_its_copy_after_an_upgrade_until_all_is_encoded(large: Path, package: Path) -> None:
    upgrade(package)
    with Forum.open(large) as forum:
        assert nearest(forum) == ["wifi"]
        assert (forum.vectors.waiting, forum.vectors.next_model) == (3, "general (rcnn, 2 dimensions)")
        forum.encode()
        assert nearest(forum) == ["printer", "wifi"]
    assert len(copies(large)) == 1


def test_a_large_forum_whose_copy_could_not_be_made_is_found_by_words_after_an_upgrade_and_says_so(
    path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_sets, "AT_ONCE", 2)  # it was never opened since it was small
    upgrade(package)
    with Forum.open(path) as forum:
        assert (forum.vectors.model, forum.vectors.waiting) == ("", 3)
        assert [hit.question.id for hit in forum.similar("wifi")] == ["wifi"]
        forum.encode()
        assert nearest(forum) == ["printer", "wifi"]


def test_a_forum_that_is_being_encoded_elsewhere_gets_its_copy_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_sets, "AT_ONCE", 2)
    with vector_sets.lock_of_makers(ForumLayout(path).vectors), Forum.open(path) as forum:
        assert nearest(forum) == ["wifi"]
        assert copies(path) == []
    Forum.open(path).close()
    assert len(copies(path)) == 1


# -- damage --------------------------------------------------------------------------------------------------------


def test_a_damaged_model_of_the_package_is_named_with_what_mends_it(path: Path, package: Path) -> None:
    damage(package)
    with Forum.open(path) as forum:
        with pytest.raises(DamagedModelError, match=r"package.*weights.*install askalike again"):
            nearest(forum)
        assert [hit.question.id for hit in forum.similar("wifi", ranker="words")] == ["wifi"]


def test_a_check_names_the_damaged_model_of_the_package_and_a_repair_leaves_the_vectors_alone(
    path: Path, package: Path
) -> None:
    whole = {file.name: file.read_bytes() for file in package.iterdir()}
    damage(package)
    (finding,) = Forum.check(path).findings
    assert (finding.part, finding.is_damage, finding.mend) == ("files", True, "install askalike again")
    assert Forum.repair(path).repaired == ()
    for name, content in whole.items():
        (package / name).write_bytes(content)
    assert Forum.check(path).findings == ()
    with Forum.open(path) as forum:
        assert nearest(forum) == ["wifi"]


def test_a_damaged_copy_is_made_anew_by_a_repair(large: Path) -> None:
    damage(copies(large)[0])
    assert not Forum.check(large).is_sound
    with Forum.open(large) as forum, pytest.raises(DamagedModelError, match="askalike reindex"):
        nearest(forum)
    assert "vectors" in Forum.repair(large).repaired
    with Forum.open(large) as forum:
        forum.encode()
        assert nearest(forum) == ["wifi"]
    assert Forum.check(large).is_sound

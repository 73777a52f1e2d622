"""What is deleted: files and folders by the names that the package gives them, and nothing behind a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from askalike.files import Owned, foreign_in, is_link, remove_owned

OWNED = Owned(r"mark\.json", ((r"[0-9a-f]{4}", Owned(r"\w+\.segment")),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    (folder / "00ff").mkdir(parents=True)
    (folder / "mark.json").write_text("ours", encoding="utf-8")
    (folder / "00ff" / "a.segment").write_text("ours", encoding="utf-8")
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return a folder that has the names of the package, and belongs to somebody else."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "a.segment").write_text("theirs", encoding="utf-8")
    (other / "mark.json").write_text("theirs", encoding="utf-8")
    return other


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_a_folder_of_the_package_goes_as_a_whole(folder: Path) -> None:
    assert foreign_in(folder, OWNED) == []
    assert remove_owned(folder, OWNED) == []
    assert not folder.exists()
    assert remove_owned(folder, OWNED) == [], "again, where nothing is"


def test_foreign_files_and_folders_stay_at_every_depth(folder: Path) -> None:
    foreign = [folder / "00ff" / "thesis.txt", folder / "photos", folder / "tax.json"]
    foreign[1].mkdir()
    (foreign[1] / "a.segment").write_text("theirs", encoding="utf-8")
    for path in (foreign[0], foreign[2]):
        path.write_text("theirs", encoding="utf-8")
    assert foreign_in(folder, OWNED) == foreign
    assert remove_owned(folder, OWNED) == foreign
    assert contents(foreign[1]) == {"a.segment": "theirs"}
    assert sorted(path.name for path in folder.rglob("*")) == ["00ff", "a.segment", "photos", "tax.json", "thesis.txt"]


def test_nothing_behind_a_link_is_deleted(folder: Path, elsewhere: Path, tmp_path: Path) -> None:
    before = contents(elsewhere)
    (folder / "beef").symlink_to(elsewhere)
    (folder / "mark.json").unlink()
    (folder / "mark.json").symlink_to(elsewhere / "mark.json")
    assert is_link(folder / "beef")
    assert remove_owned(folder, OWNED) == [folder / "beef"], "a link in the place of a file goes, of a folder stays"
    assert [path.name for path in folder.iterdir()] == ["beef"]
    (tmp_path / "link").symlink_to(elsewhere)
    assert remove_owned(tmp_path / "link", OWNED) == [tmp_path / "link"]
    assert contents(elsewhere) == before


def test_a_folder_that_becomes_a_link_while_it_is_cleared_is_not_followed(
    folder: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def swapped(name: str | Path, *flags: int, **options: int) -> int:
        if name == "00ff":
            (folder / "00ff" / "a.segment").unlink()
            (folder / "00ff").rmdir()
            (folder / "00ff").symlink_to(elsewhere)
        return opened(name, *flags, **options)

    monkeypatch.setattr("askalike.files.os.open", swapped)
    before = contents(elsewhere)
    assert remove_owned(folder, OWNED) == [folder / "00ff"]
    assert contents(elsewhere) == before


def test_in_the_place_of_a_file_only_an_empty_folder_goes(folder: Path) -> None:
    (folder / "mark.json").unlink()
    (folder / "mark.json").mkdir()
    (folder / "00ff" / "b.segment").mkdir()
    (folder / "00ff" / "b.segment" / "letter.txt").write_text("theirs", encoding="utf-8")
    assert remove_owned(folder, OWNED) == [folder / "00ff" / "b.segment"]
    assert not (folder / "mark.json").exists()


def test_every_checkpoint_of_a_training_is_taken_away_and_no_other_file(tmp_path: Path) -> None:
    from askalike.training.work_folder import clear_work

    ours = ["words", "1-autoencoder", "2-max-margin", "siamese"]
    for name in (*ours, "embeddings"):
        (tmp_path / f"{name}.safetensors").write_bytes(b"")
    clear_work(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["embeddings.safetensors"]

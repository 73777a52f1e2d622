"""A file is replaced in one step, also where the system refuses it while somebody reads the old one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from askalike import files


def refusing(monkeypatch: pytest.MonkeyPatch, times: int) -> list[Path]:
    """Let the next renames be refused, as Windows does while the target is open; return what was tried."""
    tried: list[Path] = []
    rename = Path.replace

    def replace(path: Path, target: Path) -> Path:
        tried.append(path)
        if len(tried) <= times:
            raise PermissionError(13, "The process cannot access the file", str(target))
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    return tried


def test_a_file_that_somebody_reads_is_replaced_when_they_have_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "IS_WINDOWS", True)
    tried = refusing(monkeypatch, 2)
    files.replace_whole(tmp_path / "manifest.json", b"new")
    assert (tmp_path / "manifest.json").read_bytes() == b"new"
    assert len(tried) == 3


def test_a_file_that_may_not_be_replaced_is_refused_at_once_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "IS_WINDOWS", False)
    tried = refusing(monkeypatch, 1)
    with pytest.raises(PermissionError):
        files.replace_whole(tmp_path / "manifest.json", b"new")
    assert len(tried) == 1


def test_what_a_killed_process_left_is_not_in_the_way(tmp_path: Path) -> None:
    (tmp_path / f"pairs.parquet.{os.getpid()}.tmp").write_bytes(b"half")
    with files.replacing_whole(tmp_path / "pairs.parquet") as file:
        file.write(b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("pairs.parquet", b"new")]


def test_what_cannot_be_written_or_put_in_place_leaves_the_old_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ZeroDivisionError), files.replacing_whole(tmp_path / "old") as file:
        file.write(b"new" * (1 // 0))
    with pytest.raises(OSError, match="folder"), files.replacing_whole(tmp_path / "folder") as file:
        file.write(b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "old"]
    assert (tmp_path / "old").read_bytes() == b"old"

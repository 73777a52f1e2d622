"""A file is replaced in one step, also where the system refuses it while somebody reads the old one."""

from __future__ import annotations

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

"""Damaged, foreign and missing files are refused, named, and the message says how to rebuild."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askalike.errors import DamagedForumError
from askalike.index.vectors import VectorIndex


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    index = VectorIndex.create(tmp_path / "vectors", 4, applied=1, fingerprint="f")
    with index.writing() as writer:
        writer.put(np.arange(50), np.random.default_rng(0).standard_normal((50, 4)))
        writer.commit(index.cursor)
        writer.remove([3])
        writer.commit(index.cursor)
    return index.folder


def refused(folder: Path, match: str) -> None:
    with pytest.raises(DamagedForumError, match=match) as caught:
        VectorIndex(folder)
    assert "askalike reindex FORUM" in caught.value.hint


def only(folder: Path, pattern: str) -> Path:
    [path] = folder.glob(pattern)
    return path


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["segment", "dead"])
def test_a_truncated_file_is_refused(folder: Path, kind: str) -> None:
    path = only(folder, f"*.{kind}")
    content = path.read_bytes()
    for size, message in (
        (len(content) - 1, "bytes, expected"),
        (70, "bytes, expected"),
        (10, "cut off"),
        (0, "cut off"),
    ):
        path.write_bytes(content[:size])
        refused(folder, f"{path.name}.*{message}")
    path.write_bytes(content + b"\0")
    refused(folder, f"{path.name}.*bytes, expected")


@pytest.mark.parametrize("kind", ["segment", "dead"])
def test_a_missing_file_is_named(folder: Path, kind: str) -> None:
    path = only(folder, f"*.{kind}")
    path.unlink()
    refused(folder, f"{path.name} is not there")


@pytest.mark.parametrize("kind", ["segment", "dead"])
def test_a_foreign_file_is_refused(folder: Path, kind: str) -> None:
    path = only(folder, f"*.{kind}")
    path.write_bytes(b"PK\3\4" * 500)
    refused(folder, f"{path.name} is not a {kind} file of askalike")
    path.write_bytes(only(folder, "*.dead" if kind == "segment" else "*.segment").read_bytes())
    refused(folder, f"{path.name} is not a {kind} file of askalike")


def test_a_segment_of_another_index_is_refused(folder: Path, tmp_path: Path) -> None:
    other = VectorIndex.create(tmp_path / "other", 4, applied=1, fingerprint="f")
    with other.writing() as writer:
        writer.put(np.arange(50), np.random.default_rng(1).standard_normal((50, 4)))
        writer.commit(other.cursor)
    path = only(folder, "*.segment")
    path.write_bytes(only(other.folder, "*.segment").read_bytes())
    refused(folder, f"{path.name} is not the file that the manifest names")


@pytest.mark.parametrize(("position", "message"), [(10, "segment file"), (16, "format"), (20, "the manifest names")])
def test_a_changed_header_is_refused(folder: Path, position: int, message: str) -> None:
    path = only(folder, "*.segment")
    flip(path, position)
    refused(folder, f"{path.name}.*{message}")


@pytest.mark.parametrize(("kind", "position"), [("segment", 64), ("segment", 64 + 16 * 50), ("dead", 64)])
def test_changed_numbers_are_refused(folder: Path, kind: str, position: int) -> None:
    path = only(folder, f"*.{kind}")
    flip(path, position)
    refused(folder, f"{path.name} does not hold what was written")


def test_changed_vectors_are_found_by_a_check(folder: Path) -> None:
    VectorIndex(folder).check()
    path = only(folder, "*.segment")
    flip(path, path.stat().st_size - 1)
    with pytest.raises(DamagedForumError, match=f"{path.name} does not hold what was written"):
        VectorIndex(folder).check()


def rewrite(folder: Path, **changes: Any) -> None:
    path = folder / "mark.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def test_a_mark_that_cannot_be_read_is_refused(folder: Path) -> None:
    mark = folder / "mark.json"
    content = mark.read_bytes()
    for wrong, message in (
        (b"", "cannot be read"),
        (content[:40], "cannot be read"),
        (b"[]", "holds no manifest"),
    ):
        mark.write_bytes(wrong)
        refused(folder, message)
    mark.write_bytes(b"\xff\xfe")
    refused(folder, "cannot be read")


def test_an_index_of_another_format_is_refused(folder: Path) -> None:
    rewrite(folder, format=2)
    refused(folder, "format 2, expected")


def test_a_mark_without_its_fields_is_refused(folder: Path) -> None:
    rewrite(folder, segments=[{"file": {}}])
    refused(folder, "cannot be read")


def test_a_mark_cannot_name_files_outside_the_folder(folder: Path) -> None:
    entry = {"name": "../../etc/passwd", "rows": 1, "digest": ""}
    rewrite(folder, segments=[{"file": entry, "dead": None, "codes": None}])
    refused(folder, "passwd")


def test_dimensions_that_do_not_fit_are_refused(folder: Path) -> None:
    rewrite(folder, dimensions=5)
    refused(folder, "4 dimensions, expected 5")
    rewrite(folder, dimensions=0)
    refused(folder, "0 dimensions")


def test_creating_again_starts_from_nothing_even_over_damage(folder: Path) -> None:
    (folder / "mark.json").write_bytes(b"?")
    assert VectorIndex.create(folder, 4, applied=0, fingerprint="g").entries == 0
    assert list(folder.glob("*.segment")) == []


def test_a_damaged_segment_is_not_merged_into_a_sound_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.index.vector_segments.CHECKED_BYTES", -1)
    path = only(folder, "*.segment")
    flip(path, path.stat().st_size - 1)
    index = VectorIndex(folder)
    with index.writing() as writer:
        writer.put([99], np.ones((1, 4)))
        with pytest.raises(DamagedForumError, match=f"{path.name} does not hold what was written"):
            writer.commit(replace(index.cursor, is_complete=True))
    assert only(folder, "*.segment") == path

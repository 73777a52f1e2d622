"""``Forum.check`` sees what is damaged in a forum's folder, ``Forum.repair`` makes anew what can be; no more."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run
from tests.tiny_models import synonym_model

from askalike import Answer, Forum, Query, Question
from askalike.errors import ForumNotFoundError, ModelError
from askalike.store import ForumLayout, open_store, stored_faults

QUESTIONS = [
    Question(
        "wifi", "Wifi drops every evening", "since the update", tags=("home",), created=datetime(2020, 1, 1, tzinfo=UTC)
    ),
    Question("printer", "Printer offline", "it was silent"),
    Question("other", "Which keyboard to buy"),
    Question("again", "Wireless lost in the evening"),
]


def test_a_forum_that_nobody_may_write_to_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add(Question("1", "Wifi drops"))

    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert Forum.check(tmp_path / "f").findings == ()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a forum that has everything: an own model, vectors, pairs, answers, deletions."""
    path = tmp_path / "my.forum"
    synonym_model().save(tmp_path / "model")
    with Forum.create(path) as forum:
        forum.models.use_model(tmp_path / "model")
        forum.add([*QUESTIONS, Question("gone", "Wlan gone")])
        forum.store.add_answers([Answer("a1", "wifi", "Change the channel")])
        forum.edit(Question("printer", "Printer offline again"))
        forum.delete("gone")
        forum.pairs.advance(60)
    return path


def damage(path: Path) -> list[tuple[str, str]]:
    """Return part and path of all damage that a check finds."""
    return [(finding.part, finding.path) for finding in Forum.check(path).findings if finding.is_damage]


def found(path: Path) -> dict[str, list[tuple[str, float]]]:
    with Forum.open(path) as forum:
        return {
            ranker: [
                (identifier, round(score, 5))
                for identifier, score in forum.indexes.ranking(Query("wireless lost", ranker=ranker))
            ]
            for ranker in ("probability", "words", "meaning")
        }


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x55
    path.unlink()
    path.write_bytes(content)


def one(path: Path, pattern: str) -> Path:
    return next(iter(sorted(path.rglob(pattern))))


def contents(path: Path) -> dict[str, bytes]:
    return {
        file.relative_to(path).as_posix(): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and not file.name.endswith(("-shm", "-wal"))
    }


def test_a_sound_forum_has_no_finding_and_is_not_changed(path: Path) -> None:
    before = contents(path)
    report = Forum.check(path)
    assert (report.findings, report.is_sound, report.repaired) == ((), True, ())
    assert contents(path) == before
    assert Forum.repair(path).repaired == ()
    assert contents(path) == before


def test_what_is_not_indexed_yet_is_no_damage(path: Path) -> None:
    with closing(open_store(ForumLayout(path))) as archive:
        archive.put_questions([Question("late", "Wifi again"), Question("wifi", "Changed")])
        archive.put_questions((), ["other"])
    report = Forum.check(path)
    assert report.is_sound
    assert {(finding.part, "not indexed 3 questions" in finding.what) for finding in report.findings} == {
        ("words", True),
        ("vectors", True),
    }


def test_a_forum_that_was_only_made_is_sound(tmp_path: Path) -> None:
    Forum.create(tmp_path / "f").close()
    assert Forum.check(tmp_path / "f").is_sound
    with pytest.raises(ForumNotFoundError):
        Forum.check(tmp_path / "nothing")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE questions SET title = 'Wifi crops every evening' WHERE id = 'wifi'",
        "UPDATE questions SET score = 7 WHERE id = 'wifi'",
        "UPDATE questions SET body = CAST(x'ff00ff' AS TEXT) WHERE id = 'wifi'",
        "UPDATE answers SET body = 'Change the chancel'",
        "UPDATE questions SET created_us = 400000000000000000 WHERE id = 'wifi'",
    ],
)
def test_rows_that_are_not_what_was_written_are_named(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(ForumLayout(path).archive)) as connection, connection:
        connection.execute(statement)
    [finding] = Forum.check(path).findings
    assert finding.part == "archive"
    assert ("answer 'a1'" if "answers" in statement else "question 'wifi'") in finding.what
    assert "backup" in finding.mend


def test_an_archive_that_is_no_database_is_told_and_the_rest_is_looked_at(path: Path) -> None:
    ForumLayout(path).archive.write_bytes(b"damaged" * 1000)
    flip(one(path, "*.words"), 5)
    assert {part for part, _ in damage(path)} == {"archive", "words"}
    ForumLayout(path).archive.unlink()
    assert ("archive", "archive.sqlite") in damage(path)


@pytest.mark.parametrize(("pattern", "position"), [("*.words", 10), ("*.words", 70), ("*.words", -1), ("mark.json", 9)])
def test_damage_of_the_word_index_is_seen_and_mended(path: Path, pattern: str, position: int) -> None:
    before = found(path)
    flip(one(ForumLayout(path).lexical, pattern), position)
    assert {part for part, _ in damage(path)} == {"words"}
    report = Forum.repair(path)
    assert (report.repaired, report.is_sound) == (("words",), True)
    assert {ranker: [name for name, _ in hits] for ranker, hits in found(path).items()} == {
        ranker: [name for name, _ in hits] for ranker, hits in before.items()
    }


def test_an_index_that_lacks_a_question_or_has_one_more_is_seen(path: Path) -> None:
    with closing(sqlite3.connect(ForumLayout(path).archive)) as connection, connection:
        connection.execute("DELETE FROM changes WHERE id = 'other'")
        connection.execute("DELETE FROM questions WHERE id = 'other'")
    report = Forum.check(path)
    assert [finding.part for finding in report.findings] == ["words", "vectors"]
    assert all("though the archive does not hold them" in finding.what for finding in report.findings)
    assert Forum.repair(path).is_sound


def test_what_is_written_while_a_forum_is_checked_is_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Forum.open(path) as forum:
        forum.pairs.advance(60)

        def while_written(*arguments: Any) -> Iterator[str]:
            yield from stored_faults(*arguments)
            forum.add(Question("late", "Wifi drops at noon"))
            forum.delete("other")
            forum.pairs.advance(60)

        monkeypatch.setattr("askalike.forum.check.stored_faults", while_written)
        assert Forum.check(path).findings == ()


@pytest.mark.parametrize("pattern", ["*.segment", "current.json", "index/mark.json", "*/model/weights.safetensors"])
def test_damage_of_vectors_is_seen_and_mended(path: Path, pattern: str) -> None:
    before = found(path)["meaning"]
    target = one(ForumLayout(path).vectors, pattern)
    flip(target, target.stat().st_size - 1)
    assert {part for part, _ in damage(path)} == {"vectors"}
    report = Forum.repair(path)
    assert (report.repaired, report.is_sound) == (("words", "vectors"), True)
    assert found(path)["meaning"] == before


def test_damaged_codes_are_made_anew_without_encoding_a_question(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.index.nearest.UNCODED", 20)
    with Forum.open(path) as forum:
        forum.add([Question(f"q{number}", f"Wifi printer {number}", "silent evening") for number in range(60)])
    before = found(path)["meaning"]
    target = one(ForumLayout(path).vectors, "*.codes")
    segments = {file: file.stat().st_mtime_ns for file in path.rglob("*.segment")}
    flip(target, target.stat().st_size - 1)
    assert {part for part, _ in damage(path)} == {"vectors"}
    report = Forum.repair(path)
    assert (report.repaired, report.is_sound) == (("vectors",), True)
    assert found(path)["meaning"] == before
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*.segment")} == segments
    assert one(ForumLayout(path).vectors, "*.codes") != target


def test_vectors_that_nothing_names_any_more_are_seen(path: Path) -> None:
    (ForumLayout(path).vectors / "current.json").unlink()
    assert damage(path) == [("vectors", "vectors/current.json")]


def test_damage_of_the_pairs_is_seen_and_they_are_compared_again(path: Path) -> None:
    with Forum.open(path) as forum:
        before, _ = forum.pairs.page(0.0, 100)
    assert before
    flip(ForumLayout(path).pairs, 30)
    assert damage(path) == [("pairs", "pairs.sqlite")]
    assert Forum.repair(path).repaired == ("pairs",)
    with Forum.open(path) as forum:
        while forum.pairs.advance(60):
            pass
        assert forum.pairs.page(0.0, 100)[0] == before


def test_pairs_whose_tables_were_not_made_before_a_kill_or_a_full_disk_are_sound(path: Path) -> None:
    for file in path.glob("pairs.sqlite*"):
        file.unlink()
    ForumLayout(path).pairs.touch()
    assert damage(path) == []
    with Forum.open(path) as forum:
        while forum.pairs.advance(60):
            pass
        assert forum.pairs.page(0.0, 100)[0]


@pytest.mark.parametrize("name", ["weights.safetensors", "manifest.json"])
def test_a_damaged_model_is_put_back_from_the_copy_beside_its_vectors(path: Path, name: str) -> None:
    before = contents(ForumLayout(path).model)
    (ForumLayout(path).model / name).write_bytes(b"?")
    assert damage(path) == [("model", "model")]
    report = Forum.repair(path)
    assert (report.repaired, report.is_sound) == (("model",), True)
    assert contents(ForumLayout(path).model) == before


def test_a_model_whose_manifest_names_other_hashes_is_put_back_and_was_never_copied(path: Path) -> None:
    sets = sorted(ForumLayout(path).vectors.iterdir())
    before = contents(ForumLayout(path).model)
    manifest = ForumLayout(path).model / "manifest.json"
    described = json.loads(manifest.read_text(encoding="utf-8"))
    described["files"]["config.json"] = "0" * 64
    manifest.write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json is not what manifest\.json says"):
        Forum.open(path)
    assert sorted(ForumLayout(path).vectors.iterdir()) == sets
    assert (Forum.repair(path).is_sound, contents(ForumLayout(path).model)) == (True, before)


def test_files_of_others_are_named_and_stay(path: Path) -> None:
    (path / "letter.txt").write_text("dear", encoding="utf-8")
    (ForumLayout(path).vectors / "photos").mkdir()
    (path / "link").symlink_to(path.parent)
    report = Forum.check(path)
    assert report.is_sound
    assert [finding.path for finding in report.findings] == ["letter.txt", "link", "vectors/photos"]
    flip(one(path, "*.segment"), 70)
    Forum.repair(path)
    assert (path / "letter.txt").exists()
    assert (ForumLayout(path).vectors / "photos").is_dir()


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_folder_or_link_in_the_place_of_a_lock_is_mended(path: Path, kind: str) -> None:
    lock = ForumLayout(path).lock
    lock.unlink(missing_ok=True)
    if kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(path / "nothing")
    assert found(path)["words"], "who only searches needs no lock"
    assert damage(path) == [("files", "index.lock")]
    assert Forum.repair(path).repaired == ("lock index.lock",)
    assert lock.is_file() or not lock.exists()
    assert Forum.check(path).is_sound


def test_the_command_tells_damage_by_its_exit_code_and_as_json(run: Run, path: Path) -> None:
    fine = run("check", path)
    assert (fine.code, fine.out) == (0, "Everything is sound.\n")
    flip(one(path, "*.segment"), 70)
    damaged = run("check", path)
    assert damaged.code == 1
    assert "damage: vectors/" in damaged.out
    assert 'hint: run "askalike check FORUM --repair"' in damaged.out
    report = json.loads(run("check", path, "--json").out)
    assert (report["is_sound"], report["repaired"], report["findings"][0]["part"]) == (False, [], "vectors")
    repaired = run("check", path, "--repair")
    assert repaired.code == 0
    assert repaired.out.startswith("rebuilt: words, vectors")
    assert json.loads(run("check", path, "--json").out) == {
        "forum": str(path),
        "is_sound": True,
        "repaired": [],
        "findings": [],
    }
    assert run("check", path.parent / "nothing").code == 1


def test_a_restored_archive_lacks_its_indexes_and_is_sound(run: Run, path: Path, tmp_path: Path) -> None:
    restored = tmp_path / "restored.forum"
    restored.mkdir()
    assert run("backup", path, restored / "archive.sqlite").code == 0
    report = Forum.check(restored)
    assert (report.is_sound, [finding.part for finding in report.findings]) == (True, ["words"])
    assert run("search", restored, "printer", "--json").code == 0
    assert Forum.check(restored).findings == ()


def test_what_may_not_be_read_is_told_with_the_rights_to_check(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_bytes

    def refused(file: Path) -> bytes:
        if file.name == "mark.json":
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return read(file)

    monkeypatch.setattr(Path, "read_bytes", refused)
    report = Forum.check(path)
    assert {(finding.part, finding.mend) for finding in report.findings} == {
        ("words", "check the rights of the forum's folder"),
        ("vectors", "check the rights of the forum's folder"),
    }

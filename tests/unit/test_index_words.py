"""The word index: what is put is found, what is removed is gone, and the cursor says how far it has come."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from askalike.errors import DamagedForumError, ForumError
from askalike.index.words import FieldWeights, IndexEntry, WordIndex
from askalike.types import Filters

EQUAL = FieldWeights(1.0, 1.0)


@pytest.fixture
def index(tmp_path: Path) -> WordIndex:
    index = WordIndex.create(tmp_path / "lexical", applied=7, fingerprint="f")
    with index.writing() as writer:
        writer.put(IndexEntry(1, ["printer", "offline"], ["update"], ["Hardware"], 1_000))
        writer.put(IndexEntry(2, ["router"], ["printer", "and", "router", "/etc/hosts"], ["wifi"], 2_000, b"text"))
        writer.commit(replace(index.cursor, is_complete=True))
    return index


def found(index: WordIndex, *terms: str, filters: Filters | None = None) -> list[int]:
    return [num for num, _ in index.search(dict.fromkeys(terms, 1.0), EQUAL, 10, filters)]


def test_terms_are_found_in_title_and_body_exactly_as_they_were_put(index: WordIndex) -> None:
    assert found(index, "printer") == [1, 2]
    assert found(index, "/etc/hosts") == [2]
    assert found(index, "etc") == []
    assert found(index) == []


def test_given_entries_get_the_scores_that_a_search_gives_them(index: WordIndex) -> None:
    weights = {"printer": 2.0, "router": 1.0}
    scores = dict(index.search(weights, EQUAL, 10))
    assert index.scores(weights, EQUAL, [2]) == pytest.approx({2: scores[2]})
    assert index.scores(weights, EQUAL, [1, 2, 99]) == pytest.approx(scores)
    assert index.scores(weights, EQUAL, [*range(1, 500)]) == pytest.approx(scores)  # not looked up one by one
    assert (
        index.scores({"offline": 1.0}, EQUAL, [2])
        == index.scores({}, EQUAL, [1])
        == index.scores(weights, EQUAL, [])
        == {}
    )


def test_entries_that_satisfy_filters_are_told_counted_and_listed(index: WordIndex) -> None:
    def admitted(filters: Filters) -> tuple[set[int], int, list[int]]:
        return index.admitted([1, 2, 99], filters), index.count_admitted(filters), index.all_admitted(filters)

    assert admitted(Filters(tags=("hardware",))) == ({1}, 1, [1])
    assert admitted(Filters(before=datetime.fromtimestamp(0.002, UTC))) == ({1}, 1, [1])
    assert admitted(Filters(tags=("hardware", "wifi"))) == (set(), 0, [])
    assert admitted(Filters()) == ({1, 2, 99}, 2, [1, 2])
    assert admitted(Filters(tags=("hard",))) == (set(), 0, []), "tags are whole"


def test_an_index_of_another_format_is_refused(index: WordIndex) -> None:
    mark = index.folder / "mark.json"
    mark.write_text(json.dumps(json.loads(mark.read_text(encoding="utf-8")) | {"format": 2}), encoding="utf-8")
    with pytest.raises(DamagedForumError, match="format 2"):
        WordIndex(index.folder)


def test_creating_again_starts_from_nothing(index: WordIndex) -> None:
    assert WordIndex.create(index.folder, applied=0, fingerprint="g").entries == 0


@pytest.mark.parametrize(
    "mark", ['{"cursor": {"applied": "7", "scanned": 0, "is_complete": true, "fingerprint": "f"}}', "[" * 99_999]
)
def test_a_mark_that_is_none_is_damage(index: WordIndex, mark: str) -> None:
    (index.folder / "mark.json").write_text(mark, encoding="utf-8")
    with pytest.raises(DamagedForumError, match=r"mark\.json"):
        WordIndex(index.folder)


def words_of(index: WordIndex) -> Path:
    [path] = index.folder.glob("*.words")
    return path


def test_a_file_of_the_index_that_has_gone_is_damage(index: WordIndex) -> None:
    path = words_of(index)
    path.unlink()
    with pytest.raises(DamagedForumError, match=f"{path.name} is not there"):
        WordIndex(index.folder)
    assert found(index, "printer") == [1, 2], "what was open before goes on answering"


def test_a_disk_that_takes_no_more_is_named_and_what_was_there_is_found(
    index: WordIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, content: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for place in ("segments.replace_whole", "postings.write_file"):
        with monkeypatch.context() as patched, index.writing() as writer:
            patched.setattr(f"askalike.index.{place}", lambda *_, **__: full(index.folder, b""))
            writer.put(IndexEntry(3, ["scanner"], []))
            with pytest.raises(ForumError, match=r"cannot be written: its disk is full"):
                writer.commit(index.cursor)
        assert found(index, "printer") == found(WordIndex(index.folder), "printer") == [1, 2]
        assert found(index, "scanner") == []
    with index.writing() as writer:
        writer.commit(index.cursor)
    assert len(list(index.folder.glob("*.words"))) == 1, "what was begun is deleted"


def test_a_folder_that_cannot_be_written_is_not_called_busy(index: WordIndex) -> None:
    lock = index.folder / "write.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    with pytest.raises(ForumError, match="cannot be locked"), index.writing():
        pass


def test_a_tag_with_half_a_surrogate_pair_finds_nothing(index: WordIndex) -> None:
    assert found(index, "printer", filters=Filters(tags=("\udcff",))) == []


def test_only_files_of_an_index_are_deleted_with_it(index: WordIndex) -> None:
    letter = index.folder / "letter.txt"
    letter.write_text("mine", encoding="utf-8")
    with pytest.raises(ForumError, match=r"letter\.txt is not a file of the word index"):
        WordIndex.create(index.folder, applied=0, fingerprint="g")
    assert letter.read_text(encoding="utf-8") == "mine"
    letter.rename(index.folder.parent / "letter.txt")
    assert WordIndex.create(index.folder, applied=0, fingerprint="g").entries == 0


def test_an_index_behind_a_link_is_not_deleted(index: WordIndex) -> None:
    elsewhere = index.folder.rename(index.folder.parent / "elsewhere")
    index.folder.symlink_to(elsewhere)
    with pytest.raises(ForumError, match="is a link, and would be deleted"):
        WordIndex.create(index.folder, applied=0, fingerprint="g")
    assert WordIndex(index.folder).entries == 2


def test_a_snapshot_stays_as_it_was(index: WordIndex) -> None:
    before = index.snapshot()
    with index.writing() as writer:
        writer.put(IndexEntry(3, ["printer"], []))
        writer.commit(replace(index.cursor, applied=9))
    weights = {"printer": 1.0}
    assert [before.entries, before.cursor.applied, before.document_frequencies(["printer"])["printer"]] == [2, 7, 2]
    assert sorted(before.scores(weights, EQUAL, [1, 2, 3])) == sorted(dict(before.search(weights, EQUAL, 9))) == [1, 2]
    assert [index.entries, index.cursor.applied, index.document_frequencies(["printer"])["printer"]] == [3, 9, 3]


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]"])
def test_a_mark_that_is_damaged_while_the_index_is_open_is_told_as_damage(index: WordIndex, content: bytes) -> None:
    (index.folder / "mark.json").write_bytes(content)
    for look in (index.refresh, index.reopen):
        with pytest.raises(DamagedForumError, match=r"reindex|open the forum again"):
            look()
    assert found(index, "printer") == [1, 2], "the state before goes on answering"


def test_what_the_system_does_not_let_be_read_is_not_called_damaged(
    index: WordIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    for look in (index.refresh, lambda: WordIndex(index.folder)):
        with pytest.raises(ForumError, match="Permission denied") as caught:
            look()
        assert not isinstance(caught.value, DamagedForumError)
        assert "reindex" not in caught.value.hint


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x55
    put(path, content)


def put(path: Path, content: bytes) -> None:
    """Replace a file: what has mapped the one before into memory keeps it."""
    path.unlink()
    path.write_bytes(content)


def test_a_changed_byte_anywhere_in_a_file_is_found(index: WordIndex) -> None:
    with index.writing() as writer:
        writer.remove([1])
        writer.put(IndexEntry(4, ["scanner"], ["jam"]))
        writer.commit(replace(index.cursor, is_complete=False))  # so that nothing is merged
    for path in (*index.folder.glob("*.words"), *index.folder.glob("*.dead")):
        content = path.read_bytes()
        for position in range(0, len(content), 7):
            flip(path, position)
            with pytest.raises(DamagedForumError, match=r"cannot be read.*askalike reindex"):
                WordIndex(index.folder).check()
            put(path, content)
    WordIndex(index.folder).check()


def test_a_file_in_the_place_of_another_is_found_though_both_are_whole(index: WordIndex) -> None:
    with index.writing() as writer:
        writer.put(IndexEntry(3, ["scanner", "offline"], ["jam"], ["Hardware"], 1_000))
        writer.commit(replace(index.cursor, is_complete=False))
    path, other = sorted(index.folder.glob("*.words"))
    put(path, other.read_bytes())
    with pytest.raises(DamagedForumError, match="not the file that the manifest names"):
        WordIndex(index.folder)


def test_a_text_that_was_damaged_is_not_what_was_put(index: WordIndex) -> None:
    assert index.texts([1, 2, 99]) == {2: b"text"}
    path = words_of(index)
    put(path, path.read_bytes()[:-1] + b"T")
    with pytest.raises(DamagedForumError, match="its sum differs"):
        WordIndex(index.folder)


def test_entries_that_are_added_one_at_a_time_are_merged(index: WordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.index.words.EXACT", 0)
    monkeypatch.setattr("askalike.index.words.DRIFT", 10.0)
    for num in range(10, 50):
        with index.writing() as writer:
            writer.put(IndexEntry(num, ["antenna"], []))
            writer.commit(index.cursor)
        assert len(list(index.folder.glob("*.words"))) <= 6
    assert len(found(index, "antenna")) == 10
    assert index.entries == 42


def test_what_was_put_after_the_last_commit_is_dropped_at_the_end(index: WordIndex) -> None:
    with index.writing() as writer:
        writer.put(IndexEntry(3, ["antenna"], []))
        writer.commit(index.cursor)
        writer.put(IndexEntry(4, ["antenna"], []))
        writer.remove([1])
    assert found(index, "antenna") == [3]
    with index.writing() as writer:
        writer.commit(index.cursor)
    assert found(index, "antenna") == [3]
    assert found(index, "printer") == [1, 2]


def test_a_damaged_segment_is_not_merged_into_a_sound_one(index: WordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.index.postings.CHECKED_BYTES", -1)  # as of a file that is too large to be compared
    path = words_of(index)
    flip(path, path.stat().st_size - 2)  # of a text
    opened = WordIndex(index.folder)
    with opened.writing() as writer:
        writer.put(IndexEntry(3, ["scanner"], []))
        with pytest.raises(DamagedForumError, match=f"{path.name} does not hold what was written"):
            writer.commit(opened.cursor)
    assert words_of(index) == path

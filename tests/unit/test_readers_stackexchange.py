"""Stack Exchange dumps: kinds of posts, acceptance, deletion, links, and the 7z that they come in."""

from __future__ import annotations

import io
import tempfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

import py7zr
import pytest

from askalike.errors import DamagedInputError, FormatError, UnsafeInputError
from askalike.readers.frame import Limits, ReadContext, ReadOptions
from askalike.readers.stackexchange import StackExchangeReader
from askalike.types import Link, Question, Record

READER = StackExchangeReader()


def row(**attributes: object) -> str:
    return "  <row " + " ".join(f"{name}={quoteattr(str(value))}" for name, value in attributes.items()) + " />\n"


def posts(*rows: str) -> str:
    return '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<posts>\n' + "".join(rows) + "</posts>"


def links(*rows: str) -> str:
    return '<?xml version="1.0" encoding="utf-8"?>\n<postlinks>\n' + "".join(rows) + "</postlinks>"


def question(number: int, **more: object) -> str:
    return row(Id=number, PostTypeId=1, **({"Title": f"Title {number}", "Body": "<p>text</p>"} | more))


def answer(number: int, parent: int, **more: object) -> str:
    return row(Id=number, PostTypeId=2, ParentId=parent, **({"Body": "<p>answer</p>"} | more))


def read(path: Path, options: ReadOptions | None = None) -> tuple[list[Record], ReadContext]:
    context = ReadContext(options or ReadOptions())
    records = list(READER.read(path, context))
    assert context.records_in == len(records) + context.rejects.count
    return records, context


def read_posts(tmp_path: Path, *rows: str) -> tuple[list[Record], ReadContext]:
    (tmp_path / "Posts.xml").write_text(posts(*rows), encoding="utf-8")
    return read(tmp_path / "Posts.xml")


def site(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "Posts.xml").write_text(
        posts(question(1, AcceptedAnswerId=2), answer(2, 1), question(3)), encoding="utf-8"
    )
    rows = [row(Id=1, PostId=3, RelatedPostId=1, LinkTypeId=3), row(Id=2, PostId=1, RelatedPostId=3, LinkTypeId=1)]
    (folder / "PostLinks.xml").write_text(links(*rows), encoding="utf-8")
    return folder


def test_deleted_posts_and_answers_to_deleted_questions_are_left_out(tmp_path: Path) -> None:
    gone = {"DeletionDate": "2020-01-01T00:00:00"}
    records, context = read_posts(tmp_path, question(1, **gone), answer(2, 1), question(3), answer(4, 3, **gone))
    assert [record.id for record in records if not isinstance(record, Link)] == ["3"]
    assert context.skipped == {"deleted post": 2, "answer to a deleted question": 1}


def test_a_name_comes_before_a_number_as_author(tmp_path: Path) -> None:
    records, _ = read_posts(tmp_path, question(1, OwnerUserId=7), question(2, OwnerUserId=7, OwnerDisplayName="Ada"))
    assert [record.author for record in records if isinstance(record, Question)] == ["7", "Ada"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row(PostTypeId=1, Title="no id"), "no Id"),
        (row(Id=7, PostTypeId=1, Title=" ", Body=" "), "title and body are empty"),
        (row(Id=7, PostTypeId=1, Body="<p></p>"), "the title is empty, and the body is html without text"),
        (row(Id=7, PostTypeId=2, Body="x"), "no ParentId"),
        (row(Id=7, PostTypeId=2, ParentId=1, Body=""), "the answer is empty"),
        (row(Id=7, PostTypeId="x"), "the PostTypeId is 'x'"),
    ],
)
def test_a_post_that_cannot_be_used_is_rejected_with_its_line(tmp_path: Path, bad: str, reason: str) -> None:
    records, context = read_posts(tmp_path, question(1), bad)
    assert len(records) == 1
    assert (context.rejects.first[0].file, context.rejects.first[0].line) == ("Posts.xml", 4)
    assert context.rejects.first[0].reason.startswith(reason)


def test_links_are_duplicates_or_related_or_rejected(tmp_path: Path) -> None:
    folder = site(tmp_path / "site")
    bad = [row(Id=1, PostId=3, RelatedPostId=1, LinkTypeId=9), row(Id=2, PostId=3, RelatedPostId=3, LinkTypeId=3)]
    records, _ = read(folder)
    assert records[-2:] == [Link("3", "1", "duplicate"), Link("1", "3", "related")]
    (folder / "PostLinks.xml").write_text(links(*bad, row(Id=4, PostId=3)), encoding="utf-8")
    _, context = read(folder)
    assert [reject.line for reject in context.rejects.first] == [3, 4, 5]


def test_a_folder_without_links_says_so(tmp_path: Path) -> None:
    notices: list[str] = []
    folder = site(tmp_path / "site")
    (folder / "PostLinks.xml").unlink()
    list(READER.read(folder, ReadContext(notice=notices.append)))
    assert any("marks of duplicates are not known" in text for text in notices)


def test_a_file_of_another_root_is_not_a_dump(tmp_path: Path) -> None:
    (tmp_path / "Posts.xml").write_text("<comments><row/></comments>")
    assert not READER.matches(tmp_path / "Posts.xml")
    with pytest.raises(FormatError, match="begins with <comments>, expected <posts>"):
        read(tmp_path / "Posts.xml")


def test_memory_does_not_grow_with_the_dump(tmp_path: Path) -> None:
    with (tmp_path / "Posts.xml").open("w", encoding="utf-8") as file:
        file.write("<posts>\n")
        for number in range(1, 4_001, 2):
            file.write(question(number, Body="x" * 3_000, AcceptedAnswerId=number + 1) + answer(number + 1, number))
        file.write("</posts>")
    tracemalloc.start()
    try:
        count = sum(1 for _ in READER.read(tmp_path / "Posts.xml", ReadContext()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 4_000
    assert peak < 2 << 20


def packed(path: Path, members: dict[str, bytes]) -> Path:
    with py7zr.SevenZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writef(io.BytesIO(content), name)
    return path


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make the folder for temporary files a known one, which has to be empty afterwards."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("private")
def test_a_7z_reads_like_its_folder_and_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = site(tmp_path / "site")
    members = {path.name: path.read_bytes() for path in folder.iterdir()} | {"Users.xml": b"<users/>"}
    archive = packed(tmp_path / "site.7z", members)
    seen: list[int] = []
    assert READER.matches(archive)
    assert list(READER.read(archive, ReadContext(advance=seen.append))) == read(folder)[0]
    assert sum(seen) == READER.size_bytes(archive)


@pytest.mark.usefixtures("private")
@pytest.mark.parametrize("name", ["/tmp/Posts.xml", "a/../../Posts.xml", "C:/Posts.xml", "..\\Posts.xml"])
def test_a_7z_with_a_name_that_leads_outside_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(tmp_path / "site.7z", {"Posts.xml": posts(question(1)).encode()})
    listed = py7zr.SevenZipFile.list
    monkeypatch.setattr(  # py7zr refuses to write such names, so the list is changed as it is read
        py7zr.SevenZipFile, "list", lambda self: [replace(item, filename=name) for item in listed(self)]
    )
    with pytest.raises(UnsafeInputError, match="which leads outside"):
        read(archive)
    assert not (tmp_path.parent / "Posts.xml").exists()


@pytest.mark.usefixtures("private")
def test_a_7z_with_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "Posts.xml").symlink_to("/etc/hostname")
    with py7zr.SevenZipFile(tmp_path / "site.7z", "w") as archive:
        archive.write(tmp_path / "link" / "Posts.xml", "Posts.xml")
    with pytest.raises(UnsafeInputError, match=r"symbolic link, 'Posts\.xml'"):
        read(tmp_path / "site.7z")


@pytest.mark.usefixtures("private")
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(archive_members=1), "lists 2 members, at most 1"),
        (Limits(archive_unpacked_bytes=1000), r"unpacks to more than 1,000 bytes"),
        (Limits(archive_ratio=3.0, archive_free_bytes=0), r"unpacks to more than 3 times its size"),
    ],
)
def test_a_7z_beyond_a_limit_is_refused(tmp_path: Path, limits: Limits, message: str) -> None:
    members = {"Posts.xml": posts(question(1, Body="x" * 100_000)).encode(), "Users.xml": b"<users/>"}
    archive = packed(tmp_path / "site.7z", members)
    with pytest.raises(UnsafeInputError, match=message):
        read(archive, ReadOptions(limits=limits))


@pytest.mark.usefixtures("private")
def test_a_7z_that_lies_about_its_size_is_stopped_while_it_unpacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(tmp_path / "site.7z", {"Posts.xml": posts(question(1)).encode()})
    listed = py7zr.SevenZipFile.list
    monkeypatch.setattr(
        py7zr.SevenZipFile, "list", lambda self: [replace(item, uncompressed=10) for item in listed(self)]
    )
    with pytest.raises(UnsafeInputError, match="more bytes than its list of members says"):
        read(archive)


@pytest.mark.usefixtures("private")
@pytest.mark.parametrize("keep", [6, 60, -1])
def test_a_7z_that_is_cut_off_is_damaged(tmp_path: Path, keep: int) -> None:
    archive = packed(tmp_path / "site.7z", {"Posts.xml": posts(question(1)).encode()})
    archive.write_bytes(archive.read_bytes()[:keep])
    with pytest.raises(DamagedInputError, match=r"site\.7z: the archive is truncated or damaged"):
        read(archive)


@pytest.mark.usefixtures("private")
def test_a_7z_without_posts_or_with_two_sites_is_no_dump(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds no Posts\.xml"):
        read(packed(tmp_path / "a.7z", {"Users.xml": b"<users/>"}))
    with pytest.raises(FormatError, match=r"more than one Posts\.xml"):
        read(packed(tmp_path / "b.7z", {"x/Posts.xml": b"<posts/>", "y/Posts.xml": b"<posts/>"}))


@pytest.mark.usefixtures("private")
def test_a_7z_with_a_password_is_not_read(tmp_path: Path) -> None:
    with py7zr.SevenZipFile(tmp_path / "a.7z", "w", password="secret") as archive:
        archive.writestr(posts(question(1)), "Posts.xml")
    with pytest.raises(FormatError, match="needs a password"):
        read(tmp_path / "a.7z")

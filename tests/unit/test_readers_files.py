"""Opening files: lines, gzip, progress, limits, links that lead outside."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path

import pytest

from askalike.errors import DamagedInputError, FormatError, InputError, UnsafeInputError
from askalike.readers.detection import READERS
from askalike.readers.files import (
    first_bytes,
    folder_members,
    member,
    needed_file,
    plain_suffix,
    read_blocks,
    read_lines,
    stored_file,
    text_lines,
)
from askalike.readers.frame import Limits, ReadContext, ReadOptions

LAYOUTS: dict[str, tuple[str, str]] = {
    "semeval": ("dev.xml", '<?xml version="1.0"?>\n<xml>\n<OrgQuestion ORGQ_ID="Q1"></OrgQuestion></xml>'),
    "yahoo": ("FullOct2007.xml", '<ystfeed>\n<vespaadd><document type="wisdom"></document></vespaadd></ystfeed>'),
    "yahoo-liveqa": ("liveqa.tsv", "20130824170310AAuRdbx\tBooks\tArts\t2013-08-25\tWhy?\tWell.\n"),
    "yahoo-threads": ("threads.csv", "subject,content,bestanswer,ans0\nb'Why?',,b'So.',b'So.'\n"),
    "askubuntu": ("text_tokenized.txt", "9\thow do i ?\tlike so .\n"),
}


def lines(path: Path, line_bytes: int = 1 << 20) -> list[tuple[int, bytes]]:
    return list(read_lines(path, path.name, ReadContext(ReadOptions(limits=Limits(line_bytes=line_bytes)))))


@pytest.mark.parametrize("content", [b"a\nb", b"a\nb\n", b"\xef\xbb\xbfa\nb\n"])
def test_lines_are_numbered_from_one_without_a_byte_order_mark(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert lines(path) == [(1, b"a"), (2, b"b")]


def test_gzip_is_unpacked_and_progress_counts_the_stored_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"line\n" * 100_000))
    seen: list[int] = []
    assert len(list(read_lines(path, "a.txt.gz", ReadContext(advance=seen.append)))) == 100_000
    assert sum(seen) == path.stat().st_size


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    for name, content in (("a.txt", b""), ("a.txt.gz", gzip.compress(b""))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DamagedInputError, match=f"{name} is empty"):
            lines(tmp_path / name)


def test_a_gzip_file_that_is_cut_off_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\n" % n for n in range(200_000)))[:-200])
    with pytest.raises(DamagedInputError, match=r"a\.gz, line [1-9]\d*: the gzip file ends too early"):
        lines(path)


@pytest.mark.parametrize("content", [b"not gzip at all", gzip.compress(b"x", mtime=0)[:10] + b"\xff" * 30])
def test_a_gzip_file_that_is_none_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    with pytest.raises(DamagedInputError, match=r"a\.gz, line 1: damaged gzip data"):
        lines(path)
    assert first_bytes(path) == b""


def test_a_line_without_end_in_a_small_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b"ok\n" + b"x" * 20_000_000))
    with pytest.raises(DamagedInputError, match=r"bomb\.jsonl\.gz, line 2: a line longer than 1,048,576 bytes"):
        lines(path)


@pytest.mark.parametrize(
    ("name", "limits", "size"),
    [
        ("bomb.jsonl.gz", Limits(archive_unpacked_bytes=9_000_000), "more than 9,000,000 bytes"),
        ("bomb.xml.bz2", Limits(archive_free_bytes=9_000_000), "more than 200 times its size"),
    ],
)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused_on_the_way(
    tmp_path: Path, name: str, limits: Limits, size: str
) -> None:
    path = tmp_path / name
    path.write_bytes((gzip.compress if name.endswith(".gz") else bz2.compress)(bytes(12_000_000)))
    sizes: list[int] = []
    with pytest.raises(UnsafeInputError, match=f"{name} unpacks to {size}") as caught:
        sizes.extend(map(len, read_blocks(path, name, ReadContext(ReadOptions(limits=limits)))))
    assert sum(sizes) <= 9_000_000
    assert caught.value.hint == "if you trust it, unpack it and give what was in it"


def test_a_file_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened: No such file"):
        lines(tmp_path / "none")


def test_a_link_inside_a_folder_that_leads_outside_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "forum"
    folder.mkdir()
    (tmp_path / "secret.json").write_text("{}")
    (folder / "a.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(UnsafeInputError, match="leads out of the folder"):
        member(folder, "a.json")
    with pytest.raises(UnsafeInputError, match="leads out of the folder"):
        folder_members(folder, ".json")


def test_a_link_that_stays_inside_its_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "a.json").symlink_to("real.json")
    assert member(tmp_path, "none.json", "a.json") == tmp_path / "a.json"


@pytest.mark.parametrize("target", ["a.json", "gone.json"])
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, target: str) -> None:
    (tmp_path / "a.json").symlink_to(tmp_path / target)
    for find in (member, folder_members):
        with pytest.raises(DamagedInputError, match=r"a\.json is a symbolic link that leads nowhere"):
            find(tmp_path, "a.json" if find is member else ".json")


def test_a_pipe_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a device, a pipe or a socket"):
        lines(tmp_path / "pipe")


def test_the_ending_is_seen_through_gz() -> None:
    assert [plain_suffix(Path(name)) for name in ("a.JSONL.GZ", "a.tsv", "a.gz", "a")] == [".jsonl", ".tsv", "", ""]


def test_lines_lose_their_ends_and_blank_ones_keep_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\n\r\n \ntwo\xc3\xa9")
    assert list(text_lines(file, "lines.txt", ReadContext())) == [(1, "one"), (4, "twoé")]
    file.write_bytes(b"one\ntw\xff\n")
    with pytest.raises(DamagedInputError, match=r"lines.txt, line 2: not UTF-8 at byte 3 of the line"):
        list(text_lines(file, "lines.txt", ReadContext()))


def test_a_small_bzip2_file_that_unpacks_to_much_is_handed_on_in_small_blocks(tmp_path: Path) -> None:
    file = tmp_path / "zeros.bz2"
    file.write_bytes(bz2.compress(bytes(3_000_000)))
    sizes = [len(block) for block in read_blocks(file, file.name, ReadContext())]
    assert sum(sizes) == 3_000_000
    assert max(sizes) <= 1 << 18
    assert first_bytes(file, 10) == bytes(10)
    assert first_bytes(tmp_path / "gone.bz2") == b""


def test_released_files_are_found_plain_or_packed(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(b"")
    assert stored_file(tmp_path, "a.txt") == tmp_path / "a.txt.gz"
    assert stored_file(tmp_path, "b.txt") is None
    with pytest.raises(FormatError, match=r"lacks b.txt \(or b.txt.gz\) \(fetch it\)"):
        needed_file(tmp_path, "b.txt", "fetch it")


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_layout_is_recognised_by_its_own_reader_alone(tmp_path: Path, name: str) -> None:
    file_name, content = LAYOUTS[name]
    file = tmp_path / file_name
    file.write_text(content, encoding="utf-8")
    matching = {reader.name for reader in READERS.values() if reader.matches(file)}
    assert matching - {"jsonl", "table"} == {name}  # those two are general: they come last
    assert READERS[name].size_bytes(file) == file.stat().st_size

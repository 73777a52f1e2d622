"""Opening files: lines, gzip, progress, limits, links that lead outside."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path

import pytest

from askalike.errors import DamagedInputError, InputError, UnsafeInputError
from askalike.readers.files import first_bytes, folder_members, joined_blocks, member, plain_suffix, read_lines
from askalike.readers.frame import Limits, ReadContext, ReadOptions


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
    ("name", "limits", "found"),
    [
        ("bomb.jsonl.gz", Limits(archive_unpacked_bytes=9_000_000), "more than 9,000,000 bytes"),
        ("bomb.xml.bz2", Limits(archive_free_bytes=9_000_000), "more than 200 times its size"),
    ],
)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused_on_the_way(
    tmp_path: Path, name: str, limits: Limits, found: str
) -> None:
    path = tmp_path / name
    path.write_bytes((gzip.compress if name.endswith(".gz") else bz2.compress)(b"{}\n" * 4_000_000))
    sizes: list[int] = []
    with pytest.raises(UnsafeInputError, match=f"{name} unpacks to {found}") as caught:
        sizes.extend(map(len, joined_blocks([path], ReadContext(ReadOptions(limits=limits)))))
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

"""What the research formats share: lines, joined and bzip2 blocks, released files by name, one table of readers."""

from __future__ import annotations

import bz2
from pathlib import Path

import pytest

from askalike.errors import DamagedInputError, FormatError, UnsafeInputError
from askalike.readers.detection import READERS
from askalike.readers.files import first_bytes, joined_blocks, needed_file, stored_file, text_lines
from askalike.readers.frame import ReadContext

LAYOUTS: dict[str, tuple[str, str]] = {
    "semeval": ("dev.xml", '<?xml version="1.0"?>\n<xml>\n<OrgQuestion ORGQ_ID="Q1"></OrgQuestion></xml>'),
    "yahoo": ("FullOct2007.xml", '<ystfeed>\n<vespaadd><document type="wisdom"></document></vespaadd></ystfeed>'),
    "yahoo-liveqa": ("liveqa.tsv", "20130824170310AAuRdbx\tBooks\tArts\t2013-08-25\tWhy?\tWell.\n"),
    "yahoo-threads": ("threads.csv", "subject,content,bestanswer,ans0\nb'Why?',,b'So.',b'So.'\n"),
    "askubuntu": ("text_tokenized.txt", "9\thow do i ?\tlike so .\n"),
}


def test_lines_lose_their_ends_and_blank_ones_keep_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\n\r\n \ntwo\xc3\xa9")
    assert list(text_lines(file, "lines.txt", ReadContext())) == [(1, "one"), (4, "twoé")]
    file.write_bytes(b"one\ntw\xff\n")
    with pytest.raises(DamagedInputError, match=r"lines.txt, line 2: byte 3 of it is not UTF-8"):
        list(text_lines(file, "lines.txt", ReadContext()))


def test_a_small_bzip2_file_that_unpacks_to_much_is_handed_on_in_small_blocks(tmp_path: Path) -> None:
    file = tmp_path / "zeros.bz2"
    file.write_bytes(bz2.compress(bytes(3_000_000)))
    sizes = [len(block) for block in joined_blocks([file, file], ReadContext())]
    assert sum(sizes) == 6_000_000
    assert max(sizes) <= 1 << 18
    assert first_bytes(file, 10) == bytes(10)
    assert first_bytes(tmp_path / "gone.bz2") == b""


def test_released_files_are_found_plain_or_packed_and_never_outside(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "a.txt.gz").write_bytes(b"")
    assert stored_file(folder, "a.txt") == folder / "a.txt.gz"
    assert stored_file(folder, "b.txt") is None
    with pytest.raises(FormatError, match=r"set lacks b.txt \(or b.txt.gz\) \(fetch it\)"):
        needed_file(folder, "b.txt", "fetch it")
    (tmp_path / "secret.txt").write_text("x", encoding="utf-8")
    (folder / "b.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(UnsafeInputError, match="leads out of the folder"):
        stored_file(folder, "b.txt")


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_layout_is_recognised_by_its_own_reader_alone(tmp_path: Path, name: str) -> None:
    file_name, content = LAYOUTS[name]
    file = tmp_path / file_name
    file.write_text(content, encoding="utf-8")
    matching = {reader.name for reader in READERS.values() if reader.matches(file)}
    assert matching - {"jsonl", "table"} == {name}  # those two are general: they come last
    assert READERS[name].size_bytes(file) == file.stat().st_size

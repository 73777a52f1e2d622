"""Word vectors are read from files of every format and written; damaged files are refused with file and place."""

from __future__ import annotations

import gzip
import importlib
import struct
from pathlib import Path

import numpy as np
import pytest

from askalike.errors import DamagedInputError, FormatError, InputError, SettingError
from askalike.models.vocabulary import Vocabulary
from askalike.training.vector_files import VECTOR_FORMATS, VectorFormat, read_vectors, write_word2vec_text

TEXT = b"3 2\ncat 1 2\ndog -0.5 1e-3\ncaf\xc3\xa9 3 4\n"
GLOVE = TEXT.split(b"\n", 1)[1]
ROWS: dict[str, list[float]] = {"cat": [1, 2], "dog": [-0.5, 1e-3], "caf\xe9": [3, 4]}


def binary(rows: dict[str, list[float]], end: bytes = b"\n", header: bytes | None = None) -> bytes:
    first = header if header is not None else f"{len(rows)} 2\n".encode()
    return first + b"".join(word.encode() + b" " + struct.pack("<2f", *row) + end for word, row in rows.items())


FILES: dict[VectorFormat, bytes] = {"word2vec-text": TEXT, "word2vec-binary": binary(ROWS), "glove": GLOVE}


def saved(folder: Path, content: bytes, name: str = "vectors") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_every_format_has_a_file_in_these_tests() -> None:
    assert set(FILES) == set(VECTOR_FORMATS)


@pytest.mark.parametrize("file_format", FILES)
def test_all_words_are_read_in_the_order_of_the_file(tmp_path: Path, file_format: VectorFormat) -> None:
    found = read_vectors(saved(tmp_path, FILES[file_format]), file_format)
    assert found.words == tuple(ROWS)
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, np.array(list(ROWS.values()), np.float32))
    assert found.record_count == 3


@pytest.mark.parametrize("file_format", FILES)
def test_gzipped_files_are_unpacked(tmp_path: Path, file_format: VectorFormat) -> None:
    path = saved(tmp_path, gzip.compress(FILES[file_format]), "vectors.gz")
    assert read_vectors(path, file_format).words == tuple(ROWS)


@pytest.mark.parametrize("file_format", FILES)
def test_only_wanted_words_are_kept(tmp_path: Path, file_format: VectorFormat) -> None:
    path = saved(tmp_path, FILES[file_format])
    found = read_vectors(path, file_format, wanted=Vocabulary(["caf\xe9", "horse"]))
    assert (found.words, found.vectors.tolist(), found.record_count) == (("caf\xe9",), [[3, 4]], 3)


def test_binary_records_without_line_feeds_are_read(tmp_path: Path) -> None:
    assert read_vectors(saved(tmp_path, binary(ROWS, end=b"")), "word2vec-binary").words == tuple(ROWS)


def test_binary_records_that_cross_the_blocks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("askalike.training.vector_files")
    monkeypatch.setattr(module, "_BLOCK_BYTES", 5)
    found = read_vectors(saved(tmp_path, FILES["word2vec-binary"]), "word2vec-binary")
    np.testing.assert_array_equal(found.vectors, np.array(list(ROWS.values()), np.float32))


def test_line_ends_of_other_systems_and_spaces_at_the_end_do_no_harm(tmp_path: Path) -> None:
    path = saved(tmp_path, TEXT.replace(b"\n", b" \r\n"))
    assert read_vectors(path, "word2vec-text").words == tuple(ROWS)


def test_words_of_several_parts_are_read_whole(tmp_path: Path) -> None:
    assert read_vectors(saved(tmp_path, b"a 1 2\n. . . 3 4\n"), "glove").words == ("a", ". . .")


def test_what_gensim_writes_is_read_with_the_same_bits(tmp_path: Path) -> None:
    keyed = importlib.import_module("gensim.models.keyedvectors").KeyedVectors(5)
    vectors = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    keyed.add_vectors([f"word{number}" for number in range(20)], vectors)
    for file_format, is_binary in (("word2vec-text", False), ("word2vec-binary", True)):
        keyed.save_word2vec_format(str(tmp_path / "vectors"), binary=is_binary)
        found = read_vectors(tmp_path / "vectors", file_format)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.vectors, vectors)


def test_what_is_written_is_read_back_with_the_same_bits(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["caf\xe9", "c++", "22.04"])
    vectors = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32) * np.float32(1e-20)
    path = saved(tmp_path, b"what was there before")
    write_word2vec_text(path, vocabulary, vectors)
    found = read_vectors(path, "word2vec-text")
    assert found.words == vocabulary.words
    np.testing.assert_array_equal(found.vectors, vectors[1:])
    assert [entry.name for entry in tmp_path.iterdir()] == ["vectors"]


def test_what_does_not_fit_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    for vectors in (np.zeros((2, 3), np.float32), np.full((3, 3), np.nan, np.float32), np.zeros(3, np.float32)):
        with pytest.raises(SettingError, match="expected one finite row an id"):
            write_word2vec_text(path, Vocabulary(["a", "b"]), vectors)
    assert not path.exists()


DAMAGED: dict[str, tuple[VectorFormat, bytes, type[InputError], str]] = {
    "too few numbers": ("word2vec-text", b"2 2\na 1 2\nb 1\n", DamagedInputError, "line 3: 1 numbers, expected 2"),
    "too many numbers": ("word2vec-text", b"2 2\na 1 2\nb 1 2 3\n", DamagedInputError, "line 3: 3 numbers, expected 2"),
    "too many in glove": ("glove", b"a 1 2\nb 1 2 3\n", DamagedInputError, "line 2: 3 numbers, expected 2"),
    "empty line": ("glove", b"a 1 2\n\nb 1 2\n", DamagedInputError, "line 2: 0 numbers"),
    "not a number": ("glove", b"a 1 2\nb x 2\n", DamagedInputError, "line 2: .* no number"),
    "NaN": ("glove", b"a 1 2\nb nan 2\n", DamagedInputError, "line 2: .* not finite"),
    "infinite": ("word2vec-text", b"1 2\na inf 2\n", DamagedInputError, "line 2: .* not finite"),
    "beyond float32": ("word2vec-text", b"1 2\na 1e300 2\n", DamagedInputError, "line 2: .* not finite"),
    "NaN in binary": (
        "word2vec-binary",
        binary({"a": [1, float("nan")]}),
        DamagedInputError,
        "record 1: .* not finite",
    ),
    "twice": ("glove", b"a 1 2\nb 3 4\na 5 6\n", InputError, "line 3: the word 'a' again, after line 1"),
    "twice in binary": (
        "word2vec-binary",
        binary({"a": [1, 2]}, header=b"2 2\n") + binary({"a": [1, 2]}, header=b""),
        InputError,
        "record 2: the word 'a' again, after record 1",
    ),
    "not UTF-8": ("glove", b"a 1 2\n\xe9 3 4\n", InputError, "line 2: a word that is not UTF-8"),
    "binary not UTF-8": ("word2vec-binary", b"1 1\n\xff \0\0\0\0", InputError, "record 1: a word that is not UTF-8"),
    "no word": ("glove", b"a 1 2\n 3 4\n", InputError, "line 2: no word"),
    "fewer than the header": ("word2vec-text", b"3 2\na 1 2\n", DamagedInputError, "line 3: the file ends"),
    "more than the header": ("word2vec-text", b"1 2\na 1 2\nb 1 2\n", DamagedInputError, "line 3: more lines"),
    "binary ends in a vector": (
        "word2vec-binary",
        binary(ROWS)[:-3],
        DamagedInputError,
        "record 3: the file ends within",
    ),
    "binary ends early": (
        "word2vec-binary",
        binary(ROWS, header=b"4 2\n"),
        DamagedInputError,
        "record 4: the file ends",
    ),
    "binary goes on": ("word2vec-binary", binary(ROWS) + b"x", DamagedInputError, "record 4: the file goes on"),
    "endless word": ("word2vec-binary", b"1 2\n" + b"x" * 10_000, DamagedInputError, "record 1: a word longer than"),
    "endless line": ("glove", b"a 1 2\n" + b"x" * 200_000, DamagedInputError, "line 2: a line longer than"),
    "gigantic count": ("word2vec-binary", b"99999999999 300\n", FormatError, "line 1: a header of 99999999999 words"),
    "gigantic dimensions": ("word2vec-text", b"1 999999999\na 1\n", FormatError, "999999999 dimensions"),
    "no dimensions": ("word2vec-text", b"1 0\na\n", FormatError, "0 dimensions"),
    "endless header": ("word2vec-binary", b"9" * 100_000, FormatError, "no word2vec header"),
    "glove read as word2vec": ("word2vec-text", GLOVE, FormatError, "no word2vec header, .*glove"),
    "word2vec read as glove": ("glove", TEXT, FormatError, "a header, .*read it as word2vec-text"),
    "prose read as glove": ("glove", b"how do I cook\n", FormatError, "expected a word and 1 to 4096 numbers"),
    "empty glove": ("glove", b"", DamagedInputError, "the file is empty"),
    "empty text": ("word2vec-text", b"", FormatError, "no word2vec header"),
    "empty binary": ("word2vec-binary", b"", FormatError, "no word2vec header"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_is_refused_with_its_name_and_the_place(tmp_path: Path, case: str) -> None:
    file_format, content, kind, message = DAMAGED[case]
    with pytest.raises(kind, match=message) as refused:
        read_vectors(saved(tmp_path, content), file_format)
    assert "vectors, " in str(refused.value)
    assert type(refused.value) is kind


@pytest.mark.parametrize("cut", [3, 30, -12, -4])
def test_a_truncated_gzip_file_is_refused(tmp_path: Path, cut: int) -> None:
    path = saved(tmp_path, gzip.compress(TEXT)[:cut], "vectors.gz")
    with pytest.raises(InputError, match="vectors"):
        read_vectors(path, "word2vec-text")


def test_what_is_no_gzip_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedInputError, match="damaged gzip data after 0 words"):
        read_vectors(saved(tmp_path, TEXT, "vectors.gz"), "word2vec-text")


def test_numbers_of_unwanted_words_are_not_looked_at(tmp_path: Path) -> None:
    path = saved(tmp_path, b"a 1 2\nb nan oops\n")
    assert read_vectors(path, "glove", wanted={"a"}).words == ("a",)


def test_a_file_without_a_wanted_word_gives_none(tmp_path: Path) -> None:
    found = read_vectors(saved(tmp_path, TEXT), "word2vec-text", wanted=set())
    assert (found.words, found.vectors.shape) == ((), (0, 2))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError, match=r"is not a file|cannot be opened"):
            read_vectors(path, "glove")


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="word2vec-text, word2vec-binary, glove"):
        read_vectors(tmp_path, "pickle")  # type: ignore[arg-type]

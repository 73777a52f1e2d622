"""Word vectors are read from text files with a header and without, and written; damaged files are refused."""

from __future__ import annotations

import gzip
import importlib
from pathlib import Path

import numpy as np
import pytest

from askalike.errors import DamagedInputError, FormatError, InputError, SettingError
from askalike.models.vocabulary import Vocabulary
from askalike.training.vector_files import read_vectors, write_word2vec_text

TEXT = b"3 2\ncat 1 2\ndog -0.5 1e-3\ncaf\xc3\xa9 3 4\n"
GLOVE = TEXT.split(b"\n", 1)[1]
ROWS: dict[str, list[float]] = {"cat": [1, 2], "dog": [-0.5, 1e-3], "caf\xe9": [3, 4]}
each_kind = pytest.mark.parametrize("content", [TEXT, GLOVE], ids=["word2vec", "glove"])


def saved(folder: Path, content: bytes, name: str = "vectors") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@each_kind
def test_words_are_read_in_the_order_of_the_file_all_or_those_that_are_wanted(tmp_path: Path, content: bytes) -> None:
    for path in (saved(tmp_path, content), saved(tmp_path, gzip.compress(content), "vectors.gz")):
        words = read_vectors(path)
        assert (words.words, words.vectors.dtype) == (tuple(ROWS), np.float32)
        np.testing.assert_array_equal(words.vectors, np.array(list(ROWS.values()), np.float32))
        wanted = read_vectors(path, wanted=Vocabulary(["caf\xe9", "horse"]))
        assert (wanted.words, wanted.vectors.tolist()) == (("caf\xe9",), [[3, 4]])


def test_line_ends_of_other_systems_and_spaces_at_the_end_do_no_harm(tmp_path: Path) -> None:
    path = saved(tmp_path, TEXT.replace(b"\n", b" \r\n"))
    assert read_vectors(path).words == tuple(ROWS)


def test_words_of_several_parts_are_read_whole(tmp_path: Path) -> None:
    assert read_vectors(saved(tmp_path, b"a 1 2\n. . . 3 4\n")).words == ("a", ". . .")


def test_what_gensim_writes_is_read_with_the_same_bits(tmp_path: Path) -> None:
    keyed = importlib.import_module("gensim.models.keyedvectors").KeyedVectors(5)
    vectors = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    keyed.add_vectors([f"word{number}" for number in range(20)], vectors)
    keyed.save_word2vec_format(str(tmp_path / "vectors"))
    np.testing.assert_array_equal(read_vectors(tmp_path / "vectors").vectors, vectors)


def test_what_is_written_is_read_back_with_the_same_bits(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["caf\xe9", "c++", "22.04"])
    vectors = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32) * np.float32(1e-20)
    path = saved(tmp_path, b"what was there before")
    write_word2vec_text(path, vocabulary, vectors)
    words = read_vectors(path)
    assert words.words == vocabulary.words
    np.testing.assert_array_equal(words.vectors, vectors[1:])
    assert [entry.name for entry in tmp_path.iterdir()] == ["vectors"]


def test_what_does_not_fit_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    for vectors in (np.zeros((2, 3), np.float32), np.full((3, 3), np.nan, np.float32), np.zeros(3, np.float32)):
        with pytest.raises(SettingError, match="expected one finite row an id"):
            write_word2vec_text(path, Vocabulary(["a", "b"]), vectors)
    assert not path.exists()


DAMAGED: dict[str, tuple[bytes, type[InputError], str]] = {
    "too few numbers": (b"2 2\na 1 2\nb 1\n", DamagedInputError, "line 3: 1 numbers, expected 2"),
    "NaN": (b"a 1 2\nb nan 2\n", DamagedInputError, "line 2: .* not finite"),
    "twice": (b"a 1 2\nb 3 4\na 5 6\n", InputError, "line 3: the word 'a' again, after line 1"),
    "not UTF-8": (b"a 1 2\n\xe9 3 4\n", InputError, "line 2: a word that is not UTF-8"),
    "no word": (b"a 1 2\n 3 4\n", InputError, "line 2: no word"),
    "fewer than the header": (b"3 2\na 1 2\n", DamagedInputError, "line 3: the file ends"),
    "more than the header": (b"1 2\na 1 2\nb 1 2\n", DamagedInputError, "line 3: more lines"),
    "endless line": (b"a 1 2\n" + b"x" * 200_000, DamagedInputError, "line 2: a line longer than"),
    "gigantic count": (b"99999999999 300\n", FormatError, "line 1: a header of 99999999999 words"),
    "a binary file": (b"\x80\x02}q\x00(X\x03\n", FormatError, "expected a word and 1 to 4096 numbers"),
    "empty": (b"", DamagedInputError, "the file is empty"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_is_refused_with_its_name_and_the_place(tmp_path: Path, case: str) -> None:
    content, kind, message = DAMAGED[case]
    with pytest.raises(kind, match=message) as refused:
        read_vectors(saved(tmp_path, content))
    assert "vectors, " in str(refused.value)
    assert type(refused.value) is kind


@pytest.mark.parametrize("cut", [3, 30, -12, -4])
def test_a_truncated_gzip_file_is_refused(tmp_path: Path, cut: int) -> None:
    path = saved(tmp_path, gzip.compress(TEXT)[:cut], "vectors.gz")
    with pytest.raises(InputError, match="vectors"):
        read_vectors(path)


def test_what_is_no_gzip_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedInputError, match="damaged gzip data after 0 words"):
        read_vectors(saved(tmp_path, TEXT, "vectors.gz"))


def test_numbers_of_unwanted_words_are_not_looked_at(tmp_path: Path) -> None:
    path = saved(tmp_path, b"a 1 2\nb nan oops\n")
    assert read_vectors(path, wanted={"a"}).words == ("a",)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError, match=r"is not a file|cannot be opened"):
            read_vectors(path)

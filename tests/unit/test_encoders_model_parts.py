"""Vocabulary, settings, manifest and weights of a model: worked examples and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.models import folder
from askalike.models.encoders.settings import EncoderConfig, ModelSettings
from askalike.models.folder import FORMAT, MAX_BYTES, Manifest
from askalike.models.vocabulary import Vocabulary

# --- vocabulary ------------------------------------------------------------------------------------------------------


def test_a_vocabulary_is_ordered_by_falling_count_and_then_by_word() -> None:
    texts = ["b a C", "a c the", "the the Don't z"]
    assert Vocabulary.build(texts).words == ("the", "a", "c", "b", "don't", "z")
    assert Vocabulary.build(reversed(texts)).words == Vocabulary.build(texts).words
    assert Vocabulary.build(texts, min_count=2).words == ("the", "a", "c")
    assert Vocabulary.build(texts, max_size=2).words == ("the", "a")
    assert Vocabulary.build([], max_size=2).words == ()


@given(st.lists(st.text(max_size=12), max_size=8))
def test_a_vocabulary_is_read_as_it_was_written(texts: list[str]) -> None:
    vocabulary = Vocabulary.build(texts)
    assert Vocabulary.from_bytes(vocabulary.to_bytes()).words == vocabulary.words


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"one\ntwo\none\n", "'one' in lines 1 and 3"),
        (b"one\n\ntwo\n", "'' in line 2"),
        (b"one\ntwo", "line 2 has no end"),
        (b"one\n\xff\n", "line 2 is not UTF-8"),
        ("one\na\u2028b\n".encode(), "in line 2"),
    ],
)
def test_a_damaged_vocabulary_names_its_line(data: bytes, message: str) -> None:
    with pytest.raises(DamagedModelError, match=message):
        Vocabulary.from_bytes(data)


def test_words_that_a_file_cannot_hold_are_refused() -> None:
    for wrong in (["a b"], [""], ["a", "a"], ["\ud800"]):
        with pytest.raises(SettingError, match="vocabulary with"):
            Vocabulary(wrong)
    with pytest.raises(SettingError, match="min_count 0"):
        Vocabulary.build(["a"], min_count=0)


# --- settings --------------------------------------------------------------------------------------------------------

SETTINGS = ModelSettings(EncoderConfig("rcnn", 4, 6), "title", 50, "zero")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reads": "body"}, "reads is 'body', but expected one of: title and body, title, joined"),
        ({"word_limit": 0}, "word_limit is 0"),
        ({"stems": "klingon"}, "stems is 'klingon', but expected one of: arabic, .*, english, .*, yiddish"),
        ({"stems": None}, "stems is None, but expected `str`"),
        ({"encoder": {"kind": "rcnn"}}, "input_size"),
        ({"more": 1}, "more"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(change: Mapping[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        ModelSettings.from_json({**SETTINGS.to_json(), **change})


# --- manifest --------------------------------------------------------------------------------------------------------

HASH = "0123456789abcdef" * 4
MANIFEST = Manifest(
    FORMAT, "1.0", HASH, {"MRR": 0.5}, {name: HASH for name in sorted(MAX_BYTES) if name != "manifest.json"}
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "1"}, "format is '1', but expected `int`"),
        ({"training_data": "abc"}, "training_data is 'abc', but expected a SHA-256"),
        ({"dev_scores": {"MRR": "high"}}, "dev_scores"),
        ({"files": {"weights.safetensors": HASH, "config.json": HASH, "../vocabulary.txt": HASH}}, "hashes for"),
        ({"files": {**MANIFEST.files, "config.json": HASH.upper()}}, "hashes for"),
        ({"when": "now"}, "when"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(change: Mapping[str, object], message: str) -> None:
    data = json.dumps({**json.loads(MANIFEST.to_bytes()), **change}).encode()
    with pytest.raises(DamagedModelError, match=message):
        Manifest.from_bytes(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b"\xff", b"[" * 60_000, b'{"a": ' * 20_000, b'{"dev_scores": {"MRR": NaN}}', b"1" * 9_000],
)
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedModelError, match=r"manifest\.json"):
        Manifest.from_bytes(data)


# --- weights ---------------------------------------------------------------------------------------------------------

ARRAYS: dict[str, NDArray[np.generic]] = {
    "input": np.arange(12, dtype=np.float32).reshape(3, 4),
    "embedding": np.arange(-6, 6, dtype=np.int8).reshape(4, 3).T,
    "embedding.scale": np.ones(4, dtype=np.float32),
    "half": np.ones((2, 1), dtype=np.float16),
    "counts": np.array([0, 2**40, 3], dtype=np.int64),
}
WHOLE = folder.to_safetensors(ARRAYS)


def test_arrays_are_read_as_they_were_written_and_in_any_order_the_same_bytes() -> None:
    arrays = folder.from_safetensors(WHOLE)
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert folder.to_safetensors(dict(reversed(list(ARRAYS.items())))) == WHOLE


def test_weights_of_other_types_and_empty_ones_are_refused() -> None:
    for wrong in (np.ones(2), np.ones(2, dtype=np.int32), np.ones((0, 3), dtype=np.float32)):
        with pytest.raises(DamagedModelError, match="but expected F32, F16, I8, I64"):
            folder.from_safetensors(safetensors.numpy.save({"input": wrong}))


def test_a_header_that_is_too_long_is_refused_unread() -> None:
    with pytest.raises(DamagedModelError, match="a header of 18446744073709551615 bytes"):
        folder.from_safetensors(b"\xff" * 8 + WHOLE[8:])


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=4), st.integers(0, len(WHOLE)))
def test_corrupted_weights_give_arrays_or_a_clear_error(place: int, put: bytes, end: int) -> None:
    _read_or_refuse(WHOLE[:place] + put + WHOLE[place + len(put) :])
    _read_or_refuse(WHOLE[:end])
    _read_or_refuse(WHOLE + put)


HEADERS = st.dictionaries(
    st.sampled_from(["a", "b", "__metadata__"]) | st.text(max_size=3),
    st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F32", "F16", "I8", "I64", "BF16", "F64", "BOOL", "F4", "C64", "X"]),
            "shape": st.lists(st.integers(-1, 4) | st.integers(2**31, 2**65), max_size=4),
            "data_offsets": st.lists(st.integers(-1, 40) | st.integers(2**62, 2**65), max_size=3),
        }
    )
    | st.none(),
    max_size=3,
)


@given(HEADERS, st.binary(max_size=40))
def test_any_header_gives_arrays_or_a_clear_error(header: Mapping[str, object], data: bytes) -> None:
    text = json.dumps(header).encode()
    _read_or_refuse(len(text).to_bytes(8, "little") + text + data)


def _read_or_refuse(data: bytes) -> None:
    try:
        arrays = folder.from_safetensors(data)
    except DamagedModelError:
        return
    assert sum(array.nbytes for array in arrays.values()) <= len(data)

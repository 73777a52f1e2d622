"""Model folders: what is saved is what is loaded, a new model replaces an old one whole, and all damage is named."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, ModelError, ModelExistsError, ModelNotFoundError, ModelVersionError
from askalike.models import folder
from askalike.models.encoders.model import Model
from askalike.models.encoders.settings import EncoderConfig, ModelSettings, Unknown
from askalike.models.folder import MAX_BYTES, digest
from askalike.models.vocabulary import Vocabulary
from askalike.types import Question

WORDS = ["the", "router", "modem", "é", "中"]
QUESTIONS = [Question("1", "the router", "the modem 中"), Question("2", "an é")]
ENCODERS = [
    EncoderConfig("rcnn", 3, 4),
    EncoderConfig("rcnn", 3, 4, gate="scalar", pooling="mean"),
    EncoderConfig("rcnn", 3, 4, gate="none"),
    EncoderConfig("lstm", 3, 4),
    EncoderConfig("gru", 3, 4),
    EncoderConfig("cnn", 3, 4),
]


COUNTS = np.array([7, 2**40, 5, 3, 1, 0], dtype=np.int64)


def model_of(
    encoder: EncoderConfig = ENCODERS[0],
    seed: int = 0,
    unknown: Unknown = "zero",
    counts: NDArray[np.int64] | None = None,
) -> Model:
    chance = np.random.default_rng(seed)
    embedding = chance.normal(0, 1, (len(WORDS) + 1, encoder.input_size))
    embedding[0] *= unknown == "vector"
    return Model.build(
        ModelSettings(encoder, unknown=unknown),
        Vocabulary(WORDS),
        embedding,
        {name: chance.normal(0, 0.6, shape) for name, shape in encoder.shapes().items()},
        counts=counts,
        training_data="ab" * 32,
        dev_scores={"MRR": 0.5},
    )


def files_of(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.iterdir()}


def rewrite(path: Path, name: str, data: bytes) -> None:
    """Put ``data`` into a file and its hash into the manifest, as someone hostile would."""
    (path / name).write_bytes(data)
    if name == "manifest.json":
        return
    manifest = json.loads((path / "manifest.json").read_bytes())
    manifest["files"][name] = digest(data)
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "MODEL")
    return tmp_path / "MODEL"


# --- saved is loaded -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_saved_model_is_loaded_bit_for_bit(tmp_path: Path, encoder: EncoderConfig) -> None:
    model = model_of(encoder, unknown="vector")
    model.save(tmp_path / "MODEL")
    loaded = Model.load(tmp_path / "MODEL")
    np.testing.assert_array_equal(loaded.encode(QUESTIONS), model.encode(QUESTIONS))
    np.testing.assert_array_equal(loaded.embedding(), model.embedding())
    assert loaded.parameters().keys() == model.parameters().keys()
    for name, array in model.parameters().items():
        np.testing.assert_array_equal(loaded.parameters()[name], array)
    assert loaded.settings == model.settings
    assert loaded.vocabulary.words == model.vocabulary.words
    assert (loaded.origin.training_data, loaded.origin.dev_scores) == ("ab" * 32, {"MRR": 0.5})
    loaded.save(tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(tmp_path / "MODEL")


def test_how_often_words_occurred_is_saved_where_it_is_known(tmp_path: Path) -> None:
    model_of(counts=COUNTS).save(tmp_path / "MODEL")
    loaded = Model.load(tmp_path / "MODEL")
    assert loaded.counts is not None
    assert loaded.counts.dtype == np.int64
    np.testing.assert_array_equal(loaded.counts, COUNTS)
    loaded.save(tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(tmp_path / "MODEL")
    without = model_of()
    without.save(tmp_path / "without")
    assert without.counts is None
    assert Model.load(tmp_path / "without").counts is None
    np.testing.assert_array_equal(loaded.encode(QUESTIONS), without.encode(QUESTIONS))


def test_the_same_model_gives_the_same_bytes_and_exactly_the_files_of_the_layout(tmp_path: Path, saved: Path) -> None:
    model_of().save(tmp_path / "second")
    assert files_of(tmp_path / "second") == files_of(saved)
    assert set(files_of(saved)) == set(MAX_BYTES)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["MODEL", "second"]
    assert (saved / "vocabulary.txt").read_text(encoding="utf-8").splitlines() == WORDS


# --- a new one replaces an old one, whole ----------------------------------------------------------------------------


def test_a_model_that_cannot_be_written_leaves_the_old_one(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files_of(saved)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match="cannot be written: No space left on device"):
        model_of(seed=1).save(saved)
    assert files_of(saved) == before
    assert [entry.name for entry in saved.parent.iterdir()] == ["MODEL"]


class Killed(BaseException):
    """Stands for a process that ends at once."""


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_after_a_kill_at_any_rename_a_whole_model_is_loaded(
    saved: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    old, new = model_of().encode(QUESTIONS), model_of(seed=1)
    rename = Path.rename
    done: list[Path] = []

    def stopping(self: Path, target: Path) -> Path:
        if len(done) == renames:
            raise Killed
        done.append(target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stopping)
    if renames < 2:
        with pytest.raises(Killed):
            new.save(saved)
    else:
        new.save(saved)
    monkeypatch.undo()
    expected = new.encode(QUESTIONS) if renames == 2 else old
    np.testing.assert_array_equal(Model.load(saved).encode(QUESTIONS), expected)
    new.save(saved)
    np.testing.assert_array_equal(Model.load(saved).encode(QUESTIONS), new.encode(QUESTIONS))
    assert [entry.name for entry in saved.parent.iterdir()] == ["MODEL"]


def test_what_could_not_be_loaded_is_not_saved(saved: Path) -> None:
    model = model_of()
    scores = {str(number): 0.5 for number in range(9000)}
    large = Model.build(model.settings, model.vocabulary, model.embedding(), model.parameters(), dev_scores=scores)
    with pytest.raises(ModelError, match=r"manifest\.json has \d+ bytes, but expected at most 65536"):
        large.save(saved)
    assert Model.load(saved).origin.dev_scores == {"MRR": 0.5}


def test_a_folder_or_file_that_is_no_model_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for name in ("thesis", "file"):
        with pytest.raises(ModelExistsError, match="is there and is not a model"):
            model_of().save(tmp_path / name)
    assert (tmp_path / "thesis" / "chapter.txt").read_text(encoding="utf-8") == "mine"
    (tmp_path / "empty").mkdir()
    model_of().save(tmp_path / "empty")
    assert Model.load(tmp_path / "empty").dimensions == 4


def test_a_model_is_not_replaced_together_with_what_lies_beside_it(saved: Path) -> None:
    letter = saved / "letter.txt"
    letter.write_text("mine", encoding="utf-8")
    with pytest.raises(ModelExistsError, match=r"letter\.txt is not part of a model"):
        model_of(seed=1).save(saved)
    assert letter.read_text(encoding="utf-8") == "mine"


def test_folders_on_the_way_are_made_and_links_are_followed(tmp_path: Path) -> None:
    model_of().save(tmp_path / "a" / "b" / "MODEL")
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b" / "MODEL")
    model_of(seed=1).save(str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    expected = model_of(seed=1).encode(QUESTIONS)
    np.testing.assert_array_equal(Model.load(tmp_path / "a" / "b" / "MODEL").encode(QUESTIONS), expected)


# --- damage ----------------------------------------------------------------------------------------------------------


def test_a_loop_of_links_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ModelNotFoundError, match="there is no model at"):
        Model.load(tmp_path / "loop")


def test_where_there_is_no_model_the_message_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "file"):
        with pytest.raises(ModelNotFoundError, match="there is no model at"):
            Model.load(path)


@pytest.mark.parametrize("name", sorted(set(MAX_BYTES) - {"manifest.json"}))
def test_a_missing_a_changed_and_a_cut_file_are_named(saved: Path, name: str) -> None:
    data = (saved / name).read_bytes()
    for damaged in (data[:-1], bytes([data[0] ^ 1]) + data[1:], data + b"\n", b""):
        (saved / name).write_bytes(damaged)
        with pytest.raises(DamagedModelError, match=f"{name} is not what manifest.json says"):
            Model.load(saved)
    (saved / name).unlink()
    with pytest.raises(DamagedModelError, match=f"missing or not part of a model: {name}"):
        Model.load(saved)
    for make in (Path.mkdir, os.mkfifo):
        make(saved / name)
        with pytest.raises(DamagedModelError, match="is not a file"):
            Model.load(saved)
        (saved / name).rmdir() if (saved / name).is_dir() else (saved / name).unlink()


def test_a_file_too_many_is_named(saved: Path) -> None:
    (saved / "weights.pkl").write_bytes(b"")
    with pytest.raises(DamagedModelError, match=r"not part of a model: weights\.pkl"):
        Model.load(saved)


def test_a_file_beyond_its_size_is_not_read(saved: Path) -> None:
    for name in ("manifest.json", "weights.safetensors"):
        with (saved / name).open("r+b") as file:
            file.truncate(MAX_BYTES[name] + 1)  # a hole: it takes no room
        with pytest.raises(DamagedModelError, match="is larger than"):
            Model.load(saved)


def change_config(**changes: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        config = json.loads((path / "config.json").read_bytes())
        rewrite(path, "config.json", json.dumps({**config, **changes}).encode())

    return change


def change_arrays(**changes: NDArray[np.generic] | None) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        arrays: Mapping[str, NDArray[np.generic] | None]
        arrays = {**folder.from_safetensors((path / "weights.safetensors").read_bytes()), **changes}
        kept = {name: array for name, array in arrays.items() if array is not None}
        rewrite(path, "weights.safetensors", folder.to_safetensors(kept))

    return change


def change_file(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda path: rewrite(path, name, data)


ENCODER = ENCODERS[0].to_json()
NOT_FINITE = np.array([0, np.nan, 0, 0], dtype=np.float32)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change_config(more=1), "config.json: model settings"),
        (
            change_config(stems="klingon"),
            "config.json: model settings: model setting stems is 'klingon', but expected one of: arabic",
        ),
        (
            change_config(encoder={**ENCODER, "hidden_size": 10**30}),
            "hidden_size is 10{30}, but expected `int` <= 4096",
        ),
        (change_config(encoder={**ENCODER, "kind": "lstm"}), "weights hold nothing for weight_ih"),
        (change_config(encoder={**ENCODER, "input_size": 5}), r"float32 \(6, 3\) for embedding.* float32 \(6, 5\)"),
        (change_arrays(output_bias=None), "weights hold nothing for output_bias"),
        (change_arrays(output_bias=NOT_FINITE), "weights hold numbers for output_bias that are not finite"),
        (change_arrays(counts=COUNTS[:, None]), r"counts of words int64 \(6, 1\), but expected int64 \(6,\)"),
        (change_arrays(counts=COUNTS - 2), "counts of words down to -2, but expected numbers ≥ 0"),
        (change_arrays(output_bias=np.zeros(4, np.int64)), r"int64 \(4,\) for output_bias, but expected float32"),
        (change_arrays(surplus=NOT_FINITE), "weights hold more than the model needs: surplus"),
        (change_arrays(embedding=np.ones((6, 3), np.float32)), "a vector of unknown words, which are to be zero"),
        (change_file("vocabulary.txt", b"the\nrouter\n"), "5 vectors of words, but there are 2 words"),
        (change_file("vocabulary.txt", b"the\nthe\n"), "'the' in lines 1 and 2"),
        (change_file("weights.safetensors", b"\x02" + bytes(7) + b"{"), "weights.safetensors cannot be read"),
        (change_file("manifest.json", b"{}"), "manifest.json: missing a required argument: 'format'"),
    ],
)
def test_files_that_do_not_fit_each_other_are_named(saved: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(saved)
    with pytest.raises(DamagedModelError, match=message):
        Model.load(saved)


@given(st.sampled_from(sorted(MAX_BYTES)), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_corrupted_file_gives_a_model_or_a_clear_error(saved: Path, name: str, data: st.DataObject) -> None:
    whole = (saved / name).read_bytes()
    kept = (saved / "manifest.json").read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    put = data.draw(st.binary(min_size=1, max_size=6))
    rewrite(saved, name, whole[:place] + put + whole[place + len(put) :])
    with contextlib.suppress(ModelError):
        Model.load(saved).encode(QUESTIONS)
    (saved / name).write_bytes(whole)
    (saved / "manifest.json").write_bytes(kept)


# --- formats ---------------------------------------------------------------------------------------------------------


def test_another_format_is_refused_with_the_version_that_wrote_it(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_bytes())
    changed = json.dumps({**manifest, "format": 99, "version": "7.1"})
    (saved / "manifest.json").write_text(changed, encoding="utf-8")
    with pytest.raises(ModelVersionError, match=r"format 99, written by askalike 7\.1.*train the model again"):
        Model.load(saved)

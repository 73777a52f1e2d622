"""The commands that take text encoders: encode, index, search, info."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from tests.command import Run
from tests.embedding_server import serving
from tests.tiny_models import write_tiny_folder

from askalike.models.remote import Patience
from askalike.models.transformer import Transformer

ARCHIVE = [
    {"id": "wifi", "title": "Wifi drops every evening"},
    {"id": "printer", "title": "Printer is offline"},
    {"id": "disk", "title": "The hard drive has no space left"},
]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a home of one's own."""
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("ASKALIKE_ENCODERS", raising=False)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in ARCHIVE))
    return path


def test_index_goes_on_where_an_endpoint_ends(
    run: Run, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forum = tmp_path / "forum"
    monkeypatch.setattr("askalike.models.remote.Patience", partial(Patience, tries=2, first_pause_s=0.0))
    with serving() as server:
        run("index", archive, "--into", forum, "--encoder", server.named)
    archive.write_text(archive.read_text() + json.dumps({"id": "new", "title": "Wifi is slow"}) + "\n")
    done = run("index", archive, "--into", forum)
    assert done.code == 0
    assert "cannot be reached" in done.err.replace("\n", " ")
    assert "1 not encoded" in done.out
    assert {hit["question"]["id"] for hit in run("search", forum, "wifi", "--json").json} == {"wifi", "new"}


def test_a_change_of_addresses_alone_keeps_vectors_and_the_address_is_remembered(
    run: Run, tmp_path: Path, archive: Path
) -> None:
    forum = tmp_path / "forum"
    into = ("index", archive, "--into", forum)
    with serving() as server:
        run(*into, "--encoder", server.named, "--site-url", "https://a.example/q/{id}")
    moved = run(*into, "--site-url", "https://b.example/q/{id}", "--json").json  # the endpoint is gone
    assert (moved["questions"]["edited"], moved["not_encoded"]) == (3, 0)
    again = run(*into, "--json").json
    assert (again["questions"]["unchanged"], again["not_encoded"]) == (3, 0)
    [hit] = run("search", forum, "printer", "--json").json
    assert hit["question"]["url"] == "https://b.example/q/printer"


def test_the_environment_names_the_encoder_of_new_forums(
    run: Run, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKALIKE_ENCODER", "general")
    assert run("index", archive, "--into", tmp_path / "one", "--json").json["model"].startswith("general@")
    monkeypatch.setenv("ASKALIKE_ENCODER", "sentence-transformers:nowhere")
    done = run("index", archive, "--into", tmp_path / "other")
    assert done.code != 0
    assert "nowhere" in done.err


def test_a_model_in_a_folder_encodes_and_nothing_anew_when_the_folder_has_moved(
    run: Run, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_folder(tmp_path / "before" / "small")
    forum, options = tmp_path / "forum", ("--query-prompt", "query: ", "--document-prompt", "passage: ")
    run("index", archive, "--into", forum)
    done = run("encode", forum, "--model", f"sentence-transformers:{tmp_path / 'before' / 'small'}", *options)
    assert "3 questions are encoded by the model sentence-transformers:small@" in " ".join(done.out.split())
    assert run("search", forum, "wifi drops every evening", "--json").json[0]["question"]["id"] == "wifi"
    (tmp_path / "before").rename(tmp_path / "after")
    output = run("search", forum, "printer", "--json")
    assert "there is no encoder at" in output.json[0]["notice"]
    read: list[str] = []
    encode = Transformer.encode_document
    monkeypatch.setattr(
        Transformer, "encode_document", lambda self, texts: [*map(read.append, texts)] and encode(self, texts)
    )
    assert run("encode", forum, "--model", tmp_path / "after" / "small", *options).code == 0
    assert len(read) == 1  # the probe
    assert run("search", forum, "wifi", "--json").err == ""


def test_a_folder_that_is_no_model_is_refused_with_what_a_model_has(run: Run, tmp_path: Path, archive: Path) -> None:
    run("index", archive, "--into", tmp_path / "forum")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model.onnx").write_bytes(b"")
    done = run("encode", tmp_path / "forum", "--model", tmp_path / "weights")
    assert done.code == 1
    assert "or config.json (a sentence transformer)" in " ".join(done.err.split())


@pytest.mark.parametrize("written", ["foo:bar", "minilm2", "openapi:http://host#name"])
def test_an_encoder_that_is_none_is_refused_with_all_kinds_that_there_are(
    run: Run, tmp_path: Path, archive: Path, written: str
) -> None:
    run("index", archive, "--into", tmp_path / "forum")
    for done in (
        run("encode", tmp_path / "forum", "--model", written),
        run("index", archive, "--into", tmp_path / "forum", "--encoder", written),
    ):
        said = " ".join(done.err.split())
        assert done.code == 2
        assert f"there is no encoder '{written}'" in said
        for kind in ("general", "sentence-transformers:PATH", "fastembed:NAME", "openai:URL#NAME"):
            assert kind in said

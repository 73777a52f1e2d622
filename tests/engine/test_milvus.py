"""Milvus in particular: lost or away, restarted, drifted, refused; and what a folder may name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.engine.conftest import SETTINGS
from tests.milvus_server import stop_milvus
from tests.postgres_server import new_database, server_address
from tests.tiny_models import synonym_model

from askalike import Filters, Forum, ForumSettings, Question
from askalike.errors import EngineError, ForumError, SettingError
from askalike.forum.check import check_forum
from askalike.index.milvus import words as words_module
from askalike.index.milvus.choice import check_engine
from askalike.index.milvus.client import DROPPED_AFTER_S, Milvus, search_request
from askalike.index.milvus.vectors import BITS, _along, codes_of
from askalike.index.milvus.words import Lengths, MilvusWords, place
from askalike.index.postings import idf, saturated
from askalike.progress import SilentProgress
from askalike.server.app import build
from askalike.server.settings import ServeSettings
from askalike.store import ForumLayout, open_store

pytestmark = pytest.mark.slow

AWAY = "milvus://127.0.0.1:1"


@pytest.fixture
def forum(engine: str, tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "forum", settings=SETTINGS) as made:
        made.indexes.use_engine(engine)
        made.add([Question("1", "Wifi drops"), Question("2", "Printer is offline")])
        yield made


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
        found = client.post("/v1/similar", json={"title": "scanner"})
        assert found.status_code == 503
        assert AWAY in found.text
    ForumLayout(forum.path).engine.write_text(json.dumps({"format": 1, "engine": engine}))
    with Forum.open(forum.path, settings=SETTINGS) as back:
        assert (ids(back, "scanner"), ids(back, "bluetooth"), ids(back, "wifi")) == (["3"], ["1"], [])
        assert ids(back, "keyboard") == ["4"]


@pytest.mark.parametrize("limit_s", [10, 10.0, 0.5])
def test_a_server_is_asked_again_for_whole_seconds(monkeypatch: pytest.MonkeyPatch, limit_s: float) -> None:
    pytest.importorskip("pymilvus")
    given: dict[str, Any] = {}
    client = SimpleNamespace(query=lambda *_, **named: given.update(named))
    milvus = Milvus("milvus://127.0.0.1:1", "forum")
    monkeypatch.setattr(milvus, "_connected", lambda: client)
    monkeypatch.setattr("askalike.index.milvus.client.READ_TIMEOUT_S", limit_s)
    milvus.call("query", "rows")
    assert isinstance(given["timeout"], int), "pymilvus ends its retries at no other limit"
    assert given["timeout"] >= limit_s


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_what_was_asked_for_ahead_through_a_lost_connection_is_asked_for_through_another(
    forum: Forum, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    grpc = pytest.importorskip("grpc")

    class Lost(grpc.RpcError):
        def code(self) -> Any:
            return grpc.StatusCode.UNAVAILABLE

    class Ask:
        def future(self, *_: Any) -> Any:
            return self

        def result(self) -> Any:
            raise grpc.FutureCancelledError if is_cancelled else Lost

    words = words_of(forum)
    milvus, (client, _) = words.milvus, words.milvus._asking()
    milvus._search = (client, Ask())
    assert words.counts(["wifi"])[1] == {"wifi": (1, 1)}
    assert milvus._client is not client


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
    words = words_of(forum)
    assert words.milvus.row(words.name, is_fresh=True)["drift"] == 2  # type: ignore[index]
    assert words.counts(["scanner", "hum", "wifi"])[1]["scanner"].texts == 2


def test_counts_that_have_drifted_are_made_anew_while_the_old_ones_answer(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = words_of(forum)
    before, answered = words.collection, []
    words._keep(drift=1_000)
    take = MilvusWords.take

    def taking(self: MilvusWords, successor: MilvusWords) -> None:
        answered.append(ids(forum, "wifi printer"))
        take(self, successor)

    monkeypatch.setattr(MilvusWords, "take", taking)
    forum.add(Question("3", "Scanner hums"))
    assert answered == [["1", "2"]]
    assert words.collection != before
    assert ids(forum, "wifi scanner") == ["1", "3"]
    milvus = words.milvus
    assert milvus.call("has_collection", f"{milvus._prefix}{before}")  # a search may be under way in it
    now = milvus.clock()
    milvus.clock = lambda: now + DROPPED_AFTER_S + 1
    milvus.sweep()
    assert not milvus.call("has_collection", f"{milvus._prefix}{before}")
    assert ids(forum, "wifi scanner") == ["1", "3"]


def test_vectors_that_are_in_use_stay_and_others_go_after_an_hour(engine: str, tmp_path: Path) -> None:
    for name, model in (("one", synonym_model()), ("other", synonym_model(({"wifi"}, {"printer"})))):
        model.save(tmp_path / name)
    with Forum.create(tmp_path / "forum") as forum:
        forum.indexes.use_engine(engine)
        forum.models.use_model(tmp_path / "one")
        forum.add([Question("1", "Wifi drops"), Question("2", "Printer is offline")])
        milvus = words_of(forum).milvus
        before = {name for name in milvus._read() if name.startswith("vectors_")}
        forum.models.use_model(tmp_path / "other")
        forum.encode()
        assert before < set(milvus._read())  # another machine may ask them
        now = milvus.clock()
        milvus.clock = lambda: now + DROPPED_AFTER_S + 1
        words_of(forum)._keep(drift=1_000)
        forum.add(Question("3", "Scanner hums"))  # makes the words anew
        forum.encode()
        [left] = [name for name in milvus._read() if name.startswith("vectors_")]
        assert left not in before
        assert [hit.question.id for hit in forum.similar("wifi", ranker="meaning", k=1)] == ["1"]


def test_mean_lengths_that_are_far_off_are_taken_anew(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_module, "DRIFT_LEAST", 5)
    assert words_of(forum).lengths == Lengths(6.0, 60.0)
    forum.add([Question(f"long{number}", "wifi " * 20, "cellar router " * 100) for number in range(20)])
    lengths = words_of(forum).lengths
    assert 15 < lengths.title < 20
    assert 150 < lengths.text < 220


def test_counts_follow_edits_and_deletes_exactly(forum: Forum) -> None:
    forum.add([Question("3", "wifi wifi", "printer"), Question("4", "wifi")])
    forum.edit(Question("1", "Printer"))
    forum.delete("4")
    size, counts = words_of(forum).counts(["wifi", "printer", "drop"])
    assert size == 3
    assert counts == {"wifi": (1, 1), "printer": (2, 3)}
    assert check_forum(forum.path, SilentProgress()).is_sound


def test_a_question_that_the_engine_lacks_is_found_by_the_check(forum: Forum) -> None:
    words = words_of(forum)
    words.milvus.delete(words.collection, words.numbers().tolist()[:1])
    found = check_forum(forum.path, SilentProgress())
    assert any("holds 1 questions not" in finding.what for finding in found.damaged("words"))


def test_a_score_is_bm25_over_title_and_text(forum: Forum) -> None:
    forum.add([Question("3", "wifi router", "wifi")])
    title = 0.25 * idf(3, 2) * saturated(1, 2, 6.0)
    text = 1.0 * idf(3, 2) * saturated(2, 3, 60.0)
    [best, _] = forum.similar("wifi", ranker="words")
    assert best.question.id == "3"
    assert best.components["bm25"] == pytest.approx(title + text, rel=1e-5)


def test_a_text_is_found_by_its_number_and_a_term_that_shares_the_dimension_changes_no_score(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = forum.similar("wifi", ranker="words")[0].score
    forum.add([Question("3", ""), Question("4", "printer")])
    words = words_of(forum)
    nums = words.numbers().tolist()
    texts = words.texts([*nums, 1_000])
    assert set(texts) == set(nums)
    assert len({*texts.values()}) == len(nums)
    forum.delete(["3", "4"])
    monkeypatch.setattr("askalike.index.milvus.words.mark", lambda num: 2 * place("wifi"))
    forum.edit(Question("2", "printer is on fire"))
    words = words_of(forum)
    assert len(words.texts(words.numbers().tolist()[-1:])) == 1
    assert forum.similar("wifi", ranker="words")[0].score == pytest.approx(before, rel=1e-6)
    assert words.counts(["wifi"])[1]["wifi"].titles == 1


@pytest.mark.parametrize(
    ("vectors", "metric"),
    [
        ([{7: 0.5, 3: 1.0}, {(1 << 32) - 2: 2.0}], "IP"),
        ([np.array([0.6, 0.8], np.float32)], "IP"),
        ([b"\x00\xff"], "HAMMING"),
    ],
)
def test_a_search_is_asked_for_as_pymilvus_does(vectors: list[Any], metric: str) -> None:
    prepare = pytest.importorskip("pymilvus.client.prepare").Prepare
    settings, fields = {"metric_type": metric}, ["tags"]
    theirs = prepare.search_requests_with_expr("words", vectors, "", settings, 5, "num in [1]", None, fields)
    assert search_request("words", vectors, 5, "num in [1]", fields, metric) == theirs


def test_of_the_bits_of_two_vectors_the_share_of_their_angle_differs() -> None:
    along = _along(300)
    assert np.allclose(along[:, :300].T @ along[:, :300], np.eye(300), atol=1e-5)
    first, second = np.eye(300, dtype=np.float32)[:2]
    vectors = np.stack([first, second, -first, first + second])
    right, opposite, half = (
        int(np.unpackbits(codes_of(vectors[:1]) ^ row[None]).sum()) for row in codes_of(vectors)[1:]
    )
    assert opposite == BITS
    assert abs(right / BITS - 1 / 2) < 0.05
    assert abs(half / BITS - 1 / 4) < 0.05
    assert codes_of(np.ones((1, 2), np.float32)).shape == (1, BITS // 8)


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
    with pytest.raises(SettingError) as found:
        check_engine(address)
    assert "secret" not in str(found.value)


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
    asked: list[Any] = []

    def refuse(address: Any, timeout_s: float) -> Any:
        asked.append(address)
        assert timeout_s < 1
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr(pymilvus, "MilvusClient", lambda *_, **__: pytest.fail("it tries for seconds"))
    milvus = Milvus("milvus://search.example.org", "forum")
    for _ in range(3):
        with pytest.raises(EngineError, match=r"search\.example\.org does not answer: Connection refused"):
            milvus.call("list_collections")
        assert not milvus.is_up
    assert asked == [("search.example.org", 19530)]
    monkeypatch.setattr("askalike.index.milvus.client.AWAY_S", 0.0)
    assert not milvus.is_up
    assert len(asked) > 1


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
        told = gauges(client)
        assert (told["askalike_engine_up"], told["askalike_database_up"], told["askalike_questions"]) == (0, 1, 3)


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

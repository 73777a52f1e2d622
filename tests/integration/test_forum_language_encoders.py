"""Encoders by language: questions and queries in one are encoded by what was named for it, and by nothing else."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.command import Run
from tests.embedding_server import EmbeddingServer, WordHashes, serving
from tests.tiny_models import synonym_model

from askalike import Forum, Question
from askalike.errors import SettingError
from askalike.index.vectors import VectorIndex
from askalike.server.app import build
from askalike.server.settings import ServeSettings
from askalike.store import ForumLayout
from askalike.text.settings import TextSettings
from askalike.types import Query

pytest.importorskip("py3langid")
pytestmark = pytest.mark.usefixtures("alone")
TEXT = TextSettings(languages=("en", "de", "fr"))
QUESTIONS = [
    Question("wifi", "wifi drops every evening", language="en"),
    Question("printer", "printer is offline", language="en"),
    Question("wlan", "wifi drops abends immer", language="de"),
    Question("drucker", "drucker druckt leere seiten", language="de"),
    Question("imprimante", "imprimante hors ligne", language="fr"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "forum", text=TEXT) as forum:
        forum.add(QUESTIONS)
    return tmp_path / "forum"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving() as found:
        yield found


def sent(server: EmbeddingServer) -> set[str]:
    """Return what was sent, without the text by which an endpoint is known again."""
    texts = {text for _, _, asked in server.requests for text in asked["inputs"]}
    return texts - {"How do I find an earlier question that asks the same?"}


def german(title: str, **more: object) -> Query:
    return Query(title, language="de", **more)  # type: ignore[arg-type]


def cosines(forum: Forum, query: Query) -> dict[str, float]:
    return {hit.question.id: round(hit.components.get("cosine", -1.0), 3) for hit in forum.search(query).hits}


def vectors_in(path: Path, language: str) -> set[str]:
    with Forum.open(path) as forum:
        names = {number: name for name, number in forum.numbers([one.id for one in forum.questions()]).items()}
        (place,) = ForumLayout(path).of_language(language).vectors.glob("*/index")
        return {names[number] for number in VectorIndex(place).numbers().tolist()}


def test_each_language_is_read_by_its_own_encoder_and_by_no_other(path: Path, server: EmbeddingServer) -> None:
    of_all = WordHashes()
    with Forum.open(path, encoder=of_all) as forum:
        forum.use_encoder(f"tei:{server.address}", language="de")
        of_all.documents.clear()
        server.requests.clear()
        forum.encode()
        assert sent(server) == {"wifi drops abends immer", "drucker druckt leere seiten"}
        assert of_all.documents == []  # it had encoded all, and keeps what it has
        server.requests.clear()
        found = forum.search(german("wireless disconnects")).hits
        assert [hit.question.id for hit in found] in (["wlan"], ["wlan", "drucker"])  # and nothing in English
        assert (found[0].components["cosine"] > 0.5, found[0].matched) == (True, ())
        assert (sent(server), of_all.queries) == ({"wireless disconnects"}, [])
        english = forum.search(Query("wireless disconnects", language="en")).hits
        assert {hit.question.id for hit in english[:2]} == {"wifi", "wlan"}  # by the one that reads all languages
        assert of_all.queries == ["wireless disconnects"]
        mixed = cosines(forum, german("wifi"))
        assert (mixed["wlan"] > 0, mixed["wifi"]) == (True, 0.0)  # by words alone, across encoders
        assert cosines(forum, Query("wifi", language="en"))["wlan"] > 0  # the other one reads all languages
        state = forum.vectors
        assert (state.entries, state.by_language.keys()) == (5, {"de"})
        assert (state.by_language["de"].entries, state.is_behind) == (2, False)
    assert Forum.check(path).is_sound


def test_the_service_shows_the_encoder_of_each_language(path: Path, server: EmbeddingServer) -> None:
    with Forum.open(path) as forum:
        forum.use_encoder(f"tei:{server.address}", language="de")
        forum.encode()
        forum.put_unindexed([Question("radio", "radio rauscht laut", language="de")])
    with TestClient(build(ServeSettings(str(path))), base_url="http://localhost:8765") as client:
        found = client.get("/v1/status").json()["vectors"]
        metrics = client.get("/metrics").text
    assert (found["model"], found["by_language"].keys()) == ("", {"de"})
    german = found["by_language"]["de"]
    assert german["model"].startswith("tei:")
    assert german["entries"] + german["waiting"] == 3
    assert re.search(r"^askalike_vectors\S* [23](\.0)?$", metrics, re.MULTILINE)


def test_queries_in_several_languages_find_together_what_each_finds_alone(path: Path, server: EmbeddingServer) -> None:
    with Forum.open(path, encoder=WordHashes()) as forum:
        forum.use_encoder(f"tei:{server.address}", language="de")
        forum.encode()
        queries = [
            german("wireless drops"),
            Query("printer silent", language="en"),
            german("drucker"),
            Query("imprimante", language="fr"),
            Query("offline"),
        ]
        together = forum.similar_many(queries)
        alone = [forum.search(one) for one in queries]
        shown = [[(hit.question.id, hit.score, dict(hit.components)) for hit in one.hits] for one in together]
        assert shown == [[(hit.question.id, hit.score, dict(hit.components)) for hit in one.hits] for one in alone]
        assert all(shown)
        assert forum.score("wireless disconnects", ["wifi drops"]) != []


def test_a_language_without_an_encoder_beside_one_that_has_one(path: Path, server: EmbeddingServer) -> None:
    with Forum.open(path) as forum:
        assert forum.vectors.model == ""
        forum.use_encoder(f"tei:{server.address}", language="de")
        forum.encode()  # the forum's own has none: no error
        assert cosines(forum, german("wireless"))["wlan"] > 0
        assert cosines(forum, Query("wifi", language="en")) == {"wifi": -1.0, "wlan": -1.0}  # words alone
        hit = forum.search(german("wifi", is_explained=True)).hits[0]
        assert (hit.question.id, hit.explanation is not None) == ("wlan", True)


def test_a_candidate_without_a_vector_is_chosen_by_its_words(path: Path) -> None:
    with Forum.open(path) as forum:
        forum.use_encoder(WordHashes(), language="en")
        forum.add([Question(f"en{place}", f"nginx restarts number{place}", language="en") for place in range(40)])
        forum.add(Question("server", "nginx gunicorn socket startet nicht", language="de"))
        forum.encode()
        found = forum.search(Query("nginx gunicorn socket restarts", language="en")).hits
        (hit,) = [one for one in found if one.question.id == "server"]
        assert hit.components["cosine"] == 0.0
        assert min(one.components["cosine"] for one in found if one is not hit) > 0.5


def test_what_is_in_no_language_is_read_as_the_main_one(path: Path) -> None:
    with Forum.open(path) as forum:
        forum.add(Question("number", "/etc/hosts 42"))
        synonym_model().save(path.parent / "model")
        forum.use_model(path.parent / "model", language="en")
        forum.encode()
        assert forum.question("number").language == ""
        assert forum.vectors.by_language["en"].entries == 3
        assert cosines(forum, Query("wifi", language=""))["wifi"] > 0
        assert cosines(forum, Query("wifi", language="ru"))["wifi"] == -1.0  # none of the forum's: by words
        assert cosines(forum, german("wifi"))["wifi"] == -1.0


def test_vectors_follow_what_is_added_edited_deleted_and_said_of_a_language(
    path: Path, server: EmbeddingServer
) -> None:
    synonym_model().save(path.parent / "model")
    with Forum.open(path) as forum:
        forum.use_model(path.parent / "model", language="de")  # askalike's own are followed without an endpoint
        forum.encode()
    assert vectors_in(path, "de") == {"wlan", "drucker"}
    with Forum.open(path) as forum:
        forum.add([Question("neu", "printer offline", language="de"), Question("new", "printer", language="en")])
        forum.edit(replace(forum.question("wifi"), language="de"))
        forum.edit(replace(forum.question("drucker"), language="fr"))
        forum.delete("wlan")
        assert forum.search(german("wlan disconnects")).hits[0].question.id == "wifi"
    assert vectors_in(path, "de") == {"neu", "wifi"}
    assert Forum.check(path).is_sound
    with Forum.change_languages(path, ["en", "fr"]):
        pass
    with Forum.change_languages(path, ["en", "de", "fr"]) as forum:
        assert forum.vectors.by_language["de"].model.startswith("own")
    assert vectors_in(path, "de") == {"neu", "wifi"}


def test_pairs_are_compared_by_the_vectors_of_their_language(path: Path) -> None:
    synonym_model().save(path.parent / "model")
    with Forum.open(path) as forum:
        assert [(one.question.id, one.candidate.id, one.cosine) for one in forum.duplicates(0.0)] == [
            ("wlan", "wifi", None)
        ]
        forum.use_model(path.parent / "model", language="de")
        forum.encode()
        forum.add(Question("funk", "wireless disconnects", language="de"))
        found = {frozenset((one.question.id, one.candidate.id)): one.cosine for one in forum.duplicates(0.0)}
        assert found[frozenset(("funk", "wlan"))] == pytest.approx(1.0, abs=0.01)
        assert frozenset(("funk", "wifi")) not in found  # in English: by words alone, of which none is shared


def test_the_old_vectors_of_a_language_answer_until_the_new_are_complete(path: Path, server: EmbeddingServer) -> None:
    synonym_model().save(path.parent / "model")
    with Forum.open(path) as forum:
        forum.use_model(path.parent / "model", language="de")
        forum.encode()
        server.plan = ["", "500", "500", "500", "500", "500", "500", "500", "500"]
        forum.use_encoder(f"tei:{server.address}", language="de")
        state = forum.vectors.by_language["de"]
        assert (state.model[:3], state.next_model[:3], state.waiting) == ("own", "tei", 5)
        assert forum.search(german("wlan")).hits[0].question.id == "wlan"
        server.plan.clear()
        forum.encode()
        assert forum.vectors.by_language["de"].model.startswith("tei")
        forum.forget_language_encoder("de")
        assert forum.vectors.by_language == {}
        assert cosines(forum, german("wifi"))["wlan"] == -1.0
    assert Forum.check(path).is_sound
    assert not any(ForumLayout(path).of_language("de").vectors.glob("*/index"))


WORKER = """
import sys
from askalike import Forum
from askalike.index import vector_indexer
from askalike.index.catchup import Steps

vector_indexer.STEPS_OF_TEXTS = Steps(batch=16, scan=32, changes=16)
with Forum.open(sys.argv[1]) as forum:
    forum.encode()
"""


def test_a_process_that_is_killed_leaves_the_old_vectors_or_the_new(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many"
    names = {"de": "frage", "en": "question"}
    questions = [
        Question(f"{code}{number}", f"{name} {number} zu {number % 17}", language=code)
        for number in range(400)
        for code, name in names.items()
    ]
    with Forum.create(path, text=TEXT) as forum:
        forum.put_unindexed(questions)
        forum.catch_up()
        forum.use_encoder(f"tei:{server.address}", language="de")
    monkeypatch.setenv("ASKALIKE_ENCODERS", f"tei:{server.address}")
    for kill in range(3):
        reached = threading.Event()
        target = len(server.requests) + 8
        server.on_request = lambda count, target=target, reached=reached: (  # type: ignore[misc]
            reached.set() if count >= target else None
        )
        with subprocess.Popen([sys.executable, "-c", WORKER, str(path)]) as process:
            if kill < 2:
                assert reached.wait(120)
                process.send_signal(signal.SIGKILL)
            else:
                assert process.wait(120) == 0
        if kill < 2:
            with Forum.open(path) as forum:
                state = forum.vectors.by_language["de"]
                assert (state.model, state.waiting > 0) == ("", True)
    assert Forum.check(path).is_sound
    with Forum.open(path) as forum:
        numbers = forum.numbers([one.id for one in questions if one.language == "de"])
        (place,) = ForumLayout(path).of_language("de").vectors.glob("*/index")
        held, found = VectorIndex(place).vectors(list(numbers.values()))
        assert sorted(held.tolist()) == sorted(numbers.values())
        titles = {numbers[one.id]: one.title for one in questions if one.language == "de"}
        expected = server.encoder.vectors([titles[number] for number in held.tolist()])
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        assert (found * expected).sum(axis=1).min() > 0.999


def test_damage_of_a_languages_vectors_is_found_and_mended(path: Path) -> None:
    synonym_model().save(path.parent / "model")
    with Forum.open(path) as forum:
        forum.use_model(path.parent / "model", language="de")
        forum.encode()
    (place,) = ForumLayout(path).of_language("de").vectors.glob("*/index")
    damaged = max(place.glob("*.segment"), key=lambda one: one.stat().st_size)
    damaged.write_bytes(damaged.read_bytes()[:-8])
    report = Forum.check(path)
    assert [one.path.startswith("languages/de/vectors/") for one in report.findings if one.is_damage] == [True]
    assert Forum.repair(path).is_sound
    assert vectors_in(path, "de") == {"wlan", "drucker"}
    ForumLayout(path).of_language("de").encoder.write_text("{")
    assert [one.path for one in Forum.check(path).findings if one.is_damage] == ["languages/de"]
    with Forum.open(path) as forum:
        assert "encoder.json cannot be read" in forum.info().vectors.by_language["de"].problem
        assert forum.search(german("wlan")).hits[0].question.id == "wlan"
    shutil.rmtree(ForumLayout(path).of_language("de").vectors)
    with Forum.open(path) as forum:
        assert {hit.question.id for hit in forum.search(german("wifi")).hits} == {"wlan", "wifi"}


def test_a_forum_that_is_copied_or_indexed_anew_keeps_the_encoders_of_its_languages(path: Path) -> None:
    synonym_model().save(path.parent / "model")
    with Forum.open(path) as forum:
        forum.use_model(path.parent / "model", language="de")
        forum.encode()
    shutil.copytree(path, path.parent / "copy")
    assert vectors_in(path.parent / "copy", "de") == {"wlan", "drucker"}
    with Forum.reindex(path) as forum:
        assert forum.vectors.by_language["de"].entries == 2
    with Forum.open(path) as forum, pytest.raises(SettingError, match="de has an encoder of its own"):
        forum.use_engine("milvus:elsewhere.db")
    assert not (path / "engine.json").exists()


def test_what_cannot_be_is_refused_and_says_what_to_do(tmp_path: Path, path: Path) -> None:
    with Forum.open(path) as forum:
        with pytest.raises(SettingError, match="not in the language 'sv'"):
            forum.use_encoder(WordHashes(), language="sv")
        with pytest.raises(SettingError, match="not in the language"):
            forum.forget_language_encoder("sv")
    (tmp_path / "elsewhere").mkdir()
    (path / "languages").symlink_to(tmp_path / "elsewhere")
    with Forum.open(path) as forum, pytest.raises(SettingError, match="is a link"):
        forum.use_encoder(WordHashes(), language="de")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with Forum.create(tmp_path / "one") as forum, pytest.raises(SettingError) as raised:
        forum.use_encoder(WordHashes(), language="en")
    assert "reindex FORUM --language" in raised.value.hint


def test_the_command_line_names_shows_and_takes_away_a_languages_encoder(
    run: Run, path: Path, server: EmbeddingServer
) -> None:
    named = run("encode", path, "--language", "de-AT", "--model", f"tei:{server.address}", "--json")
    assert (named.code, named.json["by_language"]["de"]["encoded"]) == (0, 2)
    shown = run("info", path)
    assert "de by tei:" in shown.out
    assert "2 encoded, 0 waiting" in " ".join(shown.out.split())
    assert run("info", path, "--json").json["by_language"]["de"]["model"].startswith("tei:")
    assert run("add", path, "--title", "wireless disconnects heute", "--language", "de").code == 0
    found = run("search", path, "wireless disconnects", "--query-language", "de", "--json").json
    assert {hit["question"]["id"] for hit in found} >= {"wlan"}
    for wrong in (("--language", "de"), ("--language", "de", "--model", "general"), ("--model", "none")):
        assert run("encode", path, *wrong).code == 2
    assert run("encode", path, "--language", "sv", "--model", f"tei:{server.address}").code == 2
    assert run("encode", path, "--language", "de", "--model", "none").code == 0
    assert run("info", path, "--json").json["by_language"] == {}
    assert json.loads(run("check", path, "--json").out)["is_sound"]


GERMAN = ("Der Drucker druckt nicht", "Welcher Drucker ist gut?", "Akku leer", "Neuer Akku gesucht")
SPANISH = ("El avión no llega", "Quiero un avión nuevo", "Sin batería", "Otra batería")


def test_misspelt_words_of_a_language_are_read_by_the_forums_own_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.forum.engine.LEAST_READ", 4)
    text = TextSettings(languages=("en", "de", "es", "fr"))
    with Forum.create(tmp_path / "many", text=text, encoder=WordHashes()) as forum:
        forum.add([Question(f"de{place}", title, language="de") for place, title in enumerate(GERMAN)])
        forum.add([Question(f"es{place}", title, language="es") for place, title in enumerate(SPANISH)])
        forum.add([Question(f"en{place}", "drunker printers", language="en") for place in range(3)])

        def read(title: str, language: str) -> dict[str, str]:
            found = forum.search(Query(title, language=language)).corrections
            return {one.written: one.meant for one in found}

        assert read("mein druckre streikt", "de") == {"druckre": "drucker"}  # none of its own words is unknown alone
        assert read("donde esta el avoin", "es") == {}  # two edits: a swap and an accent
        assert read("donde esta el avión y la batreía", "es") == {"batreía": "batería"}
        assert read("donde esta la baterña", "es") == {"baterña": "batería"}
        assert read("mein drunker", "de") == {}  # a word of the forum, though of another language
        assert read("mein druckre streikt", "fr") == {}  # too few questions are in French
        monkeypatch.setattr("askalike.forum.engine.LEAST_READ", 5)
    with Forum.open(tmp_path / "many", encoder=WordHashes()) as forum:
        assert read("mein druckre streikt", "de") == {}


def test_a_languages_own_model_corrects_by_its_words(path: Path) -> None:
    synonym_model([{"wlan", "funknetz"}, {"drucker"}]).save(path.parent / "model")
    with Forum.open(path) as forum:
        forum.use_model(path.parent / "model", language="de")
        forum.add(Question("zweiter", "drucker kaputt", language="de"))
        forum.encode()
        found = forum.search(german("mein druckre streikt"))
        assert [(one.written, one.meant) for one in found.corrections] == [("druckre", "drucker")]

"""A forum in several languages: each question's is kept, its words are read by it, and it can be changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.command import Run
from tests.embedding_server import WordHashes

from askalike.errors import ForumError, InputError, MissingExtraError, SettingError
from askalike.forum import Forum, ForumSettings
from askalike.server.app import build
from askalike.server.settings import ServeSettings
from askalike.text import languages
from askalike.text.languages import Detector, prose
from askalike.text.settings import TextSettings
from askalike.types import Filters, Query, Question

pytest.importorskip("py3langid")
WORDS = ForumSettings(has_vectors=False)
QUESTIONS = (
    Question("containers", "Docker containers do not start", "After the upgrade no container starts any more."),
    Question("printer", "Printer prints blank pages", "Every page it prints is blank."),
    Question("drucker", "Drucker druckt nur leere Seiten", "Seit dem letzten Update druckt mein Drucker nichts mehr."),
    Question("docker", "Docker startet nach dem Neustart nicht", "Der Container will einfach nicht starten."),
    Question("imprimante", "Mon imprimante n'imprime que des pages blanches", "Depuis la mise à jour, rien à faire."),
)


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "forum", text=TextSettings(languages=("en", "de", "fr")), settings=WORDS) as forum:
        forum.add(QUESTIONS)
        yield forum


def found(forum: Forum, title: str, **more: object) -> list[str]:
    return [hit.question.id for hit in forum.search(Query(title, **more)).hits]  # type: ignore[arg-type]


# -- telling languages apart -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "body", "language"),
    [
        ("Warum startet mein Drucker nicht?", "", "de"),
        ("Docker", "Mein Container startet seit dem Update nicht mehr, was kann ich tun?", "de"),
        ("12345 --help /etc/hosts", "", ""),
        ("Как установить докер на сервер?", "", "ru"),  # none of the forum's
        ("どうやってインストールしますか", "", "ja"),
        ("怎么安装这个软件", "", "zh"),
    ],
)
def test_a_text_is_in_the_likeliest_of_the_forums_languages_or_plainly_in_another(
    title: str, body: str, language: str
) -> None:
    said = Detector(("en", "de", "fr")).language_of(title, body)
    assert said == language or (language == "zh" and said in {"wuu", "yue"})


def test_a_short_title_is_read_as_most_questions_are() -> None:
    title = "Problem installation"
    equal, german = Detector(("en", "de")), Detector(("en", "de"), {"de": 5_000_000})
    assert (equal.language_of(title), german.language_of(title)) == ("en", "de")
    for _ in range(3):
        german.note("fr")  # no language of the forum: nothing to count
    assert german.language_of("How do I install this printer on my computer?") == "en"


def test_code_and_addresses_say_nothing_and_a_huge_body_costs_no_more() -> None:
    body = "```\nfor line in open(path):\n    print(line)\n```\nWas mache ich hier eigentlich falsch?"
    assert prose("Python", body, "markdown") == "Python Was mache ich hier eigentlich falsch?"
    assert Detector(("en", "de")).language_of("Python", body, "markdown") == "de"
    assert len(prose("x", "wort " * 2_000_000)) <= languages.MOST_CHARACTERS
    assert Detector(("en", "de")).language_of("", "Der Drucker druckt nicht. " * 400_000) == "de"


def test_a_forums_languages_can_be_detected_and_the_first_is_the_main_one() -> None:
    assert TextSettings(languages=("de-AT", "en", "de")).languages == ("de", "en")
    assert TextSettings(languages=("de", "en")).language == "german"
    assert TextSettings(languages=("ja", "en")).language == "none"  # no stemmer: words as they are written
    assert TextSettings(languages=("de",)) == TextSettings("german")
    with pytest.raises(SettingError, match="'tlh' cannot be detected"):
        TextSettings(languages=("en", "tlh"))
    single = TextSettings()
    assert "languages" not in single.to_json()  # an index of before has the same name
    assert TextSettings.from_json(TextSettings(languages=("en", "fr")).to_json()).languages == ("en", "fr")


def test_without_the_detector_a_forum_of_several_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> object:
        raise MissingExtraError("a forum in several languages needs py3langid", "languages")

    monkeypatch.setattr(languages, "_identifier", missing)
    with Forum.create(tmp_path / "one", settings=WORDS) as single:
        single.add(QUESTIONS[0])
        assert found(single, "docker") == ["containers"]
    with Forum.create(tmp_path / "two", text=TextSettings(languages=("en", "de")), settings=WORDS) as two:
        two.add(replace(QUESTIONS[0], language="en"))  # what is said need not be found out
        assert found(two, "docker", language="en") == ["containers"]
        with pytest.raises(MissingExtraError, match="py3langid"):
            two.add(QUESTIONS[1])
        with pytest.raises(MissingExtraError, match="py3langid"):
            two.similar("docker")


# -- what a question keeps -------------------------------------------------------------------------------------------


def test_a_question_keeps_what_was_detected_until_its_text_changes_or_somebody_says_it(forum: Forum) -> None:
    assert {question.id: question.language for question in forum.questions()} == {
        "containers": "en",
        "printer": "en",
        "drucker": "de",
        "docker": "de",
        "imprimante": "fr",
    }
    assert all(question.is_language_detected for question in forum.questions())
    forum.edit(replace(forum.question("drucker"), title="My printer prints nothing", body="Since the last update."))
    assert forum.question("drucker").language == "en"
    forum.edit(replace(forum.question("drucker"), language="de-CH", is_language_detected=False))
    assert forum.question("drucker").language == "de"
    forum.edit(replace(forum.question("drucker"), title="My printer has no ink", body="What now?"))
    assert forum.question("drucker").language == "de"
    forum.edit(replace(forum.question("drucker"), language=""))  # to be found out again
    assert forum.question("drucker").language == "en"
    assert forum.info().languages == {"en": 3, "de": 1, "fr": 1}
    with pytest.raises(InputError, match="the language is 'german'"):
        forum.put(Question("x", "Hallo", language="german"))


def test_reading_an_archive_again_changes_nothing_and_its_own_languages_are_kept(forum: Forum, tmp_path: Path) -> None:
    archive = tmp_path / "questions.jsonl"
    rows = [
        {"id": "1", "title": "Wie installiere ich das?", "body": "Ich finde keine Anleitung dazu."},
        {"id": "2", "title": "Help", "language": "fr-CA"},
        {"id": "3", "title": "Welcome", "language": "klingon"},
    ]
    archive.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = forum.load(archive)
    assert [forum.question(identifier).language for identifier in "123"] == ["de", "fr", "en"]
    assert report.repaired == {"languages that are no codes, left out": 1}
    assert forum.load(archive).load.questions.unchanged == 3
    written = forum.export(tmp_path / "exported", tables=["questions"])
    with Forum.create(tmp_path / "again", settings=WORDS) as again:
        again.load(tmp_path / "exported")
        assert written["questions"] == len(again)
        assert again.question("2").language == "fr"
        assert again.question("1").language == ""  # a forum in one language finds out nothing


# -- what is found ---------------------------------------------------------------------------------------------------


def test_each_language_is_read_by_its_own_rules(forum: Forum) -> None:
    assert found(forum, "leere Seite wird gedruckt")[0] == "drucker"
    assert found(forum, "imprimantes: page blanche")[0] == "imprimante"
    hit = forum.search(Query("Warum drucken die Drucker leere Seiten?")).hits[0]
    assert {match.word for match in hit.matched} >= {"Drucker", "leere", "Seiten"}
    assert "die" not in hit.missing
    assert (hit.likelihood or 0) > 0.3


def test_names_are_found_in_other_languages(forum: Forum) -> None:
    """German makes "dock" of Docker; the English question has "docker"."""
    assert set(found(forum, "Wie benutze ich Docker?")) == {"docker", "containers"}
    hit = next(hit for hit in forum.search(Query("Wie benutze ich Docker?")).hits if hit.question.id == "containers")
    assert [match.word for match in hit.matched] == ["Docker"]
    assert "Docker" not in hit.missing


def test_a_query_may_say_its_language_and_ask_for_one(forum: Forum) -> None:
    assert found(forum, "will", language="en") == []  # a function word in English, and none in German
    assert found(forum, "will", language="de") == ["docker"]
    assert set(found(forum, "docker", filters=Filters(languages=("de",)))) == {"docker"}
    assert set(found(forum, "docker", filters=Filters(languages=("de-DE", "en")))) == {"docker", "containers"}
    assert found(forum, "docker", filters=Filters(languages=("sv",))) == []
    assert forum.indexes.count(Filters(languages=("de",))) == 2
    with pytest.raises(SettingError, match="languages is the text"):
        Filters(languages="de")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="the language is"):
        Query("docker", language="german")


def test_a_post_in_two_languages_or_none_of_the_forums_is_found_by_its_words(forum: Forum) -> None:
    mixed = "Docker startet nicht\n\nThe log says: cannot connect to the daemon. Was bedeutet das?"
    forum.add([Question("mixed", "Daemon", mixed), Question("ru", "Как установить докер на сервер?")])
    forum.add(
        [
            Question("ja", "プリンターが印刷しない"),
            Question("he", "המדפסת לא מדפיסה"),
            Question("code", "/tmp/x1 --all"),
        ]
    )
    assert forum.question("ru").language == "ru"
    assert forum.question("code").language == ""
    assert found(forum, "cannot connect daemon")[0] == "mixed"
    assert found(forum, "установить докер") == ["ru"]
    assert found(forum, "印刷")[0] == "ja"
    assert found(forum, "המדפסת") == ["he"]
    assert "code" in found(forum, "/tmp/x1")


def test_questions_without_an_encoder_of_their_language_are_scored_by_words(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "forum", text=TextSettings(languages=("en", "de"))) as forum:
        forum.add(QUESTIONS[:4])
        if not forum.indexes.state().model:
            pytest.skip("the package carries no general model")
        ids, _ = forum.models.vectors()
        assert ids == ["containers", "printer"]
        hit = forum.search(Query("Drucker druckt leere Seiten")).hits[0]
        assert (hit.question.id, hit.components["cosine"]) == ("drucker", 0.0)
        assert (hit.likelihood or 0) > 0.3
        by_meaning = forum.search(Query("The printer puts out empty sheets", language="en")).hits
        assert by_meaning[0].question.id == "printer"
        forum.edit(replace(forum.question("containers"), title="Container startet nicht", body="Was kann ich tun?"))
        assert forum.models.vectors()[0] == ["printer"]
        assert Forum.check(forum.path).is_sound
    with Forum.change_languages(tmp_path / "forum", ["en"]) as forum:
        assert set(forum.models.vectors()[0]) == {"containers", "printer", "drucker", "docker"}
        assert {question.language for question in forum.questions()} == {""}
    assert Forum.check(tmp_path / "forum").is_sound


# -- changing a forum's languages ------------------------------------------------------------------------------------


def test_a_forum_of_one_language_becomes_one_of_several_and_again_one(tmp_path: Path) -> None:
    path = tmp_path / "forum"
    with Forum.create(path, settings=WORDS) as forum:
        forum.add([*QUESTIONS, Question("said", "Sonne", language="de")])
        assert found(forum, "drucken") == []
    with Forum.change_languages(path, ["en", "de"], settings=WORDS) as forum:
        assert forum.question("drucker").language == "de"
        assert found(forum, "drucken") == ["drucker"]
        assert forum.info().languages["de"] == 3
    with Forum.change_languages(path, ["en"], settings=WORDS) as forum:
        assert {question.language for question in forum.questions()} == {"", "de"}  # what somebody said stays
        assert found(forum, "drucken") == []
    with pytest.raises(SettingError, match="no language is given"):
        Forum.change_languages(path, [])


def test_who_has_the_forum_open_is_told_when_its_languages_change(tmp_path: Path) -> None:
    path = tmp_path / "forum"
    with Forum.create(path, settings=WORDS) as forum:
        forum.add(QUESTIONS)
        Forum.change_languages(path, ["en", "de"], settings=WORDS).close()
        with pytest.raises(ForumError, match="has changed how the texts"):
            forum.similar("docker")
        with pytest.raises(ForumError, match="open the forum again"):
            forum.add(Question("new", "Another"))
    with Forum.open(path, settings=WORDS) as again:
        assert again.question("new").id == "new"  # it was stored, and is found now
        assert "new" in found(again, "another")


# -- on the command line and over HTTP ---------------------------------------------------------------------------------


def test_the_command_line_makes_shows_sets_and_filters_by_languages(run: Run, tmp_path: Path) -> None:
    path, archive = tmp_path / "my.forum", tmp_path / "posts.jsonl"
    archive.write_text(
        "".join(
            json.dumps({"id": question.id, "title": question.title, "body": question.body}) + "\n"
            for question in QUESTIONS
        )
    )
    index = ("index", archive, "--into", path, "--no-encode")
    assert run(*index, "--language", "en,de,fr").code == 0
    assert run(*index).code == 0  # a forum that is there keeps its languages
    assert "made with --language en,de,fr" in run(*index, "--language", "en,de").err
    assert "in de (detected)" in run("show", path, "drucker").out
    with Forum.open(path) as forum:
        forum.add(Question("hallo", "Hallo", language="de-CH"))
        assert forum.question("hallo").language == "de"
    assert run("info", path, "--json").json["languages"] == {"de": 3, "en": 2, "fr": 1}
    assert "de 3, en 2, fr 1" in run("info", path).out
    hits = run("search", path, "docker", "--language", "de", "--query-language", "de", "--json").json
    assert [hit["question"]["id"] for hit in hits] == ["docker"]
    assert "No question is in sv." in run("search", path, "docker", "--language", "sv").out
    assert "cannot be detected" in run("reindex", path, "--no-encode", "--language", "en,tlh").err
    assert run("reindex", path, "--no-encode", "--language", "de").code == 0
    assert run("info", path, "--json").json["language"] == "german"
    assert run("check", path).code == 0


def test_the_service_filters_by_languages_and_takes_a_questions_own(forum: Forum) -> None:
    path = forum.path
    forum.close()
    with TestClient(build(ServeSettings(str(path))), base_url="http://localhost:8765") as client:

        def ids(**fields: object) -> set[str]:
            answer = client.post("/v1/similar", json={"title": "docker", "ranker": "words", **fields})
            assert answer.status_code == 200, answer.text
            return {hit["question"]["id"] for hit in answer.json()["hits"]}

        assert ids() == {"docker", "containers"}
        assert ids(languages=["de-AT"]) == {"docker"}
        assert ids(languages=["en"], query_language="de") == {"containers"}
        assert client.post("/v1/similar", json={"title": "docker", "languages": ["klingon"]}).status_code == 422
        assert client.put("/v1/questions/docker", json={"title": "Docker", "language": "fr"}).is_success
        assert client.get("/v1/questions/docker").json()["question"]["language"] == "fr"
        similar = client.post("/v1/similar", json={"id": "docker"}).json()["hits"]
        assert "docker" not in {hit["question"]["id"] for hit in similar}


# -- misspelt words --------------------------------------------------------------------------------------------------

GERMAN = ("Der Drucker druckt nicht", "Welcher Drucker ist gut?", "Akku leer", "Neuer Akku gesucht")
SPANISH = ("El avión no llega", "Quiero un avión nuevo", "Sin batería", "Otra batería")


def test_misspelt_words_of_a_language_are_read_by_the_forums_own_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.forum.encoders.LEAST_READ", 4)
    text = TextSettings(languages=("en", "de", "es", "fr"))
    with Forum.create(tmp_path / "many", text=text, encoder=WordHashes()) as forum:
        forum.add([Question(f"de{place}", title, language="de") for place, title in enumerate(GERMAN)])
        forum.add([Question(f"es{place}", title, language="es") for place, title in enumerate(SPANISH)])
        forum.add([Question(f"en{place}", "drunker printers", language="en") for place in range(3)])

        def read(title: str, language: str) -> dict[str, str]:
            corrections = forum.search(Query(title, language=language)).corrections
            return {correction.written: correction.meant for correction in corrections}

        assert read("mein druckre streikt", "de") == {"druckre": "drucker"}  # none of its own words is unknown alone
        assert read("donde esta el avoin", "es") == {}  # two edits: a swap and an accent
        assert read("donde esta el avión y la batreía", "es") == {"batreía": "batería"}
        assert read("donde esta la baterña", "es") == {"baterña": "batería"}
        assert read("mein drunker", "de") == {}  # a word of the forum, though of another language
        assert read("mein druckre streikt", "fr") == {}  # too few questions are in French
        monkeypatch.setattr("askalike.forum.encoders.LEAST_READ", 5)
    with Forum.open(tmp_path / "many", encoder=WordHashes()) as forum:
        assert read("mein druckre streikt", "de") == {}

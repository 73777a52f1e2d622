"""What a user sees with the bundled encoder; skipped where the package was built without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command import Run

from askalike import Forum
from askalike.data import bundled_forum, general_folder
from askalike.errors import ModelNotFoundError, NotLearnedError
from askalike.evaluation.forum.evaluation import evaluate_forum
from askalike.models.general import GeneralEncoder

pytestmark = pytest.mark.skipif(general_folder() is None, reason="the package was built without its encoder")

EARPHONES = "My earphones are muffled in Skype"
REPEATED = {"q1136", "q1177"}
"""Marked as duplicates of each other; both say what ``EARPHONES`` says, in other words."""


@pytest.fixture(scope="module")
def homenet(encoded_homenet: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    path = shutil.copytree(encoded_homenet, tmp_path_factory.mktemp("forums") / "homenet.forum")
    with Forum.open(path) as forum:
        yield forum


def test_the_bundled_encoder_is_sound_and_small(homenet: Forum) -> None:
    folder = general_folder()
    assert folder is not None
    encoder = GeneralEncoder(folder)
    assert homenet.models.encoder == encoder.name
    assert sum(file.stat().st_size for file in folder.iterdir()) < 25_000_000


def test_the_search_finds_a_question_that_shares_no_content_word(homenet: Forum, run: Run) -> None:
    assert homenet.similar(EARPHONES, ranker="words") == []
    hits = run("search", homenet.path, EARPHONES, "--json").json
    assert hits[0]["question"]["id"] == "q1136"
    assert REPEATED & {hit["question"]["id"] for hit in hits} == {"q1136"}  # of which the other is a duplicate
    assert hits[0]["matched"] == []
    shown = run("search", homenet.path, EARPHONES, "--explain").out
    assert "matched by meaning, no shared word" in shown
    assert f"cosine {hits[0]['components']['cosine']:.2f} · bm25 0.00" in shown


def test_explain_shows_the_sum_of_which_a_probability_is_made(homenet: Forum, run: Run) -> None:
    words = ("search", homenet.path, "Zoom stutters when my wife uploads photos", "-k", "1")
    (hit,) = run(*words, "--json").json
    shown = " ".join(run(*words, "--explain").out.split())
    (share, total, terms), *others = re.findall(r"([\d.]+)% = σ\(([-+.\d]+)\): (.+?) (?:accepted )?answer:", shown)
    addends = {name: float(part) for name, part in re.findall(r"([a-z' ]+) ([-+][.\d]+)", terms)}
    assert not others
    assert {"base", "cosine", "title in text"} <= {name.strip() for name in addends}
    assert sum(addends.values()) == pytest.approx(float(total), abs=0.05)
    assert float(share) / 100 == pytest.approx(hit["components"].get("alone", hit["score"]), abs=0.001)


def test_meaning_ranks_marked_duplicates_at_least_as_well_as_words(homenet: Forum) -> None:
    reports = evaluate_forum(homenet, "retrieval", ("search", "words")).reports
    means = {name: report.means["ndcg@10"] for name, report in reports.items()}
    assert means["search"] > means["words"]


GERMAN = """Drucker verschwindet nach Stromausfall|Ich habe den Router neu gestartet, aber er wird nicht mehr gefunden.
Passwort vergessen|Die E-Mail mit dem Link kommt nicht an, und ich komme nicht mehr in mein Konto.
WLAN bricht jeden Abend ab|Gegen acht Uhr verliert mein Laptop die Verbindung, am Handy läuft alles normal.
Docker startet nach dem Update nicht|Ich bekomme permission denied, wenn ich docker ausführe. Was ist falsch?"""


def test_a_text_that_does_not_read_like_the_forums_language_is_told(tmp_path: Path, run: Run) -> None:
    table = tmp_path / "de.csv"
    rows = [f'{number},"{title}","{body}"' for number, title, body in _numbered(GERMAN)]
    table.write_text("\n".join(["id,title,body", *rows]), encoding="utf-8")
    said = run("index", table, "--into", tmp_path / "f").out
    assert "note: the text does not look like English, the language of the bundled encoder" in said
    assert run("index", table, "--into", tmp_path / "f", "--json").json["is_in_its_language"] is False
    for others in (("--language", "german"), ("--no-encode",)):
        assert "does not look like" not in run("index", table, "--into", tmp_path / others[-1], *others).out
    assert run("index", table, "--into", tmp_path / "german", "--json").json["is_in_its_language"] is True
    english = run("index", bundled_forum(), "--into", tmp_path / "en")
    assert "does not look like" not in english.out
    assert run("index", bundled_forum(), "--into", tmp_path / "en", "--json").json["is_in_its_language"] is True


def _numbered(lines: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines.splitlines(), start=1):
        title, _, body = line.partition("|")
        yield number, title, body


def test_a_forum_in_another_language_is_not_encoded_by_a_model_that_cannot_read_it(tmp_path: Path, run: Run) -> None:
    table, path = tmp_path / "de.csv", tmp_path / "de.forum"
    table.write_text("id,title\n1,Kopfhörer klingen dumpf\n2,Der Drucker druckt leere Seiten\n", encoding="utf-8")
    said = run("index", table, "--into", path, "--language", "german")
    assert said.code == 0
    assert "searching by words only: the bundled encoder reads english, and the forum is in german" in said.out
    with Forum.open(path) as forum:
        assert (forum.indexes.state().model, forum.indexes.state().waiting, forum.indexes.state().next_model) == (
            "",
            0,
            "",
        )
        assert not forum.similar("Welches Brot backe ich morgen?"), "nothing is alike where no word is"
        (hit,) = forum.similar("Warum klingt mein Kopfhörer dumpf?")
        assert (hit.question.id, hit.likelihood) == ("1", hit.score)
        with pytest.raises(ModelNotFoundError, match="contains none for german"):
            forum.encode()
        with pytest.raises(NotLearnedError) as raised:
            forum.similar("Kopfhörer", ranker="meaning")
        assert "askalike train FORUM" in str(raised.value.hint)
    assert run("index", table, "--into", path, "--json").json["model"] is None


def test_encoding_leaves_no_file_of_anybody_else(tmp_path: Path) -> None:
    script = (
        "from askalike.data import general_folder; from askalike.models.general import GeneralEncoder;"
        " GeneralEncoder(general_folder()).encode_query(['Wifi drops'])"
    )
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "XDG_"))}
    places = {"HOME": str(home), "USERPROFILE": str(home), "TMPDIR": str(temporary), "TEMP": str(temporary)}
    subprocess.run([sys.executable, "-c", script], env=environment | places, check=True)
    assert [*home.rglob("*"), *temporary.rglob("*")] == [], "as a queue of events that ONNX Runtime would send"

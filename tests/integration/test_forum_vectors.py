"""Vectors beside words: kept in step with the archive, switched with the model, and whole after every accident."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.tiny_models import gated_model, synonym_model

from askalike import Filters, Forum, ForumSettings, Hit, Model, Query, Question
from askalike.errors import (
    BusyForumError,
    DamagedForumError,
    DamagedModelError,
    ForumError,
    ModelError,
    ModelNotFoundError,
)
from askalike.index import vector_sets as vectors_module
from askalike.index.catchup import Steps
from askalike.progress import SilentProgress
from askalike.search import Candidates, Engine
from askalike.search.explanation import explain
from askalike.store import ForumLayout, open_store
from askalike.text.analyzer import Analyzer

WIFI = Question("wifi", "Wifi drops", tags=("Network", "home"), created=datetime(2020, 1, 1, tzinfo=UTC))
PRINTER = Question("printer", "Printer offline", tags=("printer",), created=datetime(2021, 1, 1, tzinfo=UTC))
OTHER = Question("other", "Which keyboard to buy")


class Interrupting(SilentProgress):
    """Stops the work as Ctrl-C does, once more than ``after`` questions are encoded."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.is_encoding = False

    def start(self, phase: str, total: int, unit: str) -> None:
        self.is_encoding = phase == "encoding"

    def advance(self, count: int) -> None:
        self.left -= count if self.is_encoding else 0
        if self.left < 0:
            raise KeyboardInterrupt


def ids(hits: list[Hit]) -> list[str]:
    return [hit.question.id for hit in hits]


def nearest(forum: Forum, title: str, k: int = 10, filters: Filters | None = None) -> list[str]:
    """Return what is found by vectors alone with a cosine above 0."""
    hits = forum.similar(title, k=k, ranker="meaning", filters=filters)
    return [hit.question.id for hit in hits if hit.score > 1e-6]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a forum of three questions with a model by which wifi and wireless are one."""
    path = tmp_path / "small.forum"
    with Forum.create(path) as forum:
        forum.models.use_model(saved(synonym_model(), tmp_path / "synonyms"))
        forum.add([WIFI, PRINTER, OTHER])
    return path


@pytest.fixture
def small(path: Path) -> Iterator[Forum]:
    with Forum.open(path) as forum:
        yield forum


def saved(model: Model, folder: Path) -> Path:
    model.save(folder)
    return folder


def sets(path: Path) -> list[str]:
    return sorted(folder.name for folder in ForumLayout(path).vectors.iterdir() if folder.is_dir())


# -- finding -------------------------------------------------------------------------------------------------------


def test_hits_and_corrections_of_a_search_are_of_one_state(small: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.forum.encoders.LEAST_READ", 2)

    def stored_meanwhile(engine: Engine, analyzer: Analyzer, tables: Sequence[Candidates]) -> list[list[Hit]]:
        monkeypatch.setattr("askalike.search.searcher.explain", explain)
        with Forum.open(small.path) as other:
            other.add(Question("new", "wirelss wirelss"))  # from now on the word is known
        small.similar("wifi", ranker="words")  # and another search of this forum has seen it
        return explain(engine, analyzer, tables)

    small.add([Question("one", "Wireless drops"), Question("two", "Wireless lost")])
    before = small.search(Query("wirelss drops"))
    monkeypatch.setattr("askalike.search.searcher.explain", stored_meanwhile)
    during = small.search(Query("wirelss drops"))
    assert [(correction.written, correction.meant) for correction in before.corrections] == [("wirelss", "wireless")]
    assert replace(during, seconds={}) == replace(before, seconds={})
    assert small.search(Query("wirelss drops")).corrections == ()


def test_a_small_forum_corrects_no_english_word_and_only_into_its_own(small: Forum) -> None:
    small.add([Question("one", "Printer stalls"), Question("two", "A printer on the ceiling")])
    for written, meant in (("pritner", "printer"), ("painter", None), ("ceilling", None)):
        corrections = {
            correction.written: correction.meant for correction in small.search(Query(f"{written} stalls")).corrections
        }
        assert corrections.get(written) == meant


def test_verdicts_move_likelihoods_and_what_is_withdrawn_does_not(small: Forum) -> None:
    def likely() -> float:
        return small.similar("wireless disconnects")[0].score

    small.add([Question("again", "Wlan lost")])  # its vector is that of "wifi"
    before = likely()
    pairs = (before, 1.0)
    assert small.indexes.likelihoods(pairs) == list(pairs)
    small.judge("again", "wifi", "different")
    assert likely() == before  # one judgement says little
    others = [f"other {number}" for number in range(60)]
    small.add([Question(other, "Wlan lost") for other in others])
    known = small.indexes.likelihoods(pairs)
    for other in others:
        small.judge(other, "printer", "duplicate")
    moved = small.indexes.likelihoods(pairs)
    assert moved[0] > known[0]
    assert moved[1] == 1.0
    for other in others:
        small.judge(other, "printer", "withdrawn")
    assert small.indexes.likelihoods(pairs) == known


@pytest.mark.parametrize("query", ["the is", "the zebra", ""])
def test_a_query_without_a_telling_word_that_the_model_knows_has_no_neighbours(tmp_path: Path, query: str) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.models.use_model(
            saved(gated_model(), tmp_path / "gated")
        )  # it knows "the" and "is", and unknown words count
        forum.add([WIFI, PRINTER, OTHER])
        assert len(forum.similar("the wifi", ranker="meaning")) > 0
        assert forum.similar(query) == []
        assert forum.similar(query, ranker="meaning") == []
        assert ids(forum.similar(f"{query} keyboard")) == ["other"]


def test_a_forum_without_a_model_is_searched_by_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.models.encoder_settings.general_folder", lambda: None)
    with Forum.create(tmp_path / "f") as forum:
        forum.add(WIFI)
        assert forum.similar("wifi")[0].components.keys() == {"bm25", "bm25_share", "same"}
        assert forum.indexes.state() == vectors_module.VectorsState()
        assert not ForumLayout(tmp_path / "f").vectors.exists()
        with pytest.raises(ForumError, match="needs vectors"):
            forum.similar("wifi", ranker="meaning")
        with pytest.raises(ModelNotFoundError, match="has no model"):
            forum.encode()


# -- in step -------------------------------------------------------------------------------------------------------


def test_each_change_shows_in_the_next_search_by_vectors(small: Forum) -> None:
    small.add(Question("new", "WLAN lost"))
    assert nearest(small, "wireless disconnects") == ["new", "wifi"]
    small.edit(Question("wifi", "Printer silent"))
    assert nearest(small, "wireless disconnects") == ["new"]
    small.delete("new")
    assert nearest(small, "wireless disconnects") == []
    assert small.indexes.state().waiting == 0


def test_changes_that_were_stored_but_not_indexed_are_replayed_at_open(small: Forum) -> None:
    small.close()
    archive = open_store(ForumLayout(small.path))
    archive.add_questions([Question("new", "Wlan lost")])
    archive.put_questions((), ["wifi"])
    archive.close()
    with Forum.open(small.path) as forum:
        assert nearest(forum, "wireless disconnects") == ["new"]
        assert ids(forum.similar("wlan wifi", ranker="words")) == ["new"]


def test_what_takes_long_is_left_to_encode_and_words_answer_until_then(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "pace_of", lambda _: vectors_module.OWN_PACE._replace(at_once=1))
    with Forum.open(path) as forum:
        forum.add([Question("a", "Wlan lost"), Question("b", "Wlan silent")])
        assert forum.indexes.state().waiting == 2
        assert nearest(forum, "wireless disconnects") == ["wifi"]
        assert ids(forum.similar("wlan"))[:2] == ["a", "b"]
        forum.encode()
        assert forum.indexes.state().waiting == 0
        assert nearest(forum, "wireless disconnects") == ["a", "wifi", "b"]


def test_while_a_forum_is_first_encoded_the_newest_are_found_by_meaning_and_the_others_by_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "pace_of", lambda _: vectors_module.Pace(1, Steps(1, 1, 1)))
    path = tmp_path / "f"
    with Forum.create(path) as forum:
        forum.models.use_model(saved(synonym_model(), tmp_path / "synonyms"))
        forum.add([Question(str(number), "Wlan lost" if number % 2 else "Printer silent") for number in range(8)])
        assert ids(forum.similar("wireless disconnects")) == []
        with pytest.raises(KeyboardInterrupt):
            forum.encode(progress=Interrupting(after=4))
    with Forum.open(path) as forum:  # another process, after a kill
        result = forum.search(Query("wireless disconnects", k=8))
        assert {hit.question.id for hit in result.hits} == {"7", "5"}
        assert result.notice == "encoding is not finished: 4 of 8 questions; the others are found by words"
        assert sorted(ids(forum.similar("wlan", k=8))) == ["1", "3", "5", "7"]
        assert forum.indexes.state().waiting == 4
        encoded: list[int] = []

        class Counting(SilentProgress):
            def advance(self, count: int) -> None:
                encoded.append(count)

        forum.encode(progress=Counting())
        assert sum(encoded) == 4
        result = forum.search(Query("wireless disconnects", k=8))
        assert {hit.question.id for hit in result.hits} == {"1", "3", "5", "7"}
        assert (result.notice, forum.indexes.state().waiting) == ("", 0)


def test_pairs_that_were_compared_by_words_are_compared_again_by_meaning(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "pace_of", lambda _: vectors_module.OWN_PACE._replace(at_once=1))
    with Forum.open(path) as forum:
        forum.pairs.advance(60)
        forum.add([Question("a", "Wlan lost today"), Question("b", "Wlan disconnects today")])
        forum.pairs.advance(60)
        nums = forum.store.nums_by_id(["a", "b"])
        [by_words] = [pair for pair in forum.pairs.store.pairs_of([nums["a"]]) if pair.second == nums["b"]]
        assert by_words.cosine is None or by_words.cosine == 0
        forum.pairs.advance(60)
        assert forum.pairs.waiting() == 0
        forum.encode()
        forum.pairs.advance(60)
        [again] = [pair for pair in forum.pairs.store.pairs_of([nums["a"]]) if pair.second == nums["b"]]
        assert again.cosine == pytest.approx(1, abs=0.01)
        assert again.score != by_words.score
        before = forum.pairs.store.state("version")
        forum.pairs.advance(60)
        assert (forum.pairs.waiting(), forum.pairs.store.state("version")) == (0, before), "once is enough"


def test_indexes_ahead_of_their_archive_are_made_anew(small: Forum, tmp_path: Path) -> None:
    layout = ForumLayout(small.path)
    small.close()
    shutil.copy(layout.archive, tmp_path / "backup.sqlite")
    with Forum.open(small.path) as forum:
        forum.add([Question("a", "Wlan lost"), Question("b", "Wlan lost")])
    for leftover in small.path.glob("archive.sqlite*"):
        leftover.unlink()
    shutil.copy(tmp_path / "backup.sqlite", layout.archive)
    with Forum.open(small.path) as forum:
        assert nearest(forum, "wireless disconnects") == ["wifi"]
        assert ids(forum.similar("wlan wifi", ranker="words")) == ["wifi"]
        assert forum.indexes.state().entries == 3


# -- a new model ---------------------------------------------------------------------------------------------------

PRINTERS_ARE_WIRELESS = ({"wifi", "wireless", "printer"}, {"drops", "offline"})


def test_a_new_model_answers_when_all_is_encoded_and_the_old_one_is_gone(small: Forum, tmp_path: Path) -> None:
    before = sets(small.path)
    with Forum.open(small.path) as other:
        small.models.use_model(saved(synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new"))
        assert nearest(small, "wireless") == nearest(other, "wireless") == ["wifi"]
        assert small.indexes.state().next_model == "own (rcnn, 2 dimensions)"
        small.encode()
        assert sorted(nearest(small, "wireless")) == sorted(nearest(other, "wireless")) == ["printer", "wifi"]
        assert other.indexes.state() == vectors_module.VectorsState("own (rcnn, 2 dimensions)", entries=3)
    assert len(sets(small.path)) == 1
    assert sets(small.path) != before


def test_the_old_model_answers_and_follows_while_a_killed_encoding_waits(
    small: Forum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "pace_of", lambda _: vectors_module.Pace(1, Steps(1, 1, 1)))
    small.models.use_model(saved(synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new"))
    with pytest.raises(KeyboardInterrupt):
        small.encode(progress=Interrupting(after=1))
    assert len(sets(small.path)) == 2
    assert small.indexes.state().next_model == "own (rcnn, 2 dimensions)"
    assert small.indexes.state().waiting == 2  # the newest question is committed
    small.close()
    with Forum.open(small.path) as forum:  # another process
        forum.add(Question("new", "Wlan lost"))
        assert nearest(forum, "wireless disconnects") == ["new", "wifi"]
        seen: list[int] = []

        class Counting(SilentProgress):
            def advance(self, count: int) -> None:
                seen.append(count)

        forum.encode(progress=Counting())
        assert sum(seen) == 3  # the second and the first, and the new one as a change
        assert nearest(forum, "wireless") == ["printer", "wifi"] or nearest(forum, "wireless") == ["wifi", "printer"]
    assert len(sets(small.path)) == 1


def test_a_search_goes_on_with_the_new_model_where_the_old_one_went_before_it_was_read(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Model.load

    def switch_and_load(folder: Path) -> Model:
        monkeypatch.setattr(Model, "load", load)
        with Forum.open(path) as other:  # another process
            other.models.use_model(saved(synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new"))
            other.encode()
        return load(folder)

    with Forum.open(path) as forum:
        monkeypatch.setattr(Model, "load", switch_and_load)
        assert sorted(nearest(forum, "wireless")) == ["printer", "wifi"]


def test_what_a_killed_maker_left_is_cleared_by_the_next(small: Forum) -> None:
    (ForumLayout(small.path).vectors / "0123456789abcdef" / ".model.17" / "model").mkdir(parents=True)
    (ForumLayout(small.path).vectors / "0123456789abcdef" / "model").mkdir(parents=True)
    small.encode()
    assert len(sets(small.path)) == 1


def test_what_is_written_while_a_new_model_encodes_is_found_after_the_switch(small: Forum, tmp_path: Path) -> None:
    small.models.use_model(saved(synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new"))

    class Writing(SilentProgress):
        def advance(self, count: int) -> None:
            if small.indexes.state().next_model and "late" not in [question.id for question in small.questions()]:
                small.add(Question("late", "Wireless offline"))
                small.delete("wifi")
                assert nearest(small, "wlan") == ["late"]

    small.encode(progress=Writing())
    assert nearest(small, "wireless drops") == ["late", "printer"]
    assert small.indexes.state().waiting == 0


def test_one_process_encodes_at_a_time(small: Forum, tmp_path: Path) -> None:
    small.models.use_model(saved(synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new"))

    class Encoding(SilentProgress):
        def advance(self, count: int) -> None:
            with Forum.open(small.path) as other:  # leaves it to the one that is at it
                with pytest.raises(BusyForumError, match="is encoding"):
                    other.encode()
                assert nearest(other, "wireless") == ["wifi"]

    small.encode(progress=Encoding())
    assert small.indexes.state().next_model == ""


def test_a_forum_is_not_reindexed_under_who_encodes(
    small: Forum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.forum.indexes.LOCK_TIMEOUT_S", 0.05)
    small.models.use_model(saved(synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new"))

    class Encoding(SilentProgress):
        def advance(self, count: int) -> None:
            with pytest.raises(BusyForumError, match=r"is encoding.*reindex FORUM --no-encode"):
                Forum.reindex(small.path)
            with Forum.reindex(small.path, settings=ForumSettings(has_vectors=False)) as words:
                assert words.info().indexed == 3

    small.encode(progress=Encoding())
    with Forum.open(small.path) as forum:
        assert sorted(nearest(forum, "wireless")) == ["printer", "wifi"]


def test_only_sets_of_vectors_are_deleted_beside_what_else_lies_there(path: Path) -> None:
    vectors = ForumLayout(path).vectors
    photos = vectors / "photos"
    (photos / "2020").mkdir(parents=True)
    (photos / "2020" / "one.jpg").write_bytes(b"mine")
    (vectors / "notes.tmp").write_bytes(b"mine")
    [own] = [name for name in sets(path) if name != "photos"]
    (vectors / own / "index" / "letter.tmp").write_bytes(b"mine")
    Forum.reindex(path).close()
    with Forum.open(path) as forum:
        forum.encode()
        assert nearest(forum, "wireless disconnects") == ["wifi"]
    assert (photos / "2020" / "one.jpg").read_bytes() == b"mine"
    assert (vectors / "notes.tmp").read_bytes() == (vectors / own / "index" / "letter.tmp").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["vectors", "set"])
def test_vectors_behind_a_link_are_neither_deleted_nor_made(path: Path, tmp_path: Path, name: str) -> None:
    vectors = ForumLayout(path).vectors
    place = vectors if name == "vectors" else vectors / sets(path)[0]
    elsewhere = place.rename(tmp_path / "elsewhere")
    (elsewhere / "0123456789abcdef").mkdir()
    (elsewhere / "0123456789abcdef" / "letter.txt").write_bytes(b"mine")
    place.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    with Forum.open(path) as forum:
        assert nearest(forum, "wireless disconnects") == ["wifi"], "they still answer"
        with pytest.raises(ForumError, match=f"{place.name} is a link"):
            forum.encode()
    with pytest.raises(ForumError, match=f"{place.name} is a link"):
        Forum.reindex(path)
    assert sorted(elsewhere.rglob("*")) == before


def test_the_model_of_another_process_is_taken_from_the_next_change_on(small: Forum, tmp_path: Path) -> None:
    with Forum.open(small.path) as trainer:
        trainer.models.use_model(saved(synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new"))
    small.add(Question("new", "Wireless printer"))
    assert small.indexes.state().model == "own (rcnn, 2 dimensions)"
    assert nearest(small, "wifi", k=1) == ["new"]


# -- damage --------------------------------------------------------------------------------------------------------


def only_set(path: Path) -> Path:
    return ForumLayout(path).vectors / sets(path)[0]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("current.json", b"{"),
        ("current.json", b'{"format": 9}'),
        ("current.json", b'{"fingerprint": "../..", "model": "own"}'),
        ("SET/index/mark.json", b"damaged"),
    ],
)
def test_damage_among_the_vectors_is_refused_and_reindex_mends_it(path: Path, file: str, content: bytes) -> None:
    (ForumLayout(path).vectors / file.replace("SET", sets(path)[0])).write_bytes(content)
    with pytest.raises(DamagedForumError, match="askalike reindex"):
        Forum.open(path)
    with Forum.reindex(path) as forum:
        assert nearest(forum, "wireless disconnects") == ["wifi"]


def test_a_damaged_model_is_named(path: Path, tmp_path: Path) -> None:
    weights = only_set(path) / "model" / "weights.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + b"x")
    with Forum.open(path) as forum:
        with pytest.raises(DamagedModelError, match=r"weights.*askalike reindex"):
            forum.similar("wifi")
        assert ids(forum.similar("wifi", ranker="words")) == ["wifi"]
    with Forum.reindex(path) as forum:
        assert nearest(forum, "wireless disconnects") == ["wifi"]


@pytest.mark.parametrize("content", [None, b"{}"])
def test_a_forums_own_model_that_is_none_is_named_and_words_can_be_searched(path: Path, content: bytes | None) -> None:
    manifest = ForumLayout(path).model / "manifest.json"
    manifest.unlink()
    if content is not None:
        manifest.write_bytes(content)
    with pytest.raises(ModelError, match=r"manifest\.json.*delete the folder"):
        Forum.open(path)
    with Forum.open(path, settings=ForumSettings(has_vectors=False)) as forum:
        assert ids(forum.similar("wifi")) == ["wifi"]


def overwrite(folder: Path, model: Model, scratch: Path) -> None:
    """Write a model's files over those that are there, as copying them into the folder does."""
    for file in saved(model, scratch).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())


def test_a_model_that_is_overwritten_does_not_change_what_answers_until_all_is_encoded(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "pace_of", lambda _: vectors_module.OWN_PACE._replace(at_once=1))
    overwrite(ForumLayout(path).model, synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new")
    with Forum.open(path) as forum:
        assert nearest(forum, "wireless") == ["wifi"]
        assert (forum.indexes.state().model, forum.indexes.state().waiting) == ("own (rcnn, 4 dimensions)", 3)
        forum.encode()
        assert sorted(nearest(forum, "wireless")) == ["printer", "wifi"]


def test_vectors_with_another_model_than_their_own_do_not_answer_and_are_made_anew(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "pace_of", lambda _: vectors_module.OWN_PACE._replace(at_once=1))
    overwrite(only_set(path) / "model", synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new")
    with Forum.open(path) as forum:
        assert (forum.indexes.state().model, forum.indexes.state().waiting) == ("", 3)
        assert ids(forum.similar("wifi")) == ["wifi"]
        forum.encode()
        assert nearest(forum, "wireless disconnects") == ["wifi"]


def test_a_model_that_is_overwritten_between_opening_and_reading_is_named(path: Path, tmp_path: Path) -> None:
    with Forum.open(path) as forum:
        overwrite(only_set(path) / "model", synonym_model(PRINTERS_ARE_WIRELESS), tmp_path / "new")
        with pytest.raises(DamagedModelError, match=r"not the one of its vectors.*askalike reindex"):
            forum.similar("wireless")


def test_a_model_whose_making_was_killed_between_two_renames_is_still_the_forums_own(path: Path) -> None:
    model = ForumLayout(path).model
    model.rename(model.with_name(".model.replaced"))
    with Forum.open(path) as forum:
        assert forum.indexes.state().model == "own (rcnn, 4 dimensions)"
        assert forum.indexes.state().next_model == ""

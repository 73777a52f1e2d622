"""What a forum gives to learn from, and what is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.embedding_server import WordHashes
from tests.tiny_models import synonym_model
from tests.tiny_training import dev_score_of

from askalike import Forum, Question
from askalike.cli.train import result_lines, result_object
from askalike.data import bundled_forum
from askalike.errors import BusyForumError, DamagedForumError
from askalike.evaluation import evaluate, split_components
from askalike.evaluation.forum.links import SPLIT_SEED, SPLITS, duplicate_task, keep_splits, kept_splits
from askalike.forum import ForumSettings
from askalike.forum.indexes import Indexes
from askalike.models.encoder_settings import EncoderSettings
from askalike.models.text_questions import TextQuestions
from askalike.store import Store
from askalike.training.session import DevScore, compared, dev_score, forum_training
from askalike.training.work_folder import work_folder
from askalike.types import Answer, Filters, Link, Query

WORDS_ALONE = ForumSettings(has_vectors=False)


@pytest.fixture(scope="module")
def homenet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    with Forum.create(tmp_path_factory.mktemp("forum") / "f", settings=WORDS_ALONE) as forum:
        forum.load(bundled_forum())
        yield forum


def parts_of(forum: Forum) -> dict[str, set[str]]:
    pairs = [(link.source_id, link.target_id) for link in forum.store.links() if link.kind == "duplicate"]
    return {part: set(ids) for part, ids in split_components(pairs, SPLITS, SPLIT_SEED).items()}


def test_no_mark_of_dev_is_learned_from_and_dev_asks_only_its_own(homenet: Forum) -> None:
    training = forum_training(homenet)
    parts = parts_of(homenet)
    assert {identifier for pair in training.data.pairs for identifier in pair} == parts["train"] | parts["test"]
    assert training.dev is not None
    assert set(training.dev.queries) <= parts["dev"]
    assert training.held_out == 0


def test_a_test_part_that_is_held_out_is_that_of_evaluate(homenet: Forum) -> None:
    training = forum_training(homenet, is_test_held_out=True)
    assert {identifier for pair in training.data.pairs for identifier in pair} == parts_of(homenet)["train"]
    assert training.held_out + len(training.data.pairs) < training.links


def test_marks_that_come_later_leave_every_question_in_its_part(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f", settings=WORDS_ALONE) as forum:
        forum.load(bundled_forum())
        first = forum_training(forum, is_test_held_out=True)
        assert first.dev is not None
        held_out = set(duplicate_task(forum, "dev").queries)
        keep_splits(forum.path, first.splits)
        marked = {identifier for link in forum.store.links() for identifier in (link.source_id, link.target_id)}
        free = [question.id for question in forum.questions() if question.id not in marked]
        for first_id, second_id in zip(free[0:20:2], free[1:20:2], strict=True):
            forum.store.put_links([Link(first_id, second_id)])
            later = forum_training(forum, is_test_held_out=True)
            assert not held_out & {identifier for pair in later.data.pairs for identifier in pair}
            assert set(first.data.pairs) <= set(later.data.pairs)
            keep_splits(forum.path, later.splits)
        assert held_out < set(duplicate_task(forum, "dev").queries)


def test_what_was_learned_from_for_want_of_a_dev_part_is_never_one(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f", settings=WORDS_ALONE) as forum:
        forum.add([Question(str(number), f"wifi drops {number // 2}") for number in range(60)])
        forum.store.put_links([Link(str(2 * number + 1), str(2 * number)) for number in range(9)])
        early = forum_training(forum)
        keep_splits(forum.path, early.splits)
        assert "dev" not in kept_splits(forum.path).values()
        forum.store.put_links([Link(str(2 * number + 1), str(2 * number)) for number in range(9, 30)])
        later = forum_training(forum)
    assert later.dev is not None
    assert not set(later.dev.queries) & {identifier for pair in early.data.pairs for identifier in pair}


def test_parts_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    assert kept_splits(tmp_path) == {}
    for content in ("[", '{"format": 1, "seed": 0, "parts": {"a": "best"}}', '{"format": 2, "seed": 0, "parts": {}}'):
        (tmp_path / "parts.json").write_text(content)
        with pytest.raises(DamagedForumError, match="delete it to split the duplicates anew"):
            kept_splits(tmp_path)


def test_what_is_written_while_a_forum_is_read_is_not_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links, ranking = Store.links, Indexes.ranking
    late = iter(range(1000))

    def write(forum: Forum) -> str:
        name = f"late{next(late)}"
        forum.add(Question(name, "wifi drops every evening", "the router is old"))
        forum.store.put_links([Link(name, "q1001")])
        return name

    def links_later(self: Store) -> list[Link]:
        write(forum)
        return links(self)

    def ranking_later(self: Indexes, *words: Any, **choices: Any) -> list[tuple[str, float]]:
        name = write(forum)
        return [(name, 99.0), *ranking(self, *words, **choices)]

    with Forum.create(tmp_path / "f", settings=WORDS_ALONE) as forum:
        forum.load(bundled_forum())
        quiet = forum_training(forum)
        monkeypatch.setattr(Store, "links", links_later)
        monkeypatch.setattr(Indexes, "ranking", ranking_later)
        busy = forum_training(forum)
    assert busy.data.questions == quiet.data.questions
    assert busy.data.pairs == quiet.data.pairs
    assert busy.dev is not None
    assert quiet.dev is not None
    assert busy.dev.queries == quiet.dev.queries
    known = {question.id for question in quiet.data.questions}
    assert set(busy.dev.documents) <= known


def test_the_accepted_answer_is_the_one_that_is_learned_from(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f", settings=WORDS_ALONE) as forum:
        forum.add([Question("q", "wifi drops"), Question("p", "printer")])
        forum.store.add_answers(
            [Answer("1", "q", "buy another", score=9), Answer("2", "q", "move it", is_accepted=True)]
        )
        assert [answer.id for answer in forum_training(forum).data.answers] == ["2"]


@pytest.mark.parametrize("by", ["own model", "text encoder"])
def test_dev_is_ordered_as_the_default_search_orders(tmp_path: Path, by: str) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.load(bundled_forum())
        if by == "own model":
            model = synonym_model()
            model.save(tmp_path / "model")
            forum.models.use_model(tmp_path / "model")
            forum.encode()
            scorer = forum.indexes.pair_probabilities(model.encode)
        else:
            encoder = TurnedQueries()
            forum.models.use_encoder(encoder)
            forum.encode()
            size = encoder.dimensions
            texts = TextQuestions(encoder, EncoderSettings("python", name=encoder.name, dimensions=size, width=size))
            scorer = forum.indexes.pair_probabilities(texts.encode, texts.encode_queries)
        compared = 0
        for question in list(forum.questions())[::20]:
            others = Filters(exclude_ids=frozenset([question.id]))
            result = forum.search(Query(question.title, question.body, question.markup, 5, others))
            assert result.has_vectors
            hits = [hit for hit in result.hits if not (hit.via or result.corrections or "alone" in hit.components)]
            scores = scorer.score(question, [hit.question for hit in hits])
            assert scores == pytest.approx([hit.score for hit in hits], abs=1e-3)  # of stored vectors, rounded
            compared += len(hits)
        assert compared > 30


class TurnedQueries(WordHashes):
    """One that reads queries in another way than questions."""

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().encode_query([f"{text} what was searched for" for text in texts])


def test_without_a_model_dev_is_ordered_by_the_probability_by_words(homenet: Forum) -> None:
    dev = forum_training(homenet).dev
    assert dev is not None
    words = dev_score(dev, None, homenet)
    scorer = homenet.indexes.pair_probabilities()
    places = []
    for query, run in dev.given.items():
        candidates = [candidate for candidate, _ in run]
        scores = scorer.score(dev.queries[query], [dev.documents[candidate] for candidate in candidates])
        ordered = [candidates[place] for place in np.argsort(-scores, kind="stable")]
        if any(dev.qrels[query].values()):
            places.append(
                next((1 / rank for rank, candidate in enumerate(ordered, 1) if dev.qrels[query][candidate]), 0.0)
            )
    assert words.search == pytest.approx(sum(places) / len(places))
    assert words.cosine == 0
    assert dev_score(dev, synonym_model(), homenet).cosine > 0


def test_a_work_folder_says_whether_the_plan_is_the_same(tmp_path: Path) -> None:
    begun = []
    for seed, is_fresh in ((0, False), (0, False), (1, False), (1, True)):
        (tmp_path / "w").mkdir(exist_ok=True)
        (tmp_path / "w" / "1-stage.safetensors").touch()
        with work_folder(tmp_path / "w", {"seed": seed}, is_fresh=is_fresh) as beginning:
            begun.append((beginning, (tmp_path / "w" / "1-stage.safetensors").exists()))
    assert begun == [("anew", True), ("goes on", True), ("changed", True), ("anew", False)]


@pytest.mark.parametrize("is_fresh", [False, True])
def test_what_a_kill_left_half_written_is_cleared_and_a_fresh_training_keeps_no_model(
    tmp_path: Path, is_fresh: bool
) -> None:
    synonym_model().save(tmp_path / "model")
    (tmp_path / "finished.json").touch()
    (tmp_path / "1-stage.safetensors.4711.tmp").touch()
    (tmp_path / ".model.abc" / "model").mkdir(parents=True)
    with work_folder(tmp_path, {}, is_fresh=is_fresh):
        kept = {"lock", "plan.json"} | (set() if is_fresh else {"model", "finished.json"})
        assert {path.name for path in tmp_path.iterdir()} == kept


def test_two_trainings_do_not_share_a_work_folder(tmp_path: Path) -> None:
    with work_folder(tmp_path, {}), pytest.raises(BusyForumError, match="another training"), work_folder(tmp_path, {}):
        pass


def test_a_verdict_says_how_sure_the_difference_is() -> None:
    qrels = {f"q{number}": {"right": 1, "wrong": 0} for number in range(3)}
    orders = {"good": [("right", 2.0), ("wrong", 1.0)], "bad": [("wrong", 2.0), ("right", 1.0)]}
    good, bad = (
        DevScore(mean, 0.0, evaluate(qrels, dict.fromkeys(qrels, orders[name]), "trec", ["mrr"]))
        for name, mean in (("good", 1.0), ("bad", 0.5))
    )
    result = compared(bad, good, "general", is_kept=False)
    assert result.comparison is not None
    assert (result.comparison.difference.mean, result.comparison.p_value) == (0.5, 0.25), (
        "two of the eight sign patterns"
    )
    shown = "\n".join(result_lines(result, Path("a.forum")))
    assert "+0.5000 (+0.5000 to +0.5000), p = 0.2500 over 3 queries; it may be chance" in shown
    assert result_object(compared(bad, bad, "own", is_kept=False))["dev_difference"]["p_value"] == 1
    assert "chance" not in "\n".join(result_lines(compared(bad, bad, "own", is_kept=False), Path("a.forum")))


BETTER = [0.5] * 20 + [1.0] * 20, [1.0] * 20 + [1.0] * 20
PERHAPS = [0.5, 1.0] * 20, [0.5, 1.0] * 18 + [1.0, 1.0, 0.5, 1.0]
"""Reciprocal ranks before and after: twenty queries are better; one is, of forty."""


@pytest.mark.parametrize("present", ["own", "general", ""])
def test_a_model_is_taken_only_where_dev_says_it_is_better_beyond_chance(present: str) -> None:
    better = compared(*(dev_score_of(*changes) for changes in BETTER), present, is_kept=False)
    assert (better.is_better, better.is_taken) == (True, True)
    result = compared(*(dev_score_of(*changes) for changes in PERHAPS), present, is_kept=False)
    assert result.comparison is not None
    assert result.comparison.difference.mean > 0
    assert (result.is_better, result.is_taken) == (False, False)
    worse = compared(*(dev_score_of(*changes) for changes in reversed(BETTER)), present, is_kept=False)
    assert (worse.is_better, worse.is_taken) == (False, False)
    assert compared(*(dev_score_of(*changes) for changes in PERHAPS), present, is_kept=True).is_taken

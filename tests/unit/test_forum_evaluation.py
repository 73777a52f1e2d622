"""What is a query and what is relevant to it, on marks that can be checked by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from askalike import Forum, Link, Question, TextSettings
from askalike.errors import EvaluationError, ForumError, SettingError
from askalike.evaluation import components
from askalike.evaluation.forum.evaluation import TASKS, evaluate_forum
from askalike.evaluation.forum.links import SPLITS, duplicate_task
from askalike.evaluation.forum.tasks import collection_run, forum_run, make_scorer
from askalike.forum.indexes import Indexes
from askalike.progress import SilentProgress
from askalike.store import Store

pytestmark = pytest.mark.usefixtures("words_alone")


class Told(SilentProgress):
    """Keeps of every phase how many units it announced and how many were done."""

    def __init__(self) -> None:
        self.phases: dict[str, list[int]] = {}

    def start(self, phase: str, total: int, unit: str) -> None:
        assert unit == "queries"
        self.phases[phase] = [total, 0]

    def advance(self, count: int) -> None:
        self.phases[list(self.phases)[-1]][1] += count


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    # b and c are duplicates of a; d is a duplicate of c; e is merely related; x is alone
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question(name, f"printer offline number {name}") for name in "abcdex"])
        forum.store.put_links([Link("b", "a"), Link("c", "a"), Link("d", "c"), Link("e", "a", "related")])
        yield forum


def test_relevant_are_direct_marks_and_other_duplicates_of_the_same_original(forum: Forum) -> None:
    task = duplicate_task(forum)
    assert set(task.queries) == {"b", "c", "d"}
    assert {query: set(grades) for query, grades in task.qrels.items()} == {
        "b": {"a", "c"},
        "c": {"a", "b", "d"},
        "d": {"c"},
    }


def test_a_query_is_never_found_itself(forum: Forum) -> None:
    for query, run in forum_run(forum, duplicate_task(forum), 10).items():
        assert query not in [document for document, _ in run]
        assert len(run) == 5


def test_scoring_the_whole_collection_finds_the_best_pairs_without_the_query(forum: Forum) -> None:
    collection = [*forum.questions(), Question("y", "printer offline number b")]
    for system in ("bm25", "tfidf"):
        scorer = make_scorer(system, collection, TextSettings())
        run = collection_run(duplicate_task(forum), scorer, collection, 3)
        assert run["b"][0][0] == "y"
        assert len(run["b"]) == 3
        assert "b" not in [document for document, _ in run["b"]]


def test_what_is_written_meanwhile_is_no_part_of_a_trial(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    links, ranking = Store.links, Indexes.ranking
    late = iter(range(1000))

    def links_later(self: Store) -> list[Link]:
        forum.add(Question(f"late{next(late)}", "printer offline number b"))
        self.put_links([Link("late0", "a")])
        forum.delete("x")
        return links(self)

    def ranking_later(self: Indexes, *words: Any, **choices: Any) -> list[tuple[str, float]]:
        forum.add(Question(f"late{next(late)}", "printer offline number b"))
        return ranking(self, *words, **choices)

    for task in TASKS:
        with monkeypatch.context() as patched:
            patched.setattr(Store, "links", links_later)
            patched.setattr(Indexes, "ranking", ranking_later)
            trial = evaluate_forum(forum, task, ("words", "bm25"))
        assert set(trial.qrels) == {"b", "c", "d"}
        documents = {document for run in trial.runs.values() for entries in run.values() for document, _ in entries}
        assert documents <= set("abcdex")
        forum.delete([question.id for question in list(forum.questions()) if question.id.startswith("late")])
        forum.add(Question("x", "printer offline number x"))
        late = iter(range(1000))


def test_an_unknown_part_or_task_is_refused(forum: Forum, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="expected all or one of train, dev, test"):
        duplicate_task(forum, "tset")
    with pytest.raises(SettingError, match="no task 'magic'"):
        evaluate_forum(forum, "magic", ("search",))
    with Forum.create(tmp_path / "g") as bare, pytest.raises(EvaluationError, match="no duplicate links"):
        duplicate_task(bare)


def test_the_parts_of_a_forum_share_no_component(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "g") as many:
        many.add([Question(f"q{number}", "t") for number in range(120)])
        links = [Link(f"q{3 * number + copy}", f"q{3 * number}") for number in range(40) for copy in (1, 2)]
        many.store.put_links(links)
        parts = {part: set(duplicate_task(many, part).queries) for part in SPLITS}
    for group in components((link.source_id, link.target_id) for link in links):
        assert sum(not part.isdisjoint(group) for part in parts.values()) == 1
    assert sum(len(part) for part in parts.values()) == 80
    assert all(parts.values())


def test_rankers_retrieve_and_reorder_the_lexical_searchs_candidates(forum: Forum) -> None:
    own = evaluate_forum(forum, "rerank", ("search", "words"))
    assert {query: {document for document, _ in run} for query, run in own.runs["search"].items()} == {
        query: {document for document, _ in run} for query, run in own.runs["words"].items()
    }, "the default puts the same candidates in its own order"
    assert evaluate_forum(forum, "retrieval", ("words",)).runs["words"]["b"][0][0] in "acdex"
    with pytest.raises(ForumError):
        evaluate_forum(forum, "retrieval", ("meaning",))


def test_a_system_that_is_not_there_is_told_before_any_is_tried(forum: Forum) -> None:
    progress = Told()
    with pytest.raises(SettingError, match="no system 'nope'") as caught:
        evaluate_forum(forum, "retrieval", ("search", "nope"), progress=progress)
    assert "meaning" in str(caught.value)
    assert progress.phases == {}


def test_every_system_of_a_trial_is_a_phase_over_all_queries(forum: Forum) -> None:
    progress = Told()
    evaluate_forum(forum, "retrieval", ("words", "bm25"), progress=progress)
    assert progress.phases == {"retrieval, words": [3, 3], "retrieval, bm25": [3, 3]}
    progress = Told()
    evaluate_forum(forum, "rerank", ("search", "tfidf"), progress=progress)
    assert progress.phases == {
        "candidates to re-rank": [3, 3],
        "re-ranking, search": [3, 3],
        "re-ranking, tfidf": [3, 3],
    }

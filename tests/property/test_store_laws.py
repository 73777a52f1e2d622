"""Any sequence of loads and changes by hand leaves in a store what a model of forty lines says, and in its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.postgres_server import new_database

from askalike.errors import InputError
from askalike.store import ForumLayout, Store, create_store
from askalike.store.postgres import PostgresStore
from askalike.types import Answer, Link, Question, Record, Source

IDS = ("a", "b", "c", "d", "e")
MANUAL = "manual"


@dataclass(frozen=True)
class Load:
    source: str
    titles: dict[str, str]
    answers: dict[str, str]
    links: frozenset[tuple[str, str]]

    def records(self) -> Iterator[Record]:
        yield from (Answer(identifier, question, "text") for identifier, question in self.answers.items())
        yield from (Question(identifier, title) for identifier, title in self.titles.items())
        yield from (Link(*pair) for pair in self.links)


@dataclass(frozen=True)
class Put:
    identifier: str
    title: str


@dataclass(frozen=True)
class Delete:
    identifier: str


@dataclass
class Model:
    """What a store holds: each value with the source that it came from first."""

    questions: dict[str, tuple[str, str]] = field(default_factory=dict)
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    links: dict[tuple[str, str], str] = field(default_factory=dict)

    def load(self, load: Load) -> bool:
        """Apply a load, unless another source has other content under one of its ids; return whether it was applied."""
        for new, known in ((load.titles, self.questions), (load.answers, self.answers)):
            if any(
                known.get(key, (value, load.source))[0] != value and known[key][1] != load.source
                for key, value in new.items()
            ):
                return False
        gone = [key for key, (_, source) in self.questions.items() if source == load.source and key not in load.titles]
        for key in gone:
            del self.questions[key]
        for key, title in load.titles.items():
            self.questions[key] = (title, self.questions.get(key, ("", load.source))[1])
        for key in [
            key for key, (_, source) in self.answers.items() if source == load.source and key not in load.answers
        ]:
            del self.answers[key]
        for key, question in load.answers.items():
            if question in self.questions:
                self.answers[key] = (question, self.answers.get(key, ("", load.source))[1])
            else:
                self.answers.pop(key, None)
        for pair in [pair for pair, source in self.links.items() if source == load.source and pair not in load.links]:
            del self.links[pair]
        for pair in load.links:
            self.links.setdefault(pair, load.source)
        return True

    def delete(self, identifier: str) -> None:
        del self.questions[identifier]
        self.answers = {key: value for key, value in self.answers.items() if value[0] != identifier}
        self.links = {pair: source for pair, source in self.links.items() if identifier not in pair}


ids = st.sampled_from(IDS)
titles = st.sampled_from(("one", "two"))
pairs = st.tuples(ids, ids).filter(lambda pair: pair[0] != pair[1])
loads = st.builds(
    Load,
    st.sampled_from(("first", "second")),
    st.dictionaries(ids, titles, min_size=1),
    st.dictionaries(st.sampled_from(("x", "y", "z")), ids),
    st.frozensets(pairs, max_size=3),
)
steps = st.lists(st.one_of(loads, st.builds(Put, ids, titles), st.builds(Delete, ids)), max_size=8)


def check_steps(store: Store, steps: list[Load | Put | Delete]) -> None:
    model, followed, cursor = Model(), dict[int, str](), 0
    for step in steps:
        if isinstance(step, Put):
            store.put_questions([Question(step.identifier, step.title)])
            model.questions[step.identifier] = (step.title, model.questions.get(step.identifier, ("", MANUAL))[1])
        elif isinstance(step, Delete):
            if step.identifier in model.questions:
                store.put_questions([], [step.identifier])
                model.delete(step.identifier)
        elif model.load(step):
            store.load(step.records(), Source(step.source, "jsonl"), lambda _: None, is_mass_delete_allowed=True)
        else:
            with pytest.raises(InputError, match="stand for other questions or answers"):
                store.load(step.records(), Source(step.source, "jsonl"), lambda _: None, is_mass_delete_allowed=True)
        stored = dict(store.all_questions())
        assert {question.id: question.title for question in stored.values()} == {
            key: title for key, (title, _) in model.questions.items()
        }
        answers = {answer.id: key for key, listed in store.answers_of(IDS).items() for answer in listed}
        assert answers == {key: question for key, (question, _) in model.answers.items() if question in model.questions}
        here = {pair for pair in model.links if set(pair) <= set(model.questions)}
        assert {(link.source_id, link.target_id) for link in store.links()} == here
        for change in store.changes(cursor, 1_000):  # who follows the log comes to the same
            cursor = change.seq
            followed.pop(change.num, None)
            if change.num in stored:
                followed[change.num] = stored[change.num].title
        assert followed == {num: question.title for num, question in stored.items()}


@settings(deadline=None, max_examples=60)
@given(steps)
def test_a_file_holds_what_the_model_holds(steps: list[Load | Put | Delete]) -> None:
    with TemporaryDirectory() as folder, closing(create_store(ForumLayout(Path(folder) / "f"), {})) as store:
        check_steps(store, steps)


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(steps)
def test_a_database_holds_what_the_model_holds(steps: list[Load | Put | Delete]) -> None:
    with closing(PostgresStore.create(new_database(), {})) as store:
        check_steps(store, steps)

"""A forum's own links as test collections: duplicates, and topics that are merely related; and their splits.

Policy for duplicates, in this one place:

- A *query* is a question with a duplicate link to another one that the forum holds, or one that a person judged to be
  a duplicate; people's judgements count above links.
- *Relevant* to it is every question that it is linked with, in either direction, and every other question that is
  a duplicate of the same canonical question. Links are not followed further: chains of them join questions that ask
  different things (one component of the travel forum has 206 questions).
- The *collection* is every question of the forum but the query itself.
- A *split* keeps whole components together, so that nothing learned on one split was seen in another.

Policy for related topics, which nobody judged to ask the same:

- A *query* is a topic that links to another one; *relevant* are the topics that it links to or that link to it.
- A link is left out when the query's own text quotes the other topic's title: it would be found by its quotation. So
  give links that were made in replies where that is known.
- The splits hold whole components of the links.

Splits are drawn anew each time until a training keeps them: a link that comes later would otherwise move others from
split to split, and a model would be compared by links that it has learned. ::

    parts.json    {"format": 1, "seed": 0, "parts": {question id: "train", "dev" or "test"}}
    learned.json  {"format": 1, "models": {fingerprint: [ids of the questions whose links were learned]}}

Without the first file the splits are drawn anew; without the second, what the forum's model has learned is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from askalike.errors import DamagedForumError, EvaluationError
from askalike.evaluation import split_components
from askalike.files import replace_whole
from askalike.forum import Forum
from askalike.index.model_source import own_model
from askalike.index.vector_set import parse_current, read_current
from askalike.store import ForumLayout
from askalike.text.markup import plain_text
from askalike.types import Qrels, Question, Run

SPLITS: Final[Mapping[str, float]] = {"train": 0.6, "dev": 0.2, "test": 0.2}
"""The splits of a forum's duplicate components and their shares."""

SPLIT_SEED: Final = 0
_FORMAT: Final = 1


class _Splits(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal[1]
    seed: Literal[0]
    parts: dict[str, Literal["train", "dev", "test"]]


class _Learned(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal[1]
    models: dict[str, list[str]]


_File = TypeVar("_File", _Splits, _Learned)


def split_links(forum: Path, pairs: Iterable[tuple[str, str]], seed: int = SPLIT_SEED) -> dict[str, tuple[str, ...]]:
    """Return the questions of each split; those that are kept stay where they are, unless another seed is asked for."""
    return split_components(pairs, SPLITS, seed, kept=kept_splits(forum) if seed == SPLIT_SEED else None)


def kept_splits(forum: Path) -> Mapping[str, str]:
    """Return question → split, as they are kept with the forum; nothing where they are not.

    Raises:
        DamagedForumError: the file cannot be read.
    """
    splits = _read(ForumLayout(forum).parts, _Splits, "delete it to split the duplicates anew")
    return splits.parts if splits else {}


def keep_splits(forum: Path, splits: Mapping[str, str]) -> None:
    """Keep the split of each question with the forum."""
    stored = {"format": _FORMAT, "seed": SPLIT_SEED, "parts": dict(sorted(splits.items()))}
    replace_whole(ForumLayout(forum).parts, json.dumps(stored, indent=1).encode())


def learned_questions(forum: Forum) -> frozenset[str]:
    """Return the questions whose links the model that answers now has learned, as far as they were kept."""
    folder = ForumLayout(forum.path).vectors
    state = read_current(folder)
    if state is None or not forum.indexes.state().model:
        return frozenset()
    return frozenset(_kept_learned(forum.path).get(parse_current(state, folder).fingerprint, ()))


def keep_learned(forum: Path, model: str, learned: Iterable[str]) -> None:
    """Keep with the forum what a model has learned from, before it is taken; what the one before had learned stays.

    Args:
        model: its fingerprint.
        learned: ids of the questions whose links it has learned.
    """
    before = _kept_learned(forum)
    if model in before:
        return
    present = own_model(ForumLayout(forum))
    models = {name: ids for name, ids in before.items() if present is not None and name == present.fingerprint}
    models[model] = sorted(set(learned))
    replace_whole(ForumLayout(forum).learned, json.dumps({"format": _FORMAT, "models": models}).encode())


def _kept_learned(forum: Path) -> dict[str, list[str]]:
    learned = _read(ForumLayout(forum).learned, _Learned, "delete it: what was learned is then not known")
    return learned.models if learned else {}


def _read(file: Path, kind: type[_File], instead: str) -> _File | None:
    """Return what a file holds, None where there is none."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
        raise DamagedForumError(f"{file} cannot be read: {error}", f"restore it from a backup, or {instead}") from error


HALVES: Final[Mapping[str, float]] = {"dev": 0.5, "test": 0.5}
_LEAST_TITLE: Final = 10
"""A shorter title may occur in a text by chance."""


@dataclass(frozen=True, slots=True)
class DuplicateTask:
    """Queries and what is relevant to them.

    Args:
        split: "train", "dev", "test" or "all".
        queries: id → question, ordered by id.
        qrels: query id → {relevant id: 1}.
        collection: id → question, oldest first. What came to the forum later is no part of the task.
    """

    split: str
    queries: Mapping[str, Question]
    qrels: Qrels
    collection: Mapping[str, Question]


@dataclass(frozen=True, slots=True)
class DuplicateLinks:
    """A forum's questions and the duplicate links between them, read once: others may write to the forum meanwhile.

    Args:
        questions: id → question, oldest first.
        pairs: (duplicate, canonical question), ordered.
    """

    questions: Mapping[str, Question]
    pairs: Sequence[tuple[str, str]]


def read_duplicate_links(forum: Forum) -> DuplicateLinks:
    """Return the forum's questions, and its duplicate links between these.

    A pair that a person judged a duplicate counts as a link, and one that was judged different does not.
    """
    questions = {question.id: question for question in forum.questions()}
    judgements = forum.store.judgements()
    different = {
        frozenset((judgement.question_id, judgement.candidate_id))
        for judgement in judgements
        if judgement.verdict == "different"
    }
    linked = {(link.source_id, link.target_id) for link in forum.store.links() if link.kind == "duplicate"}
    judged = {
        (judgement.question_id, judgement.candidate_id) for judgement in judgements if judgement.verdict == "duplicate"
    }
    judged -= {(target, source) for source, target in linked}  # judged the other way round: one link, not two
    pairs = sorted(pair for pair in linked | judged if frozenset(pair) not in different)
    return DuplicateLinks(questions, [pair for pair in pairs if questions.keys() >= {*pair}])


def duplicate_task(
    forum: Forum, split: str = "all", seed: int = SPLIT_SEED, links: DuplicateLinks | None = None
) -> DuplicateTask:
    """Return the forum's duplicate links as a task.

    Args:
        links: as they were read, or None to read them.

    Raises:
        EvaluationError: the forum has no duplicate links, or none in this split.
    """
    links = links or read_duplicate_links(forum)
    pairs = links.pairs
    if not pairs:
        raise EvaluationError(
            f"the forum at {forum.path} has no duplicate links to evaluate on",
            "index an archive that has them, or score runs on judged data with askalike score",
        )
    wanted = _members(forum, pairs, split, seed)
    relevant = _relevant(pairs)
    queries = sorted({source for source, _ in pairs if source in wanted})
    if not queries:
        raise EvaluationError(f"no duplicate link falls into the split {split!r}", "use --split all for a small forum")
    return DuplicateTask(
        split=split,
        queries={query: links.questions[query] for query in queries},
        qrels={query: dict.fromkeys(sorted(relevant[query]), 1) for query in queries},
        collection=links.questions,
    )


def judge_candidates(task: DuplicateTask, candidates: Run) -> Qrels:
    """Return a judgement, 1 or 0, for every candidate of every query that has candidates."""
    return {
        query: {document: task.qrels[query].get(document, 0) for document, _ in ranked}
        for query, ranked in candidates.items()
        if ranked
    }


def related_task(forum: Forum, links: Iterable[tuple[str, str]], half: str) -> DuplicateTask:
    """Return one half of the links between related topics as queries and what is relevant to them.

    Args:
        links: (topic, topic that it links to); links from or to topics that the forum lacks are left out.

    Raises:
        EvaluationError: there is no such half, or no link falls into it.
    """
    if half not in HALVES:
        raise EvaluationError(f"there is no half {half!r} of the links", f"expected one of {', '.join(HALVES)}")
    known = {question.id: question for question in forum.questions()}
    pairs = sorted({(source, target) for source, target in links if {source, target} <= known.keys()})
    members = set(split_components(pairs, HALVES, SPLIT_SEED)[half])
    relevant: dict[str, set[str]] = {}
    for source, target in pairs:
        relevant.setdefault(source, set()).add(target)
        relevant.setdefault(target, set()).add(source)
    sources = sorted({source for source, _ in pairs if source in members})
    fair = {
        query: sorted(other for other in relevant[query] if other != query and not _quotes(known[query], known[other]))
        for query in sources
    }
    qrels = {query: dict.fromkeys(targets, 1) for query, targets in fair.items() if targets}
    if not qrels:
        raise EvaluationError(f"no link falls into the half {half!r}", "give links between topics that the forum holds")
    return DuplicateTask(half, {query: known[query] for query in qrels}, qrels, known)


def _relevant(pairs: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    copies: dict[str, set[str]] = {}
    for source, target in pairs:
        copies.setdefault(target, set()).add(source)
    relevant: dict[str, set[str]] = {}
    for source, target in pairs:
        relevant.setdefault(source, set()).update({target, *copies[target]} - {source})
        relevant.setdefault(target, set()).add(source)
    return relevant


def _members(forum: Forum, pairs: Sequence[tuple[str, str]], split: str, seed: int) -> set[str]:
    if split == "all":
        return {member for pair in pairs for member in pair}
    if split not in SPLITS:
        raise EvaluationError(f"there is no split {split!r}", f"expected all or one of {', '.join(SPLITS)}")
    return set(split_links(forum.path, pairs, seed)[split])


def _quotes(query: Question, other: Question) -> bool:
    title = other.title.casefold()
    text = f"{query.title}\n{plain_text(query.body, query.markup)}".casefold()
    return len(title) >= _LEAST_TITLE and title in text

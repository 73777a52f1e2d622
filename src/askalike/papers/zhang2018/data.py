"""The judged sets of SemEval Task 3 B, and the unlabelled texts that autoencoders learn from.

Texts come in this order, and a size takes the first of them: the questions of the training files, their comments, then
the questions of the archives that were named, in their order; an archive of SemEval's format brings its comments after
its questions, but for those on questions of the test files. Every text is taken once, by its words: a thread of the
forum is a candidate under several ids, and a twin of a held-out text would not be held out. For the same reason every
text of the test files is left out, though no label would come with it: half of the candidates of 2016's test, and a
fifth of those of 2017's, are candidates of the training and dev files too. And so is every text of dev, so that it
chooses settings on words that are as unknown as those of the tests.

Differs: the paper has the forum's whole archive, 189,941 questions and 1,894,456 comments, which an archive that is
named can bring in.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from askalike.errors import FormatError, SettingError
from askalike.evaluation.forum.tasks import RerankTask, judged_task, questions_of
from askalike.papers.harness import read_records
from askalike.progress import Progress, SilentProgress
from askalike.readers.detection import choose, named
from askalike.readers.frame import ReadContext
from askalike.readers.research.judged import read_judged
from askalike.types import Answer, Question

TESTS: Final = ("test2016", "test2017")
FOLDER: Final = "semeval-task3-b"
_TAKEN: Final = ("semeval", "comment", "questions", "comments")


@dataclass(frozen=True, slots=True)
class ZhangData:
    """What the tables need.

    Args:
        dev: chooses settings; its candidates are in the search engine's order, beside their BM25 scores.
        tests: by name.
        texts: to learn from, each text once, in the order in which a size takes them.
        kinds: how many texts are of each kind, in their order.
    """

    dev: RerankTask
    tests: dict[str, RerankTask]
    texts: tuple[Question, ...]
    kinds: dict[str, int]

    def first(self, size: int) -> tuple[Question, ...]:
        """Return so many texts, or all for 0.

        Raises:
            SettingError: there are fewer.
        """
        if size > len(self.texts):
            raise SettingError(
                f"{size:,} texts to learn from, but there are {len(self.texts):,}",
                "name more archives with --unlabelled, or a smaller --amount",
            )
        return self.texts[: size or None]

    def tasks(self) -> tuple[RerankTask, ...]:
        """Return dev and tests, named as in the tables."""
        return tuple(replace(task, name=name) for name, task in {"dev": self.dev, **self.tests}.items())


def read_data(folder: Path, archives: Sequence[Path] = (), progress: Progress | None = None) -> ZhangData:
    """Return the judged sets and the texts of a folder, and of more archives.

    Args:
        folder: of the SemEval files, or the folder above it.
        archives: of any format that ``askalike index`` reads.
    """
    _check_names([name for archive in archives for name in (archive.name, f"{archive.name} comments")])
    place = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    sets = {split: read_judged(place, "semeval", split) for split in ("train", "dev", *TESTS)}
    own = [question for split in ("train", "dev") for question in questions_of(sets[split])]
    judged = {_content(question) for split in ("dev", *TESTS) for question in questions_of(sets[split])}
    seen = set(judged)
    texts: dict[str, Question] = {}
    kept = [question for question in own if _is_new(question, seen)]
    texts |= {f"semeval/{question.id}": question for question in kept}
    kinds = {"questions": len(texts)}
    kept_ids = {question.id for question in kept}
    for record in named("semeval").read(place, ReadContext()):
        if isinstance(record, Answer) and record.question_id in kept_ids and _is_new(comment := _as_text(record), seen):
            texts[f"comment/{record.id}"] = comment
    kinds["comments"] = len(texts) - kinds["questions"]
    for archive in archives:
        for kind, kind_texts in _by_kind(archive, judged, progress or SilentProgress()).items():
            before = len(texts)
            for text in kind_texts:
                if _is_new(text, seen):
                    texts.setdefault(f"{kind}/{text.id}", text)
            kinds[kind] = len(texts) - before
    statistics = tuple(own)
    return ZhangData(
        judged_task(sets["dev"], "semeval", statistics),
        {test: judged_task(sets[test], "semeval", statistics) for test in TESTS},
        tuple(Question(name, text.title, text.body, text.markup) for name, text in texts.items()),
        kinds,
    )


def _is_new(question: Question, seen: set[str]) -> bool:
    """Return whether a text was not seen yet, and see it; one without words never is new."""
    content = _content(question)
    is_new = bool(content) and content not in seen
    seen.add(content)
    return is_new


def _content(question: Question) -> str:
    """Return what makes two texts the same: all but case and white space."""
    return " ".join(f"{question.title} {question.body}".casefold().split())


def _check_names(names: Sequence[str]) -> None:
    """Raise SettingError where the texts of two archives would have the same ids."""
    for place, name in enumerate(names):
        if name in _TAKEN or name in names[:place]:
            raise SettingError(f"more than one source of texts is called {name!r}", "give the archive another name")


def _by_kind(archive: Path, tests: Set[str], progress: Progress) -> dict[str, list[Question]]:
    """Return the questions of an archive, and its comments where it is of the judged sets' own format.

    Args:
        tests: contents of questions whose comments are left out.
    """
    if not archive.exists():
        raise FormatError(f"there is no archive {archive}", "look at its name")
    reader = choose(archive)
    questions: list[Question] = []
    comments: list[Question] = []
    excluded: set[str] = set()
    for record in read_records(reader, archive, progress):
        if isinstance(record, Question):
            questions.append(record)
            if _content(record) in tests:
                excluded.add(record.id)
        elif isinstance(record, Answer) and reader.name == "semeval" and record.question_id not in excluded:
            comments.append(_as_text(record))
    return {archive.name: questions} | ({f"{archive.name} comments": comments} if comments else {})


def _as_text(answer: Answer) -> Question:
    return Question(answer.id, "", answer.body, answer.markup)

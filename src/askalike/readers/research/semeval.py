"""SemEval-2016/2017 Task 3, subtask B (English, Qatar Living): original questions with ten related questions each.

Source: Nakov et al. 2016, "SemEval-2016 Task 3: Community Question Answering", sections 2 and 3; PerfectMatch and
Relevant both count as positive in the official scoring.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from askalike.errors import FormatError
from askalike.evaluation.files import read_semeval_gold
from askalike.readers.files import first_bytes, folder_members, open_bytes
from askalike.readers.frame import ReadContext, Reader
from askalike.readers.values import moment
from askalike.readers.xml import read_xml
from askalike.types import Answer, Judged, Link, LinkKind, Question, Record

GRADES = {"PerfectMatch": 2, "Relevant": 1, "Irrelevant": 0}
"""RELQ_RELEVANCE2ORGQ → grade."""

SPLITS = ("dev", "test2016", "test2017", "train")
_UNLABELLED = "?"
_LINK_KINDS: dict[str, LinkKind] = {"PerfectMatch": "duplicate", "Relevant": "related"}
_NAME = re.compile(r"SemEval(?P<year>\d{4})-Task3-CQA-QL-(?P<part>train|dev|test)", re.IGNORECASE)


@dataclass
class _Thread:
    """One related question with the original question that it is a candidate for."""

    line: int
    original: dict[str, str] = field(default_factory=dict)
    related: dict[str, str] = field(default_factory=dict)
    comments: list[tuple[int, dict[str, str]]] = field(default_factory=list)


class SemEvalReader(Reader):
    """The archive behind the task: original and related questions, comments as answers, judgments as links.

    PerfectMatch becomes a "duplicate" link from the original to the related question, Relevant a "related" one.
    """

    name = "semeval"

    def matches(self, path: Path) -> bool:
        """Say whether this is such a file, or a folder that holds one."""
        return bool(self.files(path))

    def files(self, path: Path) -> list[Path]:
        """Return the file, or those of a folder, that hold such XML."""
        return _files(path)

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield questions, answers and links in file order."""
        files = self.files(path)
        if not files:
            raise FormatError(f"{path.name} holds no SemEval Task 3 XML", 'expected <OrgQuestion ORGQ_ID="…">')
        context.notice("judgments become links: PerfectMatch as duplicate, Relevant as related; do not score on them")
        seen: set[str] = set()
        for file in files:
            for thread in _threads(file, context):
                yield from _records(thread, file.name, seen, context)


def load_semeval(path: Path, split: str, context: ReadContext) -> Judged:
    """Return one split of a folder as a judged set ("train" joins its parts), or a whole file.

    Candidates keep the file's order and score 1 / RELQ_RANKING_ORDER. Where the official gold
    (``….xml.subtaskB.relevancy``) lies beside a file, it has to agree with the labels.

    Raises:
        FormatError: no file of this split, a file without labels, or gold that says something else.
        DamagedInputError: a file is damaged.
    """
    files = [path]
    if path.is_file():
        if split and split != _split_of(path):
            raise FormatError(
                f"{path.name} is of split {_split_of(path) or 'unknown'!r}, not {split!r}", "leave the split out"
            )
    else:
        split = split or SPLITS[0]
        files = [file for file in _files(path) if _split_of(file) == split]
    if not files:
        present = sorted({_split_of(file) for file in _files(path)} - {""})
        raise FormatError(
            f"{path} has no file of split {split!r}",
            f"it has: {', '.join(present)}" if present else "give the folder of SemEval's XML files",
        )
    match = _NAME.search(files[0].name)
    name = f"semeval{match['year']}-{match['part'].lower()}" if match else files[0].name.removesuffix(".xml")
    judged = Judged(name, {}, {}, {}, {})
    for file in files:
        for thread in _threads(file, context):
            if thread.related.get("RELQ_RELEVANCE2ORGQ", _UNLABELLED) == _UNLABELLED:
                raise FormatError(f"{file.name} has no labels", "give the file with RELQ_RELEVANCE2ORGQ filled in")
            _judge(thread, file.name, judged, context)
        _check_gold(file, judged, context)
    return judged


def _judge(thread: _Thread, file: str, judged: Judged, context: ReadContext) -> None:
    query, document = thread.original["ORGQ_ID"], thread.related["RELQ_ID"]
    if document in judged.documents:
        context.reject(file, thread.line, document, "this related question was met before")
        return
    context.records_in += 1
    original = _original(thread, context)
    if judged.queries.setdefault(query, original) != original:
        context.repair("original questions written in two ways, of which the first counts")
    judged.documents[document] = _related(thread, context)
    rank = int(thread.related["RELQ_RANKING_ORDER"])
    judged.candidates.setdefault(query, []).append((document, 1.0 / rank))
    judged.qrels.setdefault(query, {})[document] = GRADES[thread.related["RELQ_RELEVANCE2ORGQ"]]


def _check_gold(file: Path, judged: Judged, context: ReadContext) -> None:
    gold = file.with_name(f"{file.name.removesuffix('.xml').removesuffix('.reconstructed')}.xml.subtaskB.relevancy")
    if not gold.is_file():
        return
    for query, labels in read_semeval_gold(gold)[0].items():
        for document, label in labels.items():
            grade = judged.qrels.get(query, {}).get(document)
            if grade is None or (grade > 0) != label:
                raise FormatError(
                    f"{gold.name}: {document} of {query} is {'true' if label else 'false'}, which does not agree with "
                    f"{file.name}, where the grade is {grade}",
                    "fetch both from the same release, or move the gold away",
                )
    context.notice(f"{gold.name} agrees with the labels of {file.name}")


def _threads(file: Path, context: ReadContext) -> Iterator[_Thread]:
    """Yield what can be used; a thread that cannot is rejected, with each of its comments."""
    original: dict[str, str] = {}
    thread = _Thread(0)
    comment: dict[str, str] = {}
    with open_bytes(file, context) as stream:
        for event in read_xml(stream, file.name, context.options.limits, context.repair):
            if event.kind == "start":
                if event.tag == "OrgQuestion":
                    original = dict(event.attributes)
                elif event.tag == "Thread":
                    thread = _Thread(event.line, original)
                elif event.tag == "RelQuestion":
                    thread.related.update(event.attributes)
                elif event.tag == "RelComment":
                    comment = dict(event.attributes)
                    thread.comments.append((event.line, comment))
            elif event.tag in ("OrgQSubject", "OrgQBody"):
                original[event.tag] = event.text.strip()
            elif event.tag in ("RelQSubject", "RelQBody"):
                thread.related[event.tag] = event.text.strip()
            elif event.tag == "RelCText":
                comment[event.tag] = event.text.strip()
            elif event.tag == "Thread":
                if problem := _problem(thread):
                    _reject_thread(thread, file.name, problem, context)
                else:
                    yield thread


def _problem(thread: _Thread) -> str:
    """Return why a thread cannot be used, or ""."""
    original, related = thread.original, thread.related
    if original and not original.get("ORGQ_ID"):
        return "no ORGQ_ID"
    if not related.get("RELQ_ID"):
        return "no RELQ_ID"
    if original and not re.fullmatch("[1-9][0-9]{0,8}", related.get("RELQ_RANKING_ORDER", "")):
        return f"RELQ_RANKING_ORDER is {related.get('RELQ_RANKING_ORDER')!r}, expected a rank from 1"
    label = related.get("RELQ_RELEVANCE2ORGQ", "")
    if original and label not in (*GRADES, _UNLABELLED):
        return f"RELQ_RELEVANCE2ORGQ is {label!r}, expected one of {', '.join(GRADES)}"
    return ""


def _reject_thread(thread: _Thread, file: str, reason: str, context: ReadContext) -> None:
    context.reject(file, thread.line, thread.related.get("RELQ_ID", ""), reason)
    for line, comment in thread.comments:
        context.reject(file, line, comment.get("RELC_ID", ""), "its question cannot be used")


def _records(thread: _Thread, file: str, seen: set[str], context: ReadContext) -> Iterator[Record]:
    original, related = _original(thread, context) if thread.original else None, _related(thread, context)
    if related.id in seen:
        _reject_thread(thread, file, "this related question was met before", context)
        return
    questions = [question for question in (original, related) if question is not None and question.id not in seen]
    seen.update(question.id for question in questions)
    context.records_in += len(questions)
    yield from questions
    for line, comment in thread.comments:
        identifier = comment.get("RELC_ID", "")
        if not identifier or identifier in seen or "RelCText" not in comment:
            context.reject(file, line, identifier, "a comment needs a new RELC_ID and a text")
            continue
        seen.add(identifier)
        context.records_in += 1
        created, author = moment(comment.get("RELC_DATE", ""), context), _author(comment, "RELC")
        yield Answer(identifier, related.id, comment["RelCText"], created=created, author=author)
    kind = _LINK_KINDS.get(thread.related.get("RELQ_RELEVANCE2ORGQ", ""))
    if kind is not None and original is not None:
        context.records_in += 1
        yield Link(original.id, related.id, kind)


def _original(thread: _Thread, context: ReadContext) -> Question:
    fields = thread.original
    name = fields["ORGQ_ID"]
    return Question(name, fields.get("OrgQSubject", ""), fields.get("OrgQBody", ""), url=context.address(name))


def _related(thread: _Thread, context: ReadContext) -> Question:
    fields = thread.related
    category = fields.get("RELQ_CATEGORY", "")
    return Question(
        fields["RELQ_ID"],
        fields.get("RelQSubject", ""),
        fields.get("RelQBody", ""),
        tags=(category,) if category else (),
        created=moment(fields.get("RELQ_DATE", ""), context),
        url=context.address(fields["RELQ_ID"]),
        author=_author(fields, "RELQ"),
    )


def _author(fields: dict[str, str], prefix: str) -> str:
    return fields.get(f"{prefix}_USERNAME", "") or fields.get(f"{prefix}_USERID", "")


def _files(path: Path) -> list[Path]:
    files = folder_members(path, ".xml") if path.is_dir() else [path]
    return [file for file in files if _is_semeval(file)]


def _is_semeval(file: Path) -> bool:
    head = first_bytes(file)
    return (b"<OrgQuestion " in head and b"ORGQ_ID" in head) or (b"<Thread " in head and b"<RelQuestion " in head)


def _split_of(file: Path) -> str:
    match = _NAME.search(file.name)
    if match is None or "-input" in file.name:
        return ""
    part = match["part"].lower()
    return f"test{match['year']}" if part == "test" else part

"""The one table of judged sets, and the one way to them; and the labelled pairs of Zhang et al.

Source: Zhang et al. 2014, "Question Retrieval with High Quality Answers in Community Question Answering", CIKM.

Policy: a judged set is read whole or not at all. A forum goes on without a record that cannot be read; a judged set
with a query or judgment missing would give other figures, so one reject is an error here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from askalike.errors import DamagedInputError, FormatError, SettingError
from askalike.readers.files import first_bytes, text_lines
from askalike.readers.frame import ReadContext
from askalike.readers.research import askubuntu, semeval
from askalike.readers.values import Unreadable, one_line
from askalike.types import Judged, Question

_LABELS = {"0": 0, "1": 1}


def has_labelled_judgments(path: Path) -> bool:
    """Say whether the first line has four fields of which the third is 0 or 1."""
    fields = first_bytes(path).split(b"\n", 1)[0].split(b"\t")
    return len(fields) == 4 and fields[2] in (b"0", b"1") and fields[0] not in (b"0", b"1")


def load_labelled(path: Path, split: str, context: ReadContext) -> Judged:
    """Return the labelled set: one query for every different query text.

    Ids are made from positions: queries are "q1", "q2", … in the order of their first lines, and the candidates of q7
    are "q7-1", "q7-2", …; the key is not used, since no text says whether it names the query or the pair. The file
    gives no search engine's order: candidates keep the file's order and all score 0, and the context is told when that
    order gives the labels away.

    Raises:
        DamagedInputError: the file is empty, truncated or not UTF-8.
    """
    judged = Judged(path.name.split(".")[0], {}, {}, {}, {})
    ids: dict[str, str] = {}
    for line, text in text_lines(path, path.name, context):
        fields = text.split("\t")
        try:
            if len(fields) != 4 or fields[2].strip() not in _LABELS:
                raise Unreadable("expected query, candidate, label (0 or 1) and key, split by tabs")
            query, candidate = (one_line(field, "text", context) for field in fields[:2])
            if not query or not candidate:
                raise Unreadable("an empty text")
        except Unreadable as error:
            context.reject(path.name, line, fields[-1], str(error))
            continue
        context.records_in += 1
        query_id = ids.setdefault(query, f"q{len(ids) + 1}")
        judged.queries.setdefault(query_id, Question(query_id, query))
        candidates = judged.candidates.setdefault(query_id, [])
        document = f"{query_id}-{len(candidates) + 1}"
        candidates.append((document, 0.0))
        judged.documents[document] = Question(document, candidate)
        judged.qrels.setdefault(query_id, {})[document] = _LABELS[fields[2].strip()]
    if _is_sorted_by_label(judged):
        context.notice(f"{path.name} lists positives first: a system that ties keeps this order and looks perfect")
    return judged


def _is_sorted_by_label(judged: Judged) -> bool:
    labels = [list(grades.values()) for grades in judged.qrels.values() if len(set(grades.values())) > 1]
    return bool(labels) and all(grades == sorted(grades, reverse=True) for grades in labels)


Loader = Callable[[Path, str, ReadContext], Judged]
"""(path, split, "" for the default, context) → the set; what cannot be read goes to the context's rejects."""

LOADERS: Final[Mapping[str, tuple[tuple[str, ...], Loader]]] = {
    "askubuntu": (askubuntu.SPLITS, askubuntu.load_askubuntu),
    "labelled": ((), load_labelled),
    "semeval": (semeval.SPLITS, semeval.load_semeval),
}
"""Format → (its splits, the default first, none where a file is one set; what reads it)."""


def read_judged(path: Path, name: str, split: str = "", context: ReadContext | None = None) -> Judged:
    """Return a split of a judged set, whole.

    Args:
        name: a format in ``LOADERS``.

    Raises:
        FormatError: there is nothing at the path, the name is not known, a file is missing or of another format.
        SettingError: the format has no such split.
        DamagedInputError: a record cannot be read, a candidate has no text, or there are no queries.
    """
    if not path.exists():
        raise FormatError(f"there is nothing at {path}", "check the path")
    if name not in LOADERS:
        raise FormatError(f"{name!r} is no format of judged sets", f"known: {', '.join(LOADERS)}")
    splits, load = LOADERS[name]
    if split and split not in splits:
        raise SettingError(
            f"{name} has no split {split!r}", f"splits: {', '.join(splits) or 'none: the file is one set'}"
        )
    context = context or ReadContext()
    refused_before = context.rejects.count
    judged = load(path, split, context)
    if refused := context.rejects.count - refused_before:
        where = ""
        if refused_before < len(context.rejects.first):
            first = context.rejects.first[refused_before]
            where = f", first {first.file}, line {first.line}: {first.reason}"
        raise DamagedInputError(
            f"{path.name}: {refused} records cannot be read{where}",
            "a judged set is read whole or not at all; mend those lines",
        )
    if not judged.queries:
        raise DamagedInputError(f"{path.name} holds no judged query", "fetch the file again from where it came")
    return judged

"""The one table of judged sets, and the one way to them.

Source: Zhang et al. 2014, "Question Retrieval with High Quality Answers in Community Question Answering", CIKM.

Policy: a judged set is read whole or not at all. A forum goes on without a record that cannot be read; a judged set
with a query or judgment missing would give other figures, so one reject is an error here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from askalike.errors import DamagedInputError, FormatError, SettingError
from askalike.readers.files import first_bytes, text_lines
from askalike.readers.frame import ReadContext
from askalike.readers.research import askubuntu, beir, semeval
from askalike.readers.research.askubuntu import has_askubuntu_judgments, load_askubuntu
from askalike.readers.research.beir import has_beir_judgments, load_beir
from askalike.readers.research.semeval import SemEvalReader, load_semeval
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


@dataclass(frozen=True, slots=True)
class JudgedReader:
    """One format of judged sets.

    Args:
        splits: what may be asked for, the default first; empty when a file is one set.
        matches: path → whether it looks like this format; cheap.
        load: path, split ("" for the default) and context → the set; what cannot be read goes to the context's rejects.
    """

    name: str
    title: str
    splits: tuple[str, ...]
    matches: Callable[[Path], bool]
    load: Callable[[Path, str, ReadContext], Judged]

    def read(self, path: Path, split: str = "", context: ReadContext | None = None) -> Judged:
        """Return a split of the set, whole.

        Raises:
            SettingError: the format has no such split.
            FormatError: a file is missing, or of another format.
            DamagedInputError: a record cannot be read, a candidate has no text, or there are no queries.
        """
        if split and split not in self.splits:
            known = ", ".join(self.splits) or "none: the file is one set"
            raise SettingError(f"{self.name} has no split {split!r}", f"splits: {known}")
        context = context or ReadContext()
        refused_before = context.rejects.count
        judged = self.load(path, split, context)
        refused = context.rejects.count - refused_before
        if refused:
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


_ALL = (
    JudgedReader("askubuntu", "AskUbuntu set of Lei et al.", askubuntu.SPLITS, has_askubuntu_judgments, load_askubuntu),
    JudgedReader("beir", "BEIR folder", beir.SPLITS, has_beir_judgments, load_beir),
    JudgedReader("labelled", "labelled pairs of Zhang et al. 2014", (), has_labelled_judgments, load_labelled),
    JudgedReader("semeval", "SemEval Task 3 B (XML)", semeval.SPLITS, SemEvalReader().matches, load_semeval),
)

JUDGED: dict[str, JudgedReader] = {reader.name: reader for reader in _ALL}
"""Format name → its reader."""


def read_judged(path: Path, name: str = "", split: str = "", context: ReadContext | None = None) -> Judged:
    """Return a judged set; the format is found out when no name is given.

    Raises:
        FormatError: there is nothing at the path, no format or several match, or the name is not known.
        SettingError: the format has no such split.
        DamagedInputError: it cannot be read whole.
    """
    if not path.exists():
        raise FormatError(f"there is nothing at {path}", "check the path")
    if name and name not in JUDGED:
        raise FormatError(f"{name!r} is no format of judged sets", f"known: {', '.join(JUDGED)}")
    found = [JUDGED[name]] if name else [reader for reader in JUDGED.values() if reader.matches(path)]
    if len(found) != 1:
        names = ", ".join(reader.name for reader in found) or "no format"
        raise FormatError(f"{path.name} looks like {names}, expected exactly one", f"name one of: {', '.join(JUDGED)}")
    return found[0].read(path, split, context)

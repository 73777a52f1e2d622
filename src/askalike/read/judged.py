"""The one table of judged sets, and the one door to them.

Policy: a judged set is read whole or not at all. A forum goes on without a record that cannot be read; a judged set
with a query or judgment missing would give other figures, so one reject is an error here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from askalike.errors import DamagedInputError, FormatError, SettingError
from askalike.read import askubuntu, beir, semeval
from askalike.read.askubuntu import has_askubuntu_judgments, load_askubuntu
from askalike.read.beir import has_beir_judgments, load_beir
from askalike.read.frame import ReadContext
from askalike.read.labelled import has_labelled_judgments, load_labelled
from askalike.read.semeval import has_semeval_judgments, load_semeval
from askalike.types import Judged


@dataclass(frozen=True, slots=True)
class JudgedReader:
    """One format of judged sets.

    Args:
        name: what the user calls it.
        title: one line for lists.
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
    JudgedReader("semeval", "SemEval Task 3 B (XML)", semeval.SPLITS, has_semeval_judgments, load_semeval),
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

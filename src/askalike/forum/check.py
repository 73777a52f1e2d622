"""Whether everything in a forum's folder holds what was written, and agrees: a check opens nothing for writing.

Each part is looked at by itself, so that damage of one hides none of another. What differs from what it should be is a
finding; one is damage where answers may be wrong, or missing, because of it. What is damaged is made anew from the
archive where it can be; the archive itself is never written.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import filelock

from askalike.errors import (
    AskalikeError,
    BusyForumError,
    DamagedForumError,
    ForumError,
    ModelError,
    SettingError,
)
from askalike.files import (
    REFUSED,
    Owned,
    foreign_in,
    holding,
    is_link,
    remove_file,
)
from askalike.forum.indexes import NEW_FORUM_FILES, ForumSettings, remove_indexes
from askalike.index.local import LOCK_TIMEOUT_S
from askalike.index.milvus.choice import engine_of
from askalike.index.milvus.client import Milvus
from askalike.index.milvus.vectors import MilvusSets
from askalike.index.milvus.words import MilvusWords
from askalike.index.model_source import OWN_NAMES
from askalike.index.model_source import fingerprint as model_fingerprint
from askalike.index.vector_set import OWNED as VECTOR_FILES
from askalike.index.vector_set import (
    Current,
    LocalVectorIndexes,
    VectorEntries,
    VectorIndexes,
    has_its_model,
    languages_read,
    parse_current,
    read_current,
)
from askalike.index.vectors import VectorIndex
from askalike.index.word_indexer import fingerprint
from askalike.index.words import WordIndex
from askalike.models.adapted import load_model
from askalike.models.encoder_settings import FILE as ENCODER_FILE
from askalike.models.encoder_settings import read_reranker, read_settings
from askalike.models.folder import OWNED as MODEL_FILES
from askalike.progress import Progress, SilentProgress
from askalike.records import batches
from askalike.search.texts import unpacked
from askalike.store import Contents, ForumLayout, open_store, pair_faults, stored_contents, stored_faults
from askalike.store.layout import not_found
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings

Part = Literal["archive", "words", "vectors", "pairs", "model", "files"]

_PAIRS: Final = ("pairs.sqlite", "pairs.sqlite-wal", "pairs.sqlite-shm", "pairs.sqlite-journal")
REPAIR: Final = 'run "askalike check FORUM --repair"'


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be.

    Args:
        path: of the file or folder, within the forum's.
        what: is the matter with it.
        mend: what mends it; "" where nothing needs to be done.
        is_damage: False for what does no harm, such as a file that is nobody's.
    """

    part: Part
    path: str
    what: str
    mend: str = REPAIR
    is_damage: bool = True


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Args:
        repaired: what was made anew, such as "words".
    """

    findings: tuple[Finding, ...]
    repaired: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Return whether nothing is damaged."""
        return not any(finding.is_damage for finding in self.findings)

    def damaged(self, part: Part) -> list[Finding]:
        """Return the damage of one part."""
        return [finding for finding in self.findings if finding.part == part and finding.is_damage]


def refused(part: Part, path: str, error: Exception, mend: str = REPAIR) -> Finding:
    """Return the finding of what could not be read; where only rights are lacking, nothing is to be repaired."""
    what = error.message if isinstance(error, AskalikeError) else str(error)
    if isinstance(error, ForumError) and not isinstance(error, DamagedForumError):
        mend = error.hint
    elif isinstance(error, OSError) and error.errno in REFUSED:
        mend = "check the rights of the forum's folder"
    return Finding(part, path, what, mend)


_CHECKED_TOGETHER: Final = 1000
MOST_NAMED: Final = 1000
"""Findings of one part that are named."""

RESTORE: Final = "restore archive.sqlite from a backup, or load what it was filled from again"

_FORUM: Final = Owned(
    rf"{NEW_FORUM_FILES.files}|(keys|keys\.json)\.lock|(keys|parts|learned)\.json(\.\d+\.tmp)?",
    (*NEW_FORUM_FILES.folders, (r"model|\.model\.(replaced|going)", MODEL_FILES)),
)


def check_forum(path: Path, progress: Progress) -> CheckReport:
    """Check a forum.

    Raises:
        ForumNotFoundError: there is none.
    """
    layout = ForumLayout(path)
    if not (layout.is_forum() or layout.lexical.is_dir()):
        raise not_found(layout.archive)
    return CheckReport(tuple(_findings(layout, progress)))


def _findings(layout: ForumLayout, progress: Progress) -> Iterator[Finding]:
    archive = layout.archive.name
    faults = stored_faults(layout, progress) if layout.is_forum() else ["is not there"]
    yield from _named("archive", (Finding("archive", archive, what, RESTORE) for what in faults))
    try:
        with closing(open_store(layout)) if layout.engine.is_file() else nullcontext() as store:
            engine = None if store is None else engine_of(layout, store)
    except AskalikeError as error:
        yield refused("words", layout.engine.name, error)
        return
    indexes: VectorIndexes = LocalVectorIndexes() if engine is None else MilvusSets(engine, lambda _: nullcontext())
    yield from _named("words", _words(layout, engine, progress))
    yield from _named("vectors", _vectors(layout, progress, indexes))
    yield from _named("pairs", _pairs(layout))
    yield from _named("model", _models(layout, progress))
    yield from _named("files", _files(layout))


def _named(part: Part, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings, and only the number of those beyond ``MOST_NAMED``."""
    yield from islice(findings, MOST_NAMED)
    rest = list(findings)
    if rest:
        is_damage = any(finding.is_damage for finding in rest)
        yield Finding(part, "", f"{len(rest):,} more findings of this part", "", is_damage)


# -- indexes -------------------------------------------------------------------------------------------------------


def _words(layout: ForumLayout, engine: Milvus | None, progress: Progress) -> Iterator[Finding]:
    """Check the words of a forum, in its folder or in an engine."""
    name = (layout.lexical if engine is None else layout.engine).name
    contents = stored_contents(layout)
    settings = None if contents is None else _text_settings(contents)
    if isinstance(settings, str):
        yield Finding("archive", layout.archive.name, settings, RESTORE)
    made_by = fingerprint(Analyzer(settings)) if isinstance(settings, TextSettings) else ""
    index: WordIndex | MilvusWords | None = None
    try:
        if engine is not None and made_by:
            words = MilvusWords(engine, f"words_{made_by}", made_by)
            words.reopen()
            index = words if words.exists else None
        elif engine is None and WordIndex.exists(layout.lexical):
            index = WordIndex(layout.lexical)
            progress.start("checking the word index", index.entries, "questions")
            index.check()
            yield from _texts(index, name, progress)
        if index is not None:
            if made_by and index.cursor.fingerprint != made_by:
                what = "was made by another version or other text settings; whoever opens the forum next makes it anew"
                yield Finding("words", name, what)
            yield from _agreement("words", name, index, layout)
        elif engine is None or made_by:
            what = "there is no word index; the next command that opens the forum builds it"
            is_restored = engine is None and not (layout.lexical.exists() or layout.vectors.exists())
            yield Finding("words", name, what, is_damage=not is_restored)  # a backup holds the archive alone
    except (AskalikeError, OSError) as error:
        yield refused("words", name, error)


def _texts(index: WordIndex, name: str, progress: Progress) -> Iterator[Finding]:
    """Check the questions as they are compared, which words are kept with."""
    for nums in batches(index.numbers(), _CHECKED_TOGETHER):
        texts = index.texts(nums)
        if damaged := sum(num not in texts or unpacked(texts[num]) is None for num in nums):
            yield Finding("words", name, f"holds {damaged:,} texts that are not what was written")
        progress.advance(len(nums))


def _text_settings(contents: Contents) -> TextSettings | str:
    """Return the forum's text settings, or what is wrong with them."""
    try:
        return TextSettings.from_json({name: json.loads(value) for name, value in contents.settings.items()})
    except (SettingError, ValueError) as error:
        return f"its settings are not understood: {error}"


def _agreement(
    part: Part,
    name: str,
    index: WordIndex | MilvusWords | VectorEntries,
    layout: ForumLayout,
    languages: tuple[str, ...] | None = None,
) -> Iterator[Finding]:
    """Compare the numbers that an index holds with the archive's; changes that it has not seen do not count.

    Args:
        languages: those that the maker of vectors reads; questions in others have none.
    """
    cursor, numbers = index.cursor, [int(num) for num in index.numbers()]
    contents = stored_contents(layout)  # after the index, which has seen no later change then
    if contents is None:
        return
    expected = contents.numbers
    text = _text_settings(contents)
    if languages is not None and isinstance(text, TextSettings) and text.languages:
        expected = frozenset(num for num in expected if text.is_encoded(contents.languages.get(num, ""), languages))
    if cursor.applied > contents.last_change:
        what = f"has seen change {cursor.applied}, though the archive's last is {contents.last_change}"
        yield Finding(part, name, what)
        return
    waiting = {num for seq, num in contents.changes if seq > cursor.applied}
    if not cursor.is_complete:
        waiting |= {num for num in expected if num > cursor.scanned}
    if waiting:
        what = f"has not indexed {len(waiting):,} questions yet; the next command that opens the forum goes on with it"
        yield Finding(part, name, what, "", is_damage=False)
    twice = [num for num, times in Counter(numbers).items() if times > 1]
    indexed = set(numbers)
    lost, left = expected - indexed - waiting, indexed - expected - waiting
    for wrong, how in ((twice, "twice"), (lost, "not"), (left, "though the archive does not hold them")):
        if wrong:
            examples = ", ".join(map(str, sorted(wrong)[:10]))
            yield Finding(part, name, f"holds {len(wrong):,} questions {how}, such as the numbers {examples}")


# -- vectors -------------------------------------------------------------------------------------------------------


def _vectors(layout: ForumLayout, progress: Progress, indexes: VectorIndexes) -> Iterator[Finding]:
    """Check the sets of vectors of a forum."""
    folder = layout.vectors
    name = _within(folder, layout)
    if not folder.is_dir():
        if folder.exists() or folder.is_symlink():
            yield Finding("vectors", name, "is not a folder")
        return
    if is_link(folder):
        yield Finding("vectors", name, "is a link: nothing can be changed there", "put a folder in its place")
    current: Current | None = None
    try:
        state = read_current(folder)
        current = None if state is None else parse_current(state, folder)
    except ForumError as error:
        yield refused("vectors", f"{name}/current.json", error)
        return
    answering = "" if current is None else current.fingerprint
    places = [path for path in sorted(folder.iterdir()) if VECTOR_FILES.folder(path.name) and "." not in path.name]
    if answering and answering not in {place.name for place in places}:
        yield Finding("vectors", f"{name}/current.json", f"names the set {answering}, which is not there")
    progress.start("checking vectors and models", 0, "sets")
    for place in places:
        yield from _set(layout, place, current, indexes)


def _set(layout: ForumLayout, place: Path, current: Current | None, indexes: VectorIndexes) -> Iterator[Finding]:
    name, answering = _within(place, layout), "" if current is None else current.fingerprint
    try:
        has_index = indexes.exists(place)
        if has_index or place.name == answering:
            yield from _maker(place, name)
        if not has_index:  # of a set that was begun, and stopped for want of room or by a kill
            yield Finding("vectors", f"{name}/index", "there is no index", is_damage=place.name == answering)
            return
        index = indexes.open(place)
        index.check()
        agreement = list(_agreement("vectors", f"{name}/index", index, layout, _languages_read(place)))
    except (AskalikeError, OSError) as error:
        yield refused("vectors", f"{name}/index", error)
        return
    if index.cursor.fingerprint != place.name:
        yield Finding("vectors", f"{name}/index", f"holds vectors of the model {index.cursor.fingerprint}")
    if index.cursor.is_complete and not answering:
        path = _within(place.parent / "current.json", layout)
        yield Finding("vectors", path, f"is not there, though the set {place.name} is complete")
    if place.name == answering and not index.cursor.is_complete:
        yield Finding("vectors", f"{name}/index", "answers, though it is not complete")
    yield from agreement


def _languages_read(place: Path) -> tuple[str, ...]:
    """Return the languages that the maker of a set reads, where that can be known."""
    with contextlib.suppress(AskalikeError, OSError):
        return languages_read(read_settings(place / ENCODER_FILE))
    return ()


def _maker(place: Path, name: str) -> Iterator[Finding]:
    """Check the model or the encoder that made the vectors of a set."""
    part = "model"
    try:
        if (place / ENCODER_FILE).exists():
            part = ENCODER_FILE
            read_settings(place / ENCODER_FILE)
        else:
            load_model(place / "model")
        if not has_its_model(place):
            yield Finding("vectors", f"{name}/{part}", "is not what made the vectors of this set")
    except (AskalikeError, OSError) as error:
        yield refused("vectors", f"{name}/{part}", error)


# -- what is made anew or learned ----------------------------------------------------------------------------------


def _pairs(layout: ForumLayout) -> Iterator[Finding]:
    def last_change() -> int | None:
        contents = stored_contents(layout)
        return None if contents is None else contents.last_change

    if layout.pairs.exists() or layout.pairs.is_symlink():
        yield from (Finding("pairs", layout.pairs.name, what) for what in pair_faults(layout, last_change))


def _models(layout: ForumLayout, progress: Progress) -> Iterator[Finding]:
    if layout.model.exists() or layout.model.is_symlink():
        try:
            load_model(layout.model)
        except (AskalikeError, OSError) as error:
            yield refused("model", layout.model.name, error)
    for path, read in ((layout.encoder, read_settings), (layout.reranker, read_reranker)):
        try:
            read(path)
        except AskalikeError as error:
            yield refused("files", path.name, error)


# -- other files ---------------------------------------------------------------------------------------------------


def _files(layout: ForumLayout) -> Iterator[Finding]:
    for path in foreign_in(layout.folder, _FORUM):
        if path == layout.training:
            continue
        what = "is not one of askalike's" + (", and a link" if is_link(path) else "")
        yield Finding("files", _within(path, layout), what, "", is_damage=False)
    for path in unusable_locks(layout) if os.access(layout.folder, os.W_OK) else ():
        yield Finding("files", _within(path, layout), "is not a file that this process may lock")
    for path in (layout.keys, layout.parts, layout.learned):
        if path.exists() or path.is_symlink():
            try:
                json.loads(path.read_bytes())
            except (OSError, ValueError, RecursionError) as error:
                yield Finding("files", path.name, f"cannot be read: {error}", "take it from a backup, or delete it")


def unusable_locks(layout: ForumLayout) -> list[Path]:
    """Return what stands where a file is locked, and is a folder, a link, or nothing that this process may write."""
    return [
        path
        for path in sorted(layout.folder.rglob("*.lock"))
        if is_link(path) or not path.is_file() or not os.access(path, os.R_OK | os.W_OK)
    ]


def _within(path: Path, layout: ForumLayout) -> str:
    return path.relative_to(layout.folder).as_posix()


def clear_damage(layout: ForumLayout, report: CheckReport, settings: ForumSettings) -> tuple[str, ...]:
    """Take away what is damaged and will be made anew when the forum is opened and encoded; return what that is.

    Raises:
        BusyForumError: another process is indexing, encoding or comparing.
        ForumError: something that is not askalike's is in the way.
    """
    done: list[str] = []
    for path in unusable_locks(layout):
        with contextlib.suppress(OSError):  # a folder that holds something: the report still names it
            remove_file(path)
            done.append(f"lock {path.name}")
    if report.damaged("model") and _restore_model(layout):
        done.append("model")
    is_model_whole = not report.damaged("model") or "model" in done
    has_vectors = bool(report.damaged("vectors")) and settings.has_vectors and is_model_whole
    if has_vectors and _are_sound_without_codes(layout):  # encoding takes long, or costs something
        has_vectors = False
        done.append("vectors")
    if report.damaged("words") or has_vectors:
        remove_indexes(layout, replace(settings, has_vectors=has_vectors))
        done.extend(["words", "vectors"] if has_vectors else ["words"])
    if report.damaged("pairs"):
        _remove_pairs(layout)
        done.append("pairs")
    return tuple(done)


def _are_sound_without_codes(layout: ForumLayout) -> bool:
    """Make the codes anew by which vectors are found; return whether nothing else of the vectors is damaged."""
    if not layout.vectors.is_dir() or is_link(layout.vectors):
        return False
    for path in layout.vectors.glob("*/index"):
        with contextlib.suppress(ForumError):  # what else is damaged is found below
            VectorIndex.renew_codes(path)
    findings = _vectors(layout, SilentProgress(), LocalVectorIndexes())
    return not any(finding.is_damage for finding in findings)


def _restore_model(layout: ForumLayout) -> bool:
    """Put back the forum's own model from the copy that its vectors were made by; return whether that was possible."""
    for place in _sets_of_own(layout):
        with contextlib.suppress(ModelError):
            model = load_model(place / "model")
            if has_its_model(place):
                if not layout.model.is_dir():
                    remove_file(layout.model)
                model.save(layout.model)
                return True
    return False


def _sets_of_own(layout: ForumLayout) -> Iterator[Path]:
    """Yield the set of the model that the manifest names, then the one that answers, if its model was the own one."""
    with contextlib.suppress(ModelError):
        yield layout.vectors / model_fingerprint(layout.model)
    with contextlib.suppress(ForumError):
        state = read_current(layout.vectors)
        current = None if state is None else parse_current(state, layout.vectors)
        if current is not None and current.model in OWN_NAMES:
            yield layout.vectors / current.fingerprint


def _remove_pairs(layout: ForumLayout) -> None:
    what = f"another process is comparing the questions of {layout.folder}"
    busy = BusyForumError(what, "wait until it has finished")
    with holding(filelock.FileLock(layout.pairs_lock, thread_local=False), LOCK_TIMEOUT_S, busy):
        for name in _PAIRS:
            remove_file(layout.folder / name)

"""A forum's questions, or a folder of Parquet files, encoded and compared with each other on many machines at once.

::

    from askalike import batch

    batch.encode("travel.forum", "out")                       # out/vectors/part-00000.parquet, …
    batch.pairs("travel.forum", "out", cluster="ray")         # out/pairs.parquet
    batch.groups(["a.parquet", "b.parquet"], "out2")          # out2/groups.parquet

Each step first does what it needs of those before. One part in, one part out: what is done lies in the folder under its
name, so that a batch which was ended goes on with what is missing, on whichever cluster.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

import filelock
import msgspec
import numpy as np

from askalike._version import __version__
from askalike.batch.clusters import SHAPES, Cluster, LocalCluster, Opened, RayCluster
from askalike.batch.tasks import LEFT, Answer, Folder, Kind, Order, parquet_of, whole, write_groups
from askalike.data import default_model
from askalike.errors import AskalikeError, BusyForumError, ForumExistsError, InputError, SettingError
from askalike.files import held, replace_whole
from askalike.forum import Forum
from askalike.forum.groups import DEFAULT_MINIMUM, LEAST, Groups
from askalike.forum.pairs import TEXTS
from askalike.forum.same_text import hashes_of
from askalike.index.encoder_settings import EncoderSettings, fingerprint, read_settings
from askalike.index.encoder_settings import Kind as EncoderKind
from askalike.index.text_questions import taken
from askalike.index.vector_set import model_in
from askalike.models.encoders.model import Model
from askalike.progress import Progress, SilentProgress
from askalike.records import arrow_rows, arrow_schema, batches
from askalike.store import ForumLayout, open_pairs, open_store
from askalike.store.pairs import Pair
from askalike.text.settings import TextSettings
from askalike.types import Question

__all__ = ["SHAPES", "Cluster", "Done", "LocalCluster", "RayCluster", "encode", "groups", "pairs"]

Source = str | Path | Sequence[str | Path]
"""A forum's folder, a Parquet file, a folder of such files, or several files; each file is a part."""

FORMAT: Final = 1
PART: Final = 5_000
"""Questions of a forum that are a part."""
COLUMNS: Final = ("id", "title", "body", "markup")


@dataclass(frozen=True, slots=True)
class Done:
    """What a step did.

    Args:
        path: what it wrote, a file or a folder of parts.
        parts: of the input.
        made: parts, or files, that were missing and were made now.
        count: questions that were encoded, pairs, or groups.
    """

    path: Path
    questions: int
    parts: int
    made: int
    count: int
    seconds: float


def encode(source: Source, into: str | Path, **how: Any) -> Done:
    """Encode questions; ``vectors/part-N.parquet`` has the columns ``id`` and ``vector`` of part N.

    Args:
        into: the folder of the batch, which every machine of the cluster has under this path.
        model: "general", the folder of a model, or a text encoder such as "minilm"; "" is the forum's own.
        cluster: "local", "ray", "ray://HOST:PORT", or an open cluster.
        workers: processes of this machine; by default one for each core.
        part_size: questions of a forum that are one part.
        language: in which words of Parquet files are compared.
        progress: what is told how far it has come.

    Raises:
        InputError: a file cannot be read, or two questions have one id.
        SettingError: an argument is out of range, or the folder holds the batch of other questions or another model.
        ModelError, EncoderError, MissingExtraError: the encoder cannot be had.
        BusyForumError: another process is at this batch.
        AskalikeError: the cluster does not answer.
    """
    with _batch(source, into, **how) as batch:
        made = batch.encoded()
        return batch.done(batch.folder.path / "vectors", made, batch.size)


def pairs(source: Source, into: str | Path, **how: Any) -> Done:
    """Find pairs that may ask the same; ``pairs.parquet`` has each once, those with one text first, then the likeliest.

    Columns: ``id`` of the later question, ``original_id`` of the earlier, ``probability``, ``cosine``, ``exact``, and
    the numbers of both in the order of the input.

    Args:
        how: as of ``encode``.

    Raises:
        AskalikeError: as ``encode``.
    """
    with _batch(source, into, **how) as batch:
        made = batch.compared()
        return batch.done(batch.folder.pairs, made, batch.rows(batch.folder.pairs))


def groups(source: Source, into: str | Path, minimum: float = DEFAULT_MINIMUM, **how: Any) -> Done:
    """Find groups in which each question may ask the same as every other, by complete linkage (``forum.linkage``).

    ``groups.parquet`` has a row for each question of a group, the one to answer the others by first: the number of the
    group, largest first, its kind, and its least likely pair with the probability, null where all have one text. A
    forum's links, judgements, announcements, answers, votes and dates are followed as its own groups follow them, as
    they are when the groups are made; Parquet files have none.

    Args:
        minimum: of every pair of a group, from ``LEAST`` to 1.
        how: as of ``encode``.

    Raises:
        AskalikeError: as ``encode``.
    """
    if not LEAST <= minimum <= 1:
        raise SettingError(f"the minimum is {minimum!r}", f"expected a probability from {LEAST} to 1")
    with _batch(source, into, **how) as batch:
        made = batch.compared()
        batch.progress.notice("groups are found by one task, on one machine: their pairs fit it")
        layout = ForumLayout(Path(source)) if isinstance(source, str | Path) else None
        if layout is not None and layout.is_forum():
            count = _groups_of_forum(layout, batch.folder, minimum)
        else:
            count = batch.run("groups", [Order("groups", batch.place, minimum=minimum)])
        return batch.done(batch.folder.groups, made + 1, count)


def _groups_of_forum(layout: ForumLayout, folder: Folder, minimum: float) -> int:
    """Write the groups of a forum, by the pairs of the batch and what the forum's people have said of its questions."""
    _, parquet = parquet_of()
    columns = parquet.read_table(folder.pairs)
    ids = parquet.read_table(folder.rows / "ids.parquet")["id"].to_pylist()
    with (
        tempfile.TemporaryDirectory(dir=folder.path, prefix=".groups.") as place,
        Forum.open(layout.folder) as forum,
        closing(open_store(layout)) as store,
        closing(open_pairs(ForumLayout(Path(place)))) as pairs,
    ):
        nums = store.nums_by_id(ids)
        with pairs.writing() as writing:
            for part in columns.to_batches():
                rows = [row for row in part.to_pylist() if not row["exact"]]  # texts tell of those
                both = [(nums.get(row["id"]), nums.get(row["original_id"]), row) for row in rows]
                writing.put(
                    [
                        Pair(min(one, other), max(one, other), row["probability"], row["cosine"])
                        for one, other, row in both
                        if one is not None and other is not None  # or it has gone
                    ]
                )
            for part in batches((one for one in store.all_questions() if one[1].id in nums), TEXTS):
                writing.put_texts({num: hashes_of(question) for num, question in part})
        made = Groups(store, pairs, forum.likelihoods)
        return write_groups(folder, made.described(made.found(minimum)))


class _Batch:
    """A batch that nobody else is at."""

    def __init__(self, folder: Folder, parts: Sequence[Path], cluster: Cluster, progress: Progress) -> None:
        self.folder = folder
        self.parts = parts
        self.progress = progress
        self.place = str(folder.path)
        self.size = sum(map(self.rows, parts))
        self._cluster = cluster
        self._began = time.monotonic()
        self._hello()

    def rows(self, path: Path) -> int:
        """Return how many rows a file has."""
        pyarrow, parquet = parquet_of()
        try:
            return int(parquet.read_metadata(path).num_rows)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{path} cannot be read as Parquet: {error}", "write the file again") from error

    def done(self, path: Path, made: int, count: int) -> Done:
        """Return what was done."""
        return Done(path, self.size, len(self.parts), made, count, round(time.monotonic() - self._began, 2))

    def encoded(self) -> int:
        """Encode what is not encoded yet; return how many parts that were."""
        return self._parts("encode", "vectors")

    def compared(self) -> int:
        """Compare what is not compared yet."""
        made = self.encoded() + self._parts("read", "texts")
        folder = self.folder
        if not folder.joined.exists():
            made += 1
            self.run("join", [Order("join", self.place, len(self.parts))])
        cells = int(np.load(folder.joined)[:, 0].max(initial=0)) + 1
        missing = [cell for cell in range(cells) if not folder.part("compared", cell).exists()]
        self.run("compare", [Order("compare", self.place, cell) for cell in missing])
        if missing or not folder.pairs.exists():
            made += 1
            self.run("merge", [Order("merge", self.place, cells)])
        return made + len(missing)

    def _parts(self, kind: Kind, made: str) -> int:
        missing = [number for number in range(len(self.parts)) if not self.folder.part(made, number).exists()]
        self.run(kind, [Order(kind, self.place, number, str(self.parts[number])) for number in missing])
        return len(missing)

    def run(self, kind: Kind, orders: Sequence[Order]) -> int:
        """Do tasks; return what they counted together."""
        if not orders:
            return 0
        self.progress.start(kind, len(orders), "parts")
        total = 0
        for packed in self._cluster.answers(map(msgspec.msgpack.encode, orders)):
            answer = msgspec.msgpack.decode(packed, type=Answer)
            if answer.message:
                raise AskalikeError(answer.message, answer.hint)
            total += answer.count
            self.progress.advance(1)
        return total

    def _hello(self) -> None:
        """Look whether the cluster has this version, and sees the folder."""
        for packed in self._cluster.answers([msgspec.msgpack.encode(Order("hello", self.place))]):
            found = msgspec.msgpack.decode(packed, type=Answer)
            if found.version != __version__:
                hint = "install the same version everywhere"
                raise AskalikeError(f"workers have askalike {found.version}, this is {__version__}", hint)
            if found.message:
                raise AskalikeError(found.message, found.hint)


@contextmanager
def _batch(
    source: Source,
    into: str | Path,
    *,
    model: str = "",
    cluster: str | Cluster = "local",
    workers: int | None = None,
    part_size: int = PART,
    language: str = "english",
    progress: Progress | None = None,
) -> Iterator[_Batch]:
    if part_size < 1 or (workers is not None and workers < 1):
        raise SettingError(f"parts of {part_size} by {workers} workers", "expected at least 1 of each")
    folder = Folder(Path(into).absolute())
    told = progress or SilentProgress()
    parquet_of()
    names = {path.name for path in folder.path.iterdir()} if folder.path.is_dir() else set()
    if folder.path.is_file() or (names and not names & {folder.lock.name, folder.manifest.name}):
        raise ForumExistsError(f"{folder.path} exists and holds no batch", "choose another folder")
    folder.path.mkdir(parents=True, exist_ok=True)
    try:
        with held(filelock.FileLock(folder.lock), 0):
            for left in folder.path.rglob(".*.tmp"):  # of a worker that was killed
                if LEFT.fullmatch(left.name):
                    left.unlink(missing_ok=True)
            parts = _begun(source, folder, model, part_size, language, told)
            with Opened(cluster, workers) as opened:
                yield _Batch(folder, parts, opened, told)
    except filelock.Timeout as error:
        raise BusyForumError(f"another process is at the batch in {folder.path}", "wait for it, or end it") from error


def _begun(source: Source, folder: Folder, model: str, part_size: int, language: str, progress: Progress) -> list[Path]:
    """Return the parts of the input; begin the batch where that was not done, or not wholly."""
    first = Path(source) if isinstance(source, str | Path) else None
    if first is not None and ForumLayout(first).is_forum():
        with closing(open_store(ForumLayout(first))) as store:
            wanted = {"input": [store.identity(), part_size], "model": model or "the forum's"}
            margin = store.margin()
        if not _is_begun(folder, wanted):
            with Forum.open(first, progress=progress) as forum:
                _write_model(forum, folder, model)
                _write_questions(forum, folder, part_size, progress)
                told = {"text": forum.analyzer.settings.to_json(), "margin": margin and margin.value}
                _begin(folder, model, {**wanted, **told})
        _refuse_other_model(folder, model)
        return sorted((folder.path / "questions").glob("part-*.parquet"))
    parts = _files(source)
    stamps = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in parts]
    wanted = {"input": stamps, "model": model or "general"}
    text = TextSettings(language=language)
    if not _is_begun(folder, wanted):
        _write_model(None, folder, model)
        _begin(folder, model, {**wanted, "text": text.to_json()})
    elif (held := folder.text().language) != text.language:
        raise SettingError(
            f"{folder.path} holds a batch with the language {held}, and {text.language} is given",
            f"choose another folder, or say --language {held}",
        )
    _refuse_other_model(folder, model)
    return parts


def _files(source: Source) -> list[Path]:
    listed = [Path(one).absolute() for one in ([source] if isinstance(source, str | Path) else source)]
    if len(listed) == 1 and listed[0].is_dir():
        listed = sorted(listed[0].glob("*.parquet"))
        if not listed:
            raise InputError(f"{source} is no forum, and holds no Parquet files", "name a forum or Parquet files")
    for path in listed:
        if not path.is_file():
            raise InputError(f"there is no file {path}", "name a forum's folder, or Parquet files")
    if not listed:
        raise InputError("no questions were named", "name a forum's folder, or Parquet files")
    return listed


def _is_begun(folder: Folder, wanted: dict[str, Any]) -> bool:
    try:
        known = json.loads(folder.manifest.read_bytes())
        if known["format"] == FORMAT and {name: known[name] for name in wanted} == json.loads(json.dumps(wanted)):
            return True
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise SettingError(
        f"{folder.path} holds a batch of other questions or parts, or by another model", "choose another folder"
    )


def _begin(folder: Folder, model: str, manifest: dict[str, Any]) -> None:
    described = {"format": FORMAT, **manifest, "fingerprint": _fingerprint(folder, model)}
    replace_whole(folder.manifest, json.dumps(described).encode())


def _refuse_other_model(folder: Folder, model: str) -> None:
    """Raise SettingError where the model's name is that of the batch, and its content is another."""
    begun = json.loads(folder.manifest.read_bytes()).get("fingerprint")  # older versions wrote none
    if begun is not None and begun != _fingerprint(folder, model):
        raise SettingError(
            f"the batch in {folder.path} was begun by another model than {model or 'its own'} is now",
            "choose another folder, or put the model back",
        )


def _fingerprint(folder: Folder, model: str) -> str:
    """Return a short name of what would make the vectors now."""
    settings = read_settings(folder.encoder)
    if settings is not None:
        return taken(settings)[1].fingerprint
    named = Path(model) if model not in ("", "general") else folder.model
    held = next((path for path in (named, folder.model, default_model()) if path is not None and path.is_dir()), None)
    return "" if held is None else fingerprint(held)


def _write_model(forum: Forum | None, folder: Folder, model: str) -> None:
    """Put the encoder where every machine finds it; nothing is there where it is the package's own."""
    folder.encoder.unlink(missing_ok=True)  # of a batch that was not begun wholly, perhaps by another model
    shutil.rmtree(folder.model, ignore_errors=True)
    vectors = None if forum is None or model else forum.answering_vectors()
    if vectors is not None:
        if vectors.problem is not None:
            raise vectors.problem
        if vectors.settings is None:
            if vectors.name != "general":
                model_in(vectors.folder).save(folder.model)
            return
        if vectors.settings.pca is not None:
            raise SettingError("principal directions (pca) are each machine's own", "name a model with --model")
        replace_whole(folder.encoder, vectors.settings.to_bytes())
    elif model.partition(":")[0] in get_args(EncoderKind):
        _, settings = taken(EncoderSettings.parse(model))
        replace_whole(folder.encoder, settings.to_bytes())
    elif model not in ("", "general"):
        Model.load(model).save(folder.model)


def _write_questions(forum: Forum, folder: Folder, part_size: int, progress: Progress) -> None:
    """Write a forum's questions as they are now: the batch is of these, whatever is written meanwhile."""
    pyarrow, parquet = parquet_of()
    schema = arrow_schema(Question)
    wanted = pyarrow.schema([schema.field(name) for name in COLUMNS])
    progress.start("reading", len(forum), "questions")
    part: list[Question] = []
    number = 0

    def write() -> None:
        nonlocal number
        rows = [{name: row.get(name) for name in COLUMNS} for row in arrow_rows(part)]
        with whole(folder.part("questions", number)) as file:
            parquet.write_table(pyarrow.Table.from_pylist(rows, wanted), file, compression="zstd")
        progress.advance(len(part))
        number += 1
        part.clear()

    for old in (folder.path / "questions").glob("part-*.parquet"):  # of a batch that was not begun wholly
        old.unlink()
    for question in forum.questions():
        part.append(question)
        if len(part) == part_size:
            write()
    if part or not number:
        write()

"""A forum, or an archive of Parquet files, encoded and compared by a cluster or by all cores of this machine.

::

    from askalike import batch

    batch.encode("travel.forum", "out")                       # out/vectors.parquet
    batch.pairs("travel.forum", "out", cluster="ray")         # out/pairs.parquet, as "askalike duplicates --parquet"
    batch.groups(["a.parquet", "b.parquet"], "out2")          # out2/groups.parquet

Parquet files become a forum in ``out2/forum``, which goes on with what is missing when a batch that was ended is begun
again, and takes over what has changed in the files. All machines of a cluster have both folders under these paths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, get_args

from askalike.errors import InputError, SettingError, optional_module
from askalike.executors import CLUSTERS, Executor
from askalike.executors.processes import Processes
from askalike.executors.ray import Ray
from askalike.files import replacing_whole
from askalike.forum import Forum
from askalike.forum.duplicates import MemberRow, PairRow, member_rows, pair_rows
from askalike.forum.exchange import ImportOptions
from askalike.forum.groups import DEFAULT_MINIMUM
from askalike.forum.indexes import ForumSettings
from askalike.models.encoder_settings import Kind as EncoderKind
from askalike.progress import Progress, SilentProgress
from askalike.readers.exported import MANIFEST as EXPORT_MANIFEST
from askalike.records import batches, write_records
from askalike.store import ForumLayout
from askalike.text.settings import TextSettings

Source = str | Path | Sequence[str | Path]
"""A forum's folder, an export, a Parquet file, a folder of such files, or several of these."""

DEFAULT_SCORE: Final = 0.5
_TOGETHER: Final = 5_000
_BY_PARQUET: Final = "name a forum's folder, Parquet files, or a folder of them"


@dataclass(frozen=True, slots=True)
class Done:
    """What a batch wrote.

    Args:
        count: vectors, pairs or groups.
    """

    path: Path
    questions: int
    count: int
    seconds: float


def encode(source: Source, into: str | Path, **how: Any) -> Done:
    """Encode questions; ``vectors.parquet`` has the columns ``id`` and ``vector``, without those that have no words.

    Args:
        into: the folder of the batch.
        cluster: "local", "ray" or "ray://HOST:PORT".
        workers: processes, or tasks at a time; by default one for each core.
        model: of Parquet files: "general", the folder of a model, or a text encoder, as ``askalike encode`` takes it;
            a forum has its own.
        language: of Parquet files.
        progress: receives how far it has come.

    Raises:
        InputError: a file cannot be read.
        SettingError: an argument is out of range, or does not go with a forum.
        ModelError, EncoderError, MissingExtraError: the encoder cannot be had.
        ForumExistsError: the folder holds something else.
        BusyForumError: another process is at it.
        AskalikeError: the cluster does not answer.
    """
    return _write(source, into, "vectors.parquet", lambda forum, file, _: _write_vectors(forum, file), **how)


def pairs(source: Source, into: str | Path, minimum: float = DEFAULT_SCORE, **how: Any) -> Done:
    """Find pairs that may be duplicates; ``pairs.parquet`` has those that ``Pairs.duplicates`` yields, best first.

    Args:
        minimum: the least probability.
        how: as of ``encode``.

    Raises:
        AskalikeError: as ``encode``.
    """

    def write(forum: Forum, file: BinaryIO, progress: Progress) -> int:
        duplicates = forum.pairs.duplicates(minimum, progress=progress)
        return write_records(pair_rows(duplicates), PairRow, "parquet", file)

    return _write(source, into, "pairs.parquet", write, **how)


def groups(source: Source, into: str | Path, minimum: float = DEFAULT_MINIMUM, **how: Any) -> Done:
    """Find groups of which each question may ask the same as every other, as ``Groups.find`` does.

    ``groups.parquet`` has a row for each question of a group, the one to answer the others by first.

    Args:
        minimum: the least probability of a pair of a group.
        how: as of ``encode``.

    Raises:
        AskalikeError: as ``encode``.
    """

    def write(forum: Forum, file: BinaryIO, progress: Progress) -> int:
        forum.pairs.compare(progress=progress)
        likely_groups = forum.groups.find(minimum)
        write_records(member_rows(forum.store, likely_groups), MemberRow, "parquet", file)
        return len(likely_groups)

    return _write(source, into, "groups.parquet", write, **how)


def _write(
    source: Source,
    into: str | Path,
    name: str,
    write: Callable[[Forum, BinaryIO, Progress], int],
    *,
    cluster: str = "local",
    workers: int | None = None,
    model: str = "",
    language: str = "english",
    progress: Progress | None = None,
) -> Done:
    began, shown, folder = time.monotonic(), progress or SilentProgress(), Path(into).absolute()
    if workers is not None and workers < 1:
        raise SettingError(f"{workers} workers", "expected at least 1")
    layout = ForumLayout(Path(source).absolute()) if isinstance(source, str | Path) else None
    with _executor(cluster, folder, workers) as executor:
        if layout is not None and layout.is_forum():
            if model:
                raise SettingError("a forum has its own model", f'name another: "askalike encode {source} --model"')
        else:
            layout = ForumLayout(folder / "forum")
            _take_files(layout, _files(source), model, language, executor, shown)
        folder.mkdir(parents=True, exist_ok=True)
        with Forum.open(layout.folder, progress=shown, executor=executor) as forum:
            forum.encode(progress=shown)
            with replacing_whole(folder / name) as file:
                count = write(forum, file, shown)
            return Done(folder / name, len(forum), count, round(time.monotonic() - began, 2))


@contextmanager
def _executor(cluster: str, folder: Path, workers: int | None) -> Iterator[Executor]:
    if cluster == "local":
        yield Processes(workers)
    elif cluster == "ray" or (cluster.startswith("ray://") and len(cluster) > len("ray://")):
        with closing(Ray(cluster, folder, workers)) as ray:
            yield ray
    else:
        raise SettingError(f"there is no cluster {cluster[:100]!r}", f"expected {CLUSTERS}")


def _files(source: Source) -> list[Path]:
    """Return the Parquet files, and exports, that are named, or lie in a folder that is."""
    named = [Path(path).absolute() for path in ([source] if isinstance(source, str | Path) else source)]
    files: list[Path] = []
    for path in named:
        is_export = (path / EXPORT_MANIFEST).is_file()
        inside = sorted(path.glob("*.parquet")) if path.is_dir() and not is_export else [path]
        if not inside or not (is_export or inside[0].is_file()):
            raise InputError(f"{path} is no forum, and no Parquet file or folder of some", _BY_PARQUET)
        files += inside
    if not files:
        raise InputError("no questions were named", _BY_PARQUET)
    return files


def _take_files(
    layout: ForumLayout, files: Sequence[Path], model: str, language: str, executor: Executor, progress: Progress
) -> None:
    """Let the batch's forum hold what the files do, and be encoded by a model."""
    text, settings = TextSettings(language=language), ForumSettings(has_vectors=False)  # all is encoded at once, later
    if not layout.is_forum():
        Forum.create(layout.folder, text=text).close()
    with Forum.open(layout.folder) as forum:
        _take_model(forum, layout, model)
    with Forum.open(layout.folder, settings=settings, progress=progress, executor=executor) as forum:
        if (before := forum.analyzer.settings.language) != text.language:
            raise SettingError(
                f"{layout.folder} is in {before}, and --language is {text.language}",
                f"choose another folder, or say --language {before}",
            )
        for name in set(forum.store.sources()) - {str(path) for path in files}:
            forum.store.delete_source(name)
        for path in files:
            options = ImportOptions(source=str(path), is_mass_delete_allowed=True)
            report = forum.load(path, options=options, progress=progress)
            if report.rejected:
                first = report.first_rejects[0].reason
                progress.notice(f"{path.name}: {report.rejected:,} records were left out, the first: {first}")


def _take_model(forum: Forum, layout: ForumLayout, model: str) -> None:
    if model.partition(":")[0] in get_args(EncoderKind):
        forum.models.use_encoder(model)
    elif model:
        forum.models.use_model(model)


def _write_vectors(forum: Forum, file: BinaryIO) -> int:
    missing = "Parquet files are written by pyarrow, which is not installed"
    pyarrow, parquet = (optional_module(name, missing, "batch") for name in ("pyarrow", "pyarrow.parquet"))
    writer, count = None, 0
    for part in batches(forum.questions(), _TOGETHER):
        ids, vectors = forum.models.vectors([question.id for question in part])
        kind = pyarrow.list_(pyarrow.float32(), vectors.shape[1])
        schema = pyarrow.schema([("id", pyarrow.string()), ("vector", kind)])
        writer = writer or parquet.ParquetWriter(file, schema, compression="zstd")
        rows = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1])
        writer.write_table(pyarrow.table([pyarrow.array(ids, pyarrow.string()), rows], schema))
        count += len(ids)
    if writer is not None:
        writer.close()
    return count

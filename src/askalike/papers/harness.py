"""The harness of all papers: rows run with several seeds, side by side, kept as they end, and tested on each other.

::

    rows × seeds ──answer──▶ runs ──judge──▶ Outcome, one file each ──▶ RowResult: means over seeds, tested

An interrupted run goes on where it was: an outcome is found again by the fingerprint of everything that decides it, and
a work folder belongs to the settings that its trainings were made with.

An interval is over seeds and queries, both drawn anew; in a test each query's value is its mean over seeds. Rows are
compared on the same queries and the same seeds, or not at all.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from askalike.errors import MissingExtraError, SettingError
from askalike.evaluation import Interval, bootstrap_over_seeds, randomisation_test
from askalike.evaluation.forum.tasks import RerankTask, judge
from askalike.files import replace_whole
from askalike.processes import end_with_parent
from askalike.progress import Progress
from askalike.readers.frame import ReadContext, Reader
from askalike.types import Record, Run

_Task = TypeVar("_Task")
_Context = TypeVar("_Context")
_Result = TypeVar("_Result")


def do_each(
    work: Callable[[_Context, _Task], _Result],
    context: _Context,
    tasks: Sequence[_Task],
    jobs: int,
    *,
    on_begin: Callable[[_Task], None] = lambda _: None,
    on_done: Callable[[_Task, _Result, float], None] = lambda *_: None,
) -> list[_Result]:
    """Return ``work(context, task)`` of each task, in the order of their ending; ``jobs`` of them run side by side.

    Args:
        work: a function of a module; ``context`` and tasks travel to other processes where there are several jobs.
        jobs: processes, ≥ 1; one is this process.
        on_begin: called with each task that begins.
        on_done: called with each task that is done, its result and the seconds that it took.
    """
    results: list[_Result] = []
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            on_begin(task)
            result, seconds = _timed(work, context, task)
            results.append(result)
            on_done(task, result, seconds)
        return results
    workers = min(jobs, len(tasks))
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin_worker, (work, context))
    try:
        futures = {pool.submit(_do_task, task): task for task in tasks}
        waiting = iter(tasks)  # begun in this order
        for task in islice(waiting, workers):
            on_begin(task)
        for future in as_completed(futures):
            result, seconds = future.result()
            results.append(result)
            on_done(futures[future], result, seconds)
            for task in islice(waiting, 1):
                on_begin(task)
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()  # or the error would be reported when all the others have ended, which may take hours
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return results


def _timed(work: Callable[[_Context, _Task], _Result], context: _Context, task: _Task) -> tuple[_Result, float]:
    began = time.monotonic()
    return work(context, task), time.monotonic() - began


_WORKER: list[tuple[Callable[[Any, Any], Any], Any]] = []
"""What this process works with; set once, where it begins."""


def _begin_worker(work: Callable[[Any, Any], Any], context: object) -> None:
    end_with_parent()
    _WORKER.append((work, context))


def _do_task(task: object) -> Any:
    work, context = _WORKER[0]
    return _timed(work, context, task)


Values = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Task → measure → query → value in [0, 1]."""


@dataclass(frozen=True, slots=True)
class SeedMean:
    """One measure of a row on one task.

    Args:
        queries: how many count.
        interval: the mean over seeds and queries, and where other seeds and queries would have put it.
        spread: standard deviation of the seeds' means, None where there are fewer than two.
        p_value: of the paired randomisation test against a baseline, each query by its mean over seeds; None without
            one.
    """

    queries: int
    interval: Interval
    spread: float | None
    p_value: float | None

    @classmethod
    def of(cls, by_seed: Sequence[Mapping[str, float]], baseline: Mapping[str, float] | None = None) -> SeedMean:
        """Return the mean over seeds and queries.

        Args:
            by_seed: query → value, for each seed.
            baseline: the same of a row in which nothing is drawn; None compares with nothing.

        Example:
            >>> mean = SeedMean.of([{"q": 1.0, "r": 0.5}, {"q": 0.5, "r": 0.0}])
            >>> mean.interval.mean, round(mean.spread or 0.0, 4)
            (0.5, 0.3536)
        """
        by_query = over_seeds(by_seed)
        return cls(
            len(by_query),
            bootstrap_over_seeds([[values[query] for query in by_query] for values in by_seed]),
            stdev(fmean(seed.values()) for seed in by_seed) if len(by_seed) > 1 else None,
            randomisation_test(list(by_query.values()), [baseline[query] for query in by_query]).p_value
            if baseline
            else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the mean as JSON has it; values lie in [0, 1]."""
        bounds = [self.interval.low, self.interval.high]
        return {"mean": self.interval.mean, "interval95": bounds, "spread": self.spread, "p_value": self.p_value}


def over_seeds(by_seed: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each query's mean over seeds.

    >>> over_seeds([{"q": 1.0, "r": 0.5}, {"q": 0.5, "r": 0.5}])
    {'q': 0.75, 'r': 0.5}
    """
    return {query: fmean(values[query] for values in by_seed) for query in by_seed[0]}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    Args:
        id: its name on the command line and in files.
        system: what is compared, or how it is run.
        learner: rows of one learner share what it has learned; "" for a row that shares nothing.
        is_drawn: something of its training is drawn at random, so that it is run with several seeds.
        name: what the paper calls it, "" for a row that it lacks.
    """

    id: str
    system: str
    learner: str = ""
    is_drawn: bool = False
    name: str = ""


_Row = TypeVar("_Row", bound=Row)


def chosen_rows(rows: Mapping[str, _Row], names: Iterable[str], sets: Iterable[str] = ()) -> list[_Row]:
    """Return the rows of these ids or systems, in the table's order; all when none is named.

    Args:
        sets: that could be named too, for the message.

    Raises:
        SettingError: no row has this id or system.

    >>> table = {row.id: row for row in (Row("bm25", "words"), Row("gru-last", "gru"), Row("gru-mean", "gru"))}
    >>> [row.id for row in chosen_rows(table, ["gru"])], len(chosen_rows(table, []))
    (['gru-last', 'gru-mean'], 3)
    """
    wanted = list(names)
    for name in wanted:
        if not any(name in (row.id, row.system) for row in rows.values()):
            systems = ", ".join(dict.fromkeys(row.system for row in rows.values()))
            there = f", or a set of this folder ({', '.join(sets)})" if sets else ""
            raise SettingError(
                f"there is no row or set {name!r}", f"expected one of {', '.join(rows)}, a system ({systems}){there}"
            )
    return [row for row in rows.values() if not wanted or row.id in wanted or row.system in wanted]


def figures_json(figures: Mapping[str, float], origin: str) -> dict[str, Any]:
    """Return reported figures, measure → value times 100 and where it is from."""
    return {measure: {"value": value, "origin": origin} for measure, value in figures.items()}


@dataclass
class Answers:
    """What a row answers with one seed.

    Args:
        runs: task → candidates with their scores.
        settings: set → what its dev split chose.
        tried: set → every choice with its "dev_map", in the order of trying.
    """

    runs: dict[str, Run] = field(default_factory=dict)
    settings: dict[str, dict[str, object]] = field(default_factory=dict)
    tried: dict[str, list[dict[str, object]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a row came to with one seed.

    Args:
        row: its id.
        seed: of the training; 0 for rows in which nothing is drawn.
        fingerprint: of everything that decides the outcome; what was kept of another is not taken.
        values: task → measure → query → value in [0, 1].
        settings, tried: as ``Answers``.
    """

    row: str
    seed: int
    fingerprint: str
    values: Values
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tried: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowResult(Generic[_Row]):
    """A row with what is finished of it.

    Args:
        means: task → measure → mean over seeds; empty where nothing is finished.
        precisions: task → query → average precision, for each seed.
        reason: why it was not run, or "".
    """

    row: _Row
    seeds: tuple[int, ...] = ()
    means: Mapping[str, Mapping[str, SeedMean]] = field(default_factory=dict)
    precisions: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    reason: str = ""

    @classmethod
    def of(
        cls, row: _Row, outcomes: Sequence[Outcome], baseline: Outcome | None, measures: Sequence[str]
    ) -> RowResult[_Row]:
        """Return a row's means and average precisions.

        Args:
            outcomes: at least one.
            baseline: of the row that it is tested against, or None.
        """
        tasks = outcomes[0].values
        means = {
            task: {
                name: SeedMean.of(
                    [outcome.values[task][name] for outcome in outcomes],
                    baseline.values[task][name] if baseline else None,
                )
                for name in measures
            }
            for task in tasks
        }
        precisions = {task: [outcome.values[task]["map"] for outcome in outcomes] for task in tasks}
        return cls(row, tuple(outcome.seed for outcome in outcomes), means, precisions, tuple(outcomes))

    def to_json(self) -> dict[str, Any]:
        """Return the row and its means, task → measure → mean, as JSON has them."""
        means = {
            task: {name: mean.to_json() for name, mean in by_measure.items()} for task, by_measure in self.means.items()
        }
        return {
            "row": self.row.id,
            "system": self.row.system,
            "name": self.row.name,
            "seeds": list(self.seeds) if self.row.is_drawn else [],
            "not_run": self.reason or None,
            "found": means,
        }


def judged(tasks: Iterable[RerankTask], runs: Mapping[str, Run], measures: Sequence[str]) -> Values:
    """Return task → measure → query → value of runs by task."""
    reports = {task.name: judge(task, runs[task.name]) for task in tasks}
    return {
        name: {measure: dict(report.per_query[measure]) for measure in measures} for name, report in reports.items()
    }


@dataclass(frozen=True, slots=True)
class Compared:
    """Two rows on one task by MAP.

    Args:
        better, worse: ids of rows; the first is said to be above the second.
        difference: of the first to the second, with its interval over seeds and queries.
        p_value: of the paired randomisation test, two-sided.
    """

    better: str
    worse: str
    task: str
    difference: Interval
    p_value: float

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON has it; differences lie in [-1, 1]."""
        bounds = {"difference": self.difference.mean, "interval95": [self.difference.low, self.difference.high]}
        return {"better": self.better, "worse": self.worse, "task": self.task, **bounds, "p_value": self.p_value}


def compare_rows(first: RowResult[_Row], second: RowResult[_Row], task: str) -> Compared:
    """Return a comparison of two finished rows; of a row in which nothing is drawn all seeds are the same.

    Raises:
        SettingError: both were trained with seeds, and not with the same ones.
    """
    if first.row.is_drawn and second.row.is_drawn and first.seeds != second.seeds:
        seeds = " and ".join(f"{result.row.id} with seeds {list(result.seeds)}" for result in (first, second))
        raise SettingError(f"{seeds} cannot be compared", "run both with the same seeds")
    left, right = first.precisions[task], second.precisions[task]
    count, queries = max(len(left), len(right)), list(left[0])
    pairs = [(left[seed % len(left)], right[seed % len(right)]) for seed in range(count)]
    differences = [[own[query] - other[query] for query in queries] for own, other in pairs]  # (S, Q)
    means = [over_seeds(by_seed) for by_seed in (left, right)]
    p_value = randomisation_test(*([values[query] for query in queries] for values in means)).p_value
    return Compared(first.row.id, second.row.id, task, bootstrap_over_seeds(differences), p_value)


def compared(
    results: Iterable[RowResult[_Row]], pairs: Iterable[tuple[str, str]], tasks: Sequence[str]
) -> list[Compared]:
    """Return pairs of rows, (the one that is said to be better, the other), tested on every task where both ended."""
    ended = {result.row.id: result for result in results if result.precisions}
    return [
        compare_rows(ended[better], ended[worse], task)
        for better, worse in pairs
        if better in ended and worse in ended
        for task in tasks
    ]


_Answered = TypeVar("_Answered", bound=Row, contravariant=True)


class Systems(Protocol[_Answered]):
    """What a paper brings: how its rows are answered."""

    def answer(self, row: _Answered, seed: int, /) -> Answers:
        """Return the runs of all tasks, trained where that is not done."""

    def decides(self, row: _Answered, seed: int, /) -> Any:
        """Return everything that decides an outcome, as JSON can hold it."""

    def quiet(self) -> Self:
        """Return the same for a process of its own: with one thread, and no progress."""


@dataclass(frozen=True)
class Runner(Generic[_Row]):
    """Runs rows, or finds what they came to.

    Args:
        tasks: dev and tests, that rows are scored on.
        baseline: id of the row that the others are tested against; nothing of it is drawn.
    """

    systems: Systems[_Row]
    tasks: tuple[RerankTask, ...]
    folder: Path
    measures: tuple[str, ...]
    baseline: str

    def finished(self, row: _Row, seed: int) -> Outcome | None:
        """Return what was kept of a row and seed, or None where there is nothing or it is of something else."""
        try:
            outcome = Outcome(**json.loads(self._file(row, seed).read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return outcome if outcome.fingerprint == self._fingerprint(row, seed) else None

    def run(self, row: _Row, seed: int) -> Outcome:
        """Run a row with one seed, score all tasks, and keep the outcome."""
        answers = self.systems.answer(row, seed)
        values = judged(self.tasks, answers.runs, self.measures)
        outcome = Outcome(row.id, seed, self._fingerprint(row, seed), values, answers.settings, answers.tried)
        file = self._file(row, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(file, json.dumps(asdict(outcome), indent=1).encode())
        return outcome

    def results(
        self, rows: Iterable[_Row], seeds: Sequence[int], reasons: Mapping[str, str] | None = None
    ) -> list[RowResult[_Row]]:
        """Return the rows with what is finished of them.

        Args:
            reasons: row → why it was not run.
        """
        outcomes = [(row, self._all_finished(row, seeds)) for row in rows]
        baseline = next((ended[0] for row, ended in outcomes if row.id == self.baseline and ended), None)
        results: list[RowResult[_Row]] = []
        for row, ended in outcomes:
            if not ended:
                results.append(RowResult(row, reason=(reasons or {}).get(row.id, "")))
                continue
            results.append(RowResult.of(row, ended, None if row.id == self.baseline else baseline, self.measures))
        return results

    def _all_finished(self, row: _Row, seeds: Sequence[int]) -> tuple[Outcome, ...]:
        outcomes = (self.finished(row, seed) for seed in seeds_of(row, seeds))
        return tuple(outcome for outcome in outcomes if outcome is not None)

    def _file(self, row: _Row, seed: int) -> Path:
        return self.folder / f"{row.id}-seed{seed}.json"

    def _fingerprint(self, row: _Row, seed: int) -> str:
        content = json.dumps(self.systems.decides(row, seed), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def seeds_of(row: Row, seeds: Sequence[int]) -> Sequence[int]:
    """Return the seeds that a row is run with: the first alone where nothing is drawn."""
    return seeds if row.is_drawn else seeds[:1]


@dataclass(frozen=True, slots=True)
class _Unit(Generic[_Row]):
    """Rows of one set that share what they learn, and a seed."""

    set_name: str
    rows: tuple[_Row, ...]
    seed: int

    @property
    def is_drawn(self) -> bool:
        return any(row.is_drawn for row in self.rows)

    @property
    def kind(self) -> str:
        """What takes about as long: trainings, or rows of one system in which nothing is drawn."""
        return "training" if self.is_drawn else self.rows[0].system

    def __str__(self) -> str:
        name = self.rows[0].id if len(self.rows) == 1 else f"{self.rows[0].learner} ({len(self.rows)} rows)"
        place = f"{self.set_name}: " if self.set_name else ""
        return f"{place}{name}, seed {self.seed}" if self.is_drawn else f"{place}{name}"


def run_all(
    runners: Mapping[str, Runner[_Row]],
    rows: Sequence[_Row],
    seeds: Sequence[int],
    notice: Callable[[str], None],
    *,
    jobs: int = 1,
) -> dict[str, dict[str, str]]:
    """Run what is not finished, set by set: all rows with one seed, then with the next.

    Args:
        runners: set → what runs the rows on it; the name begins each notice, "" begins none.
        notice: called with what is running, what was skipped, and about how long the rest of all sets takes.
        jobs: processes, ≥ 1.

    Returns:
        set → row → why it could not be run.

    Raises:
        SettingError: no seed was given.
    """
    if not seeds:
        raise SettingError("no seed to run with", "give at least one")
    reasons: dict[str, dict[str, str]] = {name: {} for name in runners}
    units: list[_Unit[_Row]] = []
    for name, runner in runners.items():
        for seed in seeds:
            groups: dict[str, list[_Row]] = {}
            for row in rows:
                if seed in seeds_of(row, seeds) and runner.finished(row, seed) is None:
                    groups.setdefault(row.learner or row.id, []).append(row)
            units += [_Unit(name, tuple(group), seed) for group in groups.values()]
    if not units:
        return reasons
    notice(f"to run: {len(units)}, of which {sum(unit.is_drawn for unit in units)} are trained with a seed")
    left = Counter(unit.kind for unit in units)
    spent: dict[str, list[float]] = {kind: [] for kind in left}
    begun = count(1)

    def begin(unit: _Unit[_Row]) -> None:
        notice(f"running {unit} ({next(begun)} of {len(units)}{time_left(left, spent, jobs)})")

    def end(unit: _Unit[_Row], skipped: Mapping[str, str], seconds: float) -> None:
        left[unit.kind] -= 1
        if not skipped:
            spent[unit.kind].append(seconds)
        for reason in dict.fromkeys(skipped.values()):
            notice(f"skipped {unit}: {reason}")
        reasons[unit.set_name].update(skipped)

    own = {name: replace(it, systems=it.systems.quiet()) for name, it in runners.items()} if jobs > 1 else runners
    do_each(_run_unit, own, units, jobs, on_begin=begin, on_done=end)
    return reasons


def time_left(left: Mapping[str, int], spent: Mapping[str, Sequence[float]], jobs: int) -> str:
    """Return about how long the rest takes, "" until each kind of it was timed: trainings are far dearer than counts.

    Args:
        left: kind → how many are not done.
        spent: kind → the seconds of those that are.

    >>> time_left({"training": 4, "bm25": 1}, {"training": [], "bm25": [2.0]}, 1)
    ''
    >>> time_left({"training": 4, "bm25": 1}, {"training": [600.0, 660.0], "bm25": [2.0]}, 2)
    ', about 21 min left'
    """
    if any(number and not spent[kind] for kind, number in left.items()):
        return ""
    seconds = sum(number * fmean(spent[kind]) for kind, number in left.items() if number) / jobs
    return ", less than a minute left" if seconds < 60 else f", about {seconds / 60:.0f} min left"


def _run_unit(runners: Mapping[str, Runner[_Row]], unit: _Unit[_Row]) -> dict[str, str]:
    """Run rows; return why those could not be run that need an extra that is missing."""
    reasons = {}
    for row in unit.rows:
        try:
            runners[unit.set_name].run(row, unit.seed)
        except MissingExtraError as error:
            reasons[row.id] = str(error)
    return reasons


def read_records(reader: Reader, archive: Path, progress: Progress) -> Iterator[Record]:
    """Yield an archive's records with progress; those that cannot be read are left out, and counted in a notice."""
    progress.start(f"reading {archive.name}", reader.size_bytes(archive), "bytes")
    context = ReadContext(advance=progress.advance, notice=progress.notice)
    yield from reader.read(archive, context)
    if count := context.rejects.count:
        first = context.rejects.first[0]
        where = f"{first.file}, line {first.line}: {first.reason}"
        progress.notice(f"{archive.name}: records that cannot be read are left out ({count:,}), first {where}")


def need_torch(threads: int) -> None:
    """Let torch have so many threads, 0 for its own choice.

    Raises:
        MissingExtraError: it is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("training a network needs torch", "train")
    import torch

    if threads:
        torch.set_num_threads(threads)


def tie_settings(out: Path, settings: Mapping[str, object]) -> None:
    """Tie a folder of finished trainings to the settings that they were made with; where none was begun, anew.

    Raises:
        SettingError: it is tied to others.
    """
    file = out / "settings.json"
    content = json.dumps(settings, sort_keys=True, indent=1).encode()
    has_begun = file.exists() and any(path != file for path in out.iterdir())
    if has_begun and file.read_bytes() != content:
        raise SettingError(
            f"what is in {out} was trained with another recipe, other texts or other word vectors",
            "use the same options as then, or give another folder with --out",
        )
    out.mkdir(parents=True, exist_ok=True)
    replace_whole(file, content)


OTHER_DATA: Final = "Reported figures are of other data and show the order of the rows only."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of ``askalike reproduce``.

    Args:
        data: the folder of the paper's data, or of the sets used in its place.
        out: folder for what is finished.
        only: rows, systems or sets; all if empty.
        seeds: trainings of each row in which something is drawn.
        unlabelled: archives whose texts are learned from too.
        sizes: texts to learn from, 0 for all; of papers that vary them.
        pairs: questions with answers to learn from, 0 for all.
        vectors: a file of word vectors, or None to train them.
    """

    data: Path
    out: Path
    recipe: str
    only: tuple[str, ...] = ()
    seeds: int = 5
    unlabelled: tuple[Path, ...] = ()
    sizes: tuple[int, ...] = (0,)
    pairs: int = 0
    vectors: Path | None = None
    device: str = "cpu"
    jobs: int = 1


Reported = Mapping[str, Mapping[str, str]]
"""Whose figures ("paper", "thesis") → measure → the figure as it is printed."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a reproduction shows: all of a paper, or one of its sets.

    Args:
        as_json: all of it as JSON has it.
        rows: the rows of each of its tables.
        tables: title → the task whose figures it has.
        reported: (row, task) → what was published.
        name: of the set, "" for all of a paper.
        note: below each title, or "".
        compared: heading → rows beside each other, tested.
    """

    as_json: Mapping[str, Any]
    rows: Sequence[RowResult[Any]]
    tables: Mapping[str, str]
    measures: tuple[str, ...]
    reported: Callable[[Any, str], Reported]
    name: str = ""
    note: str = ""
    compared: Mapping[str, Sequence[Compared]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper that can be reproduced.

    Args:
        rows: id → row, in the table's order.
        sets: that ``only`` takes beside rows and systems, those that are in the folder.
        reproduce: trains what is not finished and returns the tables; calls the progress on the way.
    """

    recipe: str
    rows: Mapping[str, Row]
    legend: str
    reproduce: Callable[[Options, Progress], list[Part]]
    sets: tuple[str, ...] = ()

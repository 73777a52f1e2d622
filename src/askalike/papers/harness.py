"""The harness of all papers: rows run with several seeds, side by side, kept as they end, and tested on each other.

::

    rows × seeds ──answer──▶ runs ──judge──▶ Outcome, one file each ──▶ RowResult: means over seeds, tested

A run that was interrupted goes on where it was: an outcome is found again by the fingerprint of everything that decides
it, and a work folder belongs to the settings that its trainings were made with. In a test each query's value is its
mean over seeds.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import multiprocessing
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from askalike.errors import MissingExtraError, SettingError
from askalike.evaluation import Interval, bootstrap_difference, bootstrap_mean, randomisation_test
from askalike.evaluation.forum.tasks import RerankTask, judge
from askalike.files import replace_whole
from askalike.processes import end_with_parent
from askalike.types import Run

_One = TypeVar("_One")
_Held = TypeVar("_Held")
_Found = TypeVar("_Found")


def do_each(
    work: Callable[[_Held, _One], _Found],
    held: _Held,
    ones: Sequence[_One],
    on_done: Callable[[_One, str], None],
    jobs: int,
) -> list[_Found]:
    """Return ``work(held, one)`` of each, in the order of their ending; some run side by side.

    Args:
        work: a function of a module; ``held`` and ``one`` travel to other processes where there are several jobs.
        on_done: called with each that is done, and how far all are, as in "2 of 9 done, about 7 min left".
        jobs: processes, ≥ 1; one is this process.
    """
    began = time.monotonic()
    found: list[_Found] = []

    def add(one: _One, result: _Found) -> None:
        found.append(result)
        rest = (time.monotonic() - began) / len(found) * (len(ones) - len(found)) / 60
        on_done(one, f"{len(found)} of {len(ones)} done, about {rest:.0f} min left")

    if jobs == 1 or len(ones) < 2:
        for one in ones:
            add(one, work(held, one))
        return found
    pool = ProcessPoolExecutor(min(jobs, len(ones)), multiprocessing.get_context("spawn"), _hold, (work, held))
    try:
        futures = {pool.submit(_do, one): one for one in ones}
        for future in as_completed(futures):
            add(futures[future], future.result())
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()  # or the error would be reported when all the others have ended, which may take hours
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return found


_HELD: list[tuple[Callable[[Any, Any], Any], Any]] = []
"""What this process works with; set once, where it begins."""


def _hold(work: Callable[[Any, Any], Any], held: object) -> None:
    end_with_parent()
    _HELD.append((work, held))


def _do(one: object) -> Any:
    work, held = _HELD[0]
    return work(held, one)


Values = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Task → measure → query → value in [0, 1]."""


@dataclass(frozen=True, slots=True)
class SeedMean:
    """One measure of a row on one task.

    Args:
        queries: how many count.
        over_queries: mean of the queries' values, with its interval over queries.
        spread: standard deviation of the seeds' means, None where there are fewer than two.
        p_value: of the paired randomisation test against a baseline on those values; None without one.
    """

    queries: int
    over_queries: Interval
    spread: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class Compared:
    """Two rows on one task by MAP.

    Args:
        better, worse: ids of rows; the first is said to be above the second.
        difference: of the first to the second, with its interval over queries.
        p_value: of the paired randomisation test, two-sided.
    """

    better: str
    worse: str
    task: str
    difference: Interval
    p_value: float


def over_seeds(by_seed: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each query's mean over seeds.

    >>> over_seeds([{"q": 1.0, "r": 0.5}, {"q": 0.5, "r": 0.5}])
    {'q': 0.75, 'r': 0.5}
    """
    return {query: fmean(values[query] for values in by_seed) for query in by_seed[0]}


def seed_mean(
    by_seed: Sequence[Mapping[str, float]], baseline: Sequence[Mapping[str, float]] | None = None
) -> SeedMean:
    """Return the mean over seeds and queries.

    Args:
        by_seed: query → value, for each seed.
        baseline: the same of another row, whatever its seeds; None compares with nothing.

    Example:
        >>> found = seed_mean([{"q": 1.0, "r": 0.5}, {"q": 0.5, "r": 0.0}])
        >>> found.over_queries.mean, round(found.spread or 0.0, 4)
        (0.5, 0.3536)
    """
    found = over_seeds(by_seed)
    values, other = list(found.values()), over_seeds(baseline) if baseline else None
    return SeedMean(
        len(values),
        bootstrap_mean(values),
        stdev(fmean(one.values()) for one in by_seed) if len(by_seed) > 1 else None,
        None if other is None else randomisation_test(values, [other[query] for query in found]).p_value,
    )


def row_means(
    by_seed: Sequence[Values], baseline: Sequence[Values], measures: Iterable[str]
) -> dict[str, dict[str, SeedMean]]:
    """Return task → measure → mean over seeds; nothing where there is no seed.

    Args:
        baseline: another row's, or nothing to compare with none.
    """
    names = list(measures)
    return {
        task: {
            name: seed_mean([one[task][name] for one in by_seed], [one[task][name] for one in baseline])
            for name in names
        }
        for task in (by_seed[0] if by_seed else ())
    }


def compare_rows(
    values: Mapping[str, Mapping[str, Mapping[str, float]]], pairs: Iterable[tuple[str, str]], tasks: Sequence[str]
) -> list[Compared]:
    """Return every pair on every task, where both rows are there.

    Args:
        values: row → task → query → value.
        pairs: (better, worse).

    Example:
        >>> values = {"b": {"dev": {"q": 1.0, "r": 0.5}}, "a": {"dev": {"q": 0.5, "r": 0.5}}}
        >>> [(one.better, one.difference.mean) for one in compare_rows(values, [("b", "a"), ("c", "a")], ["dev"])]
        [('b', 0.25)]
    """
    made = []
    for better, worse in pairs:
        for task in tasks if better in values and worse in values else ():
            queries = list(values[better][task])
            first, second = ([values[name][task][query] for query in queries] for name in (better, worse))
            p_value = randomisation_test(first, second).p_value
            made.append(Compared(better, worse, task, bootstrap_difference(first, second), p_value))
    return made


def means_object(means: Mapping[str, Mapping[str, SeedMean]]) -> dict[str, Any]:
    """Return task → measure → mean as JSON has it; means lie in [0, 1]."""
    return {
        task: {
            measure: {
                "mean": mean.over_queries.mean,
                "interval95": [mean.over_queries.low, mean.over_queries.high],
                "spread": mean.spread,
                "p_value": mean.p_value,
            }
            for measure, mean in found.items()
        }
        for task, found in means.items()
    }


def comparison_objects(found: Iterable[Compared]) -> list[dict[str, Any]]:
    """Return each comparison as JSON has it; differences lie in [-1, 1]."""
    return [
        {
            "better": one.better,
            "worse": one.worse,
            "task": one.task,
            "difference": one.difference.mean,
            "interval95": [one.difference.low, one.difference.high],
            "p_value": one.p_value,
        }
        for one in found
    ]


KEPT_CANDIDATES: Final = 2
"""How many of the best candidates are kept of each query of dev, for examples."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    Args:
        id: its name on the command line and in files.
        system: what is compared, or how it is run.
        learner: rows of one learner share what it has learned; "" for a row that shares nothing.
        is_drawn: something of its training is drawn at random, so that it is run with several seeds.
    """

    id: str
    system: str
    learner: str = ""
    is_drawn: bool = False


_Row = TypeVar("_Row", bound=Row)
_Asked = TypeVar("_Asked", bound=Row, contravariant=True)


def chosen_rows(rows: Mapping[str, _Row], names: Iterable[str]) -> list[_Row]:
    """Return the rows of these ids or systems, in the table's order; all when none is named.

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
            raise SettingError(
                f"there is no row or set {name!r}", f"expected one of {', '.join(rows)}, or a system ({systems})"
            )
    return [row for row in rows.values() if not wanted or row.id in wanted or row.system in wanted]


@dataclass
class Answered:
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
        settings, tried: as ``Answered``.
        first: dev task → query → its best candidates' ids.
    """

    row: str
    seed: int
    fingerprint: str
    values: Values
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tried: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    first: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowResult(Generic[_Row]):
    """A row with what is finished of it.

    Args:
        means: task → measure → mean over seeds; empty where nothing is finished.
        precisions: task → query → average precision, the mean over seeds.
        reason: why it was not run, or "".
    """

    row: _Row
    seeds: tuple[int, ...] = ()
    means: Mapping[str, Mapping[str, SeedMean]] = field(default_factory=dict)
    precisions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    reason: str = ""

    @classmethod
    def of(
        cls,
        row: _Row,
        seeds: Sequence[int],
        by_seed: Sequence[Values],
        baseline: Sequence[Values],
        measures: Iterable[str],
    ) -> RowResult[_Row]:
        """Return a row's means and average precisions.

        Args:
            by_seed: at least one.
            baseline: values that the row is tested against, or nothing.
        """
        precisions = {task: over_seeds([values[task]["map"] for values in by_seed]) for task in by_seed[0]}
        return cls(row, tuple(seeds), row_means(by_seed, baseline, measures), precisions)


def judged(tasks: Iterable[RerankTask], runs: Mapping[str, Run], measures: Sequence[str]) -> Values:
    """Return task → measure → query → value of runs by task."""
    reports = {task.name: judge(task, runs[task.name]) for task in tasks}
    return {name: {measure: dict(one.per_query[measure]) for measure in measures} for name, one in reports.items()}


def compared(
    found: Iterable[RowResult[_Row]], pairs: Iterable[tuple[str, str]], tasks: Sequence[str]
) -> list[Compared]:
    """Return what a paper says of rows, (better, worse), tested on those that are finished."""
    return compare_rows({one.row.id: one.precisions for one in found if one.precisions}, pairs, tasks)


class Answerer(Protocol[_Asked]):
    """What a paper brings: how its rows are answered."""

    def answer(self, row: _Asked, seed: int, /) -> Answered:
        """Return the runs of all tasks, trained where that is not done."""

    def decides(self, row: _Asked, seed: int, /) -> Any:
        """Return everything that decides an outcome, as JSON can hold it."""

    def quiet(self) -> Self:
        """Return the same for a process of its own: with one thread, and no progress."""


@dataclass(frozen=True)
class Runner(Generic[_Row]):
    """Runs rows, or finds what they came to.

    Args:
        tasks: dev and tests, that rows are scored on.
        dev: names of those tasks whose best candidates are kept.
        baseline: id of the row that the others are tested against.
    """

    answerer: Answerer[_Row]
    tasks: tuple[RerankTask, ...]
    dev: Collection[str]
    folder: Path
    measures: tuple[str, ...]
    baseline: str

    def finished(self, row: _Row, seed: int) -> Outcome | None:
        """Return what was kept of a row and seed, or None where there is nothing or it is of something else."""
        try:
            kept = Outcome(**json.loads(self._file(row, seed).read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return kept if kept.fingerprint == self._fingerprint(row, seed) else None

    def run(self, row: _Row, seed: int) -> Outcome:
        """Run a row with one seed, score all tasks, and keep the outcome."""
        answered = self.answerer.answer(row, seed)
        first = {
            task.name: {
                query: [found for found, _ in sorted(entries, key=lambda entry: -entry[1])[:KEPT_CANDIDATES]]
                for query, entries in answered.runs[task.name].items()
            }
            for task in self.tasks
            if task.name in self.dev
        }
        values = judged(self.tasks, answered.runs, self.measures)
        outcome = Outcome(row.id, seed, self._fingerprint(row, seed), values, answered.settings, answered.tried, first)
        file = self._file(row, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(file, json.dumps(asdict(outcome), indent=1).encode())
        return outcome

    def run_all(
        self,
        rows: Iterable[_Row],
        seeds: Sequence[int],
        notice: Callable[[str], None],
        *,
        jobs: int = 1,
        what: str = "",
    ) -> dict[str, str]:
        """Run what is not finished: all rows with one seed, then with the next; return why rows could not be run.

        Args:
            notice: called with what begins, what has ended, and about how long the rest takes.
            jobs: processes, ≥ 1.
            what: begins each notice.

        Raises:
            SettingError: no seed was given.
        """
        if not seeds:
            raise SettingError("no seed to run with", "give at least one")
        left: list[_Unit[_Row]] = []
        for seed in seeds:
            groups: dict[str, list[_Row]] = {}
            for row in rows:
                if seed in seeds_of(row, seeds) and self.finished(row, seed) is None:
                    groups.setdefault(row.learner or row.id, []).append(row)
            left += [(tuple(group), seed) for group in groups.values()]
        if not left:
            return {}
        notice(f"{what}{len(left)} trainings and measurements")
        runner = replace(self, answerer=self.answerer.quiet()) if jobs > 1 else self
        found = do_each(_run_unit, runner, left, lambda one, how: notice(f"{what}{_name(one)}: {how}"), jobs)
        return {row: reason for reasons in found for row, reason in reasons.items()}

    def results(
        self, rows: Iterable[_Row], seeds: Sequence[int], reasons: Mapping[str, str] | None = None
    ) -> list[RowResult[_Row]]:
        """Return the rows with what is finished of them.

        Args:
            reasons: row → why it was not run.
        """
        asked = list(rows)
        kept = {row.id: self._all_finished(row, seeds) for row in asked}
        base = [one.values for one in kept.get(self.baseline, ())]
        made: list[RowResult[_Row]] = []
        for row in asked:
            found = kept[row.id]
            if not found:
                made.append(RowResult(row, reason=(reasons or {}).get(row.id, "")))
                continue
            against = () if row.id == self.baseline else base
            one = RowResult.of(row, [of.seed for of in found], [of.values for of in found], against, self.measures)
            made.append(replace(one, outcomes=found))
        return made

    def _all_finished(self, row: _Row, seeds: Sequence[int]) -> tuple[Outcome, ...]:
        found = (self.finished(row, seed) for seed in seeds_of(row, seeds))
        return tuple(outcome for outcome in found if outcome is not None)

    def _file(self, row: _Row, seed: int) -> Path:
        return self.folder / f"{row.id}-seed{seed}.json"

    def _fingerprint(self, row: _Row, seed: int) -> str:
        content = json.dumps(self.answerer.decides(row, seed), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


_Unit = tuple[tuple[_Row, ...], int]
"""Rows that share what they learn, and a seed."""


def seeds_of(row: Row, seeds: Sequence[int]) -> Sequence[int]:
    """Return the seeds that a row is run with: the first alone where nothing is drawn."""
    return seeds if row.is_drawn else seeds[:1]


def _run_unit(runner: Runner[_Row], one: _Unit[_Row]) -> dict[str, str]:
    """Run rows; return why those could not be run that need an extra that is missing."""
    rows, seed = one
    reasons = {}
    for row in rows:
        try:
            runner.run(row, seed)
        except MissingExtraError as error:
            reasons[row.id] = str(error)
    return reasons


def _name(one: _Unit[_Row]) -> str:
    rows, seed = one
    named = " and ".join(row.id for row in rows)
    return f"{named}, seed {seed}" if any(row.is_drawn for row in rows) else named


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
    has_begun = file.exists() and any(one != file for one in out.iterdir())
    if has_begun and file.read_bytes() != content:
        raise SettingError(
            f"what is in {out} was trained with another recipe, other texts or other word vectors",
            "use the same options as then, or give another folder with --out",
        )
    out.mkdir(parents=True, exist_ok=True)
    replace_whole(file, content)

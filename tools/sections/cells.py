"""What the sections share: tables, and figures as cells of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["against", "compared", "figure", "mean", "measures_of", "numbers", "ranking_table", "seconds", "table"]


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a table."""
    names = list(header)
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def figure(values: Mapping[str, Any], measure: str) -> str:
    """Return a mean with its interval."""
    low, high = values[f"{measure}_interval95"]
    return f"{values[measure]:.2f} ({low:.1f}–{high:.1f})"


def mean(found: Mapping[str, Any]) -> str:
    """Return a mean over seeds with the standard deviation of theirs, times 100."""
    spread = "" if found["spread"] is None else f" ± {100 * found['spread']:.2f}"
    return f"{100 * found['mean']:.2f}{spread}"


def measures_of(values: Mapping[str, Any]) -> list[str]:
    """Return the measures of a row that come with an interval, in its order."""
    return [name for name in values if f"{name}_interval95" in values]


def against(values: Mapping[str, Any], rival: str, measure: str) -> str:
    """Return what a row differs by from a rival in one measure, "" where it was not compared."""
    test = values.get(f"against_{rival}", {}).get(measure)
    return f"{test['difference']:+.2f}, p = {test['p_value']:.4f}" if test else ""


def ranking_table(systems: Mapping[str, Mapping[str, Any]], rivals: Iterable[str]) -> list[str]:
    """Return one row a system: every measure, and the main one, the first that was tested, against each rival."""
    first = next(iter(systems.values()))
    measures = measures_of(first)
    counted = "pairs" if "pairs" in first else "queries"
    present = {rival: _main(systems, rival) for rival in rivals if rival in systems}
    rows = [
        (
            name,
            *(figure(values, measure) for measure in measures),
            values[counted],
            *(against(values, rival, main) for rival, main in present.items()),
        )
        for name, values in systems.items()
    ]
    return table((*("system", *measures, counted), *(f"{main}, against {one}" for one, main in present.items())), rows)


def _main(systems: Mapping[str, Mapping[str, Any]], rival: str) -> str:
    tested = next(row[f"against_{rival}"] for row in systems.values() if f"against_{rival}" in row)
    return str(next(iter(tested)))


def numbers(values: Mapping[str, float]) -> str:
    """Return named figures in a row."""
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def seconds(values: Mapping[str, float]) -> str:
    """Return named times in a row."""
    return ", ".join(f"{name} {value:.1f} s" for name, value in values.items())


def compared(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each pair of rows that was tested on a task."""
    lines = []
    for one in found:
        low, high = (100 * bound for bound in one["interval95"])
        difference = f"{100 * one['difference']:+.2f} ({low:+.1f} to {high:+.1f})"
        lines.append((f"{one['better']} over {one['worse']}", one["task"], difference, f"{one['p_value']:.4f}"))
    return table(("rows", "task", "difference", "p"), lines)

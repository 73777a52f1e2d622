"""Comparisons of rows on a terminal: nothing of them is cut off."""

from __future__ import annotations

import io

from rich.console import Console

from askalike.cli.reproduce import comparison_table
from askalike.evaluation import Interval
from askalike.papers.harness import Compared

BETTER, WORSE = "attention-white-combined", "words-combined"


def test_every_name_and_number_fits_a_terminal_of_80_columns() -> None:
    tasks = ("dev", "test2016", "test2017")
    found = [Compared(BETTER, WORSE, task, Interval(-0.1234, -0.201, 0.1, 0.95), 0.0001) for task in tasks]
    shown = io.StringIO()
    Console(file=shown, width=80).print(comparison_table(found))
    lines = [line.split() for line in shown.getvalue().splitlines()]
    row = [BETTER, "over", WORSE, "-12.34", "-20.1", "to", "+10.0", "0.0001"]
    assert lines[1:] == [line for task in tasks for line in ([task], row)]

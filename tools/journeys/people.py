"""Five people, where each starts to read, and what each wants to have at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.journeys.blocks import Shell, Step, blocks_of

REPOSITORY = Path(__file__).resolve().parents[2]


def _printed(words: str) -> Callable[[Path, Sequence[Step]], bool]:
    """Return a check whether any command printed these words."""
    return lambda _, steps: any(words in step.output for step in steps)


def _is_served(folder: Path, steps: Sequence[Step]) -> bool:
    """Return whether the service found a question, and the form has the widget."""
    answers = [step.output for step in steps if step.command.startswith("curl") and "/v1/similar" in step.command]
    page = folder / "site" / "index.html"
    return bool(answers and json.loads(answers[-1])["hits"]) and "widget.js" in page.read_text(encoding="utf-8")


def _is_cleaned(folder: Path, steps: Sequence[Step]) -> bool:
    """Return whether a file and a forum were cleaned: pairs and unique rows are tables, what is left was counted."""
    pairs, unique = ((folder / name).read_text(encoding="utf-8").splitlines() for name in ("pairs.csv", "unique.csv"))
    return len(pairs) > 1 and len(unique) == 3 and _printed("questions are left")(folder, steps)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a goal.

    Args:
        goal: what is there at the end.
        pages: what is read, in this order; every block that is not marked is typed.
        is_there: whether the goal is reached, by the folder and what was printed.
        is_short: under two minutes where everything is installed, so that the tests play it.
    """

    goal: str
    pages: tuple[str, ...]
    is_there: Callable[[Path, Sequence[Step]], bool]
    is_short: bool = True


PEOPLE: Mapping[str, Person] = {
    "newcomer": Person("a first search that convinces", ("README.md",), _printed(" the same (")),
    "operator": Person("the widget in an ask form", ("docs/tutorial.md",), _is_served),
    "data scientist": Person("a set of questions without repeats", ("docs/how-to/notebook.md",), _is_cleaned),
    "researcher": Person("a run scored and compared", ("docs/how-to/research.md",), _printed("p = ")),
    "contributor": Person("a checkout whose checks pass", ("CONTRIBUTING.md",), _printed(" passed"), is_short=False),
}


def play(person: Person, folder: Path, *, is_installed: bool) -> list[Step]:
    """Type what a person reads, in a folder; return the commands that were run.

    Raises:
        AssertionError: a command failed, or the goal was not reached.
    """
    with Shell(folder, is_installed=is_installed) as shell:
        for page in person.pages:
            for block in blocks_of(REPOSITORY / page):
                if block.is_run:
                    shell.run(block)
        assert person.is_there(folder, shell.steps), f"{', '.join(person.pages)} does not lead to {person.goal}"
        return shell.steps

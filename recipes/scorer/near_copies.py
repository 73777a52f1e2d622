"""Titles that differ from a forum's titles in one thing, and titles that ask the same in other words.

The judged pools have next to no question that another one repeats but for a number, a name, "not", an opposite or the
direction, so that they cannot teach what such a difference means. A near-copy asks something else (grade 0), a
rephrasing the same (grade 3). Both are reworded by the same rules, so that rewording does not reveal the grade.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final

from askalike.search.differences import OPPOSITES
from askalike.text.analyzer import Analyzer

EACH: Final = 25
"""Near-copies of each kind in one forum; there are three times as many rephrasings."""
LEAST_LENGTH: Final = 15
MOST_LENGTH: Final = 110

_OPENINGS: Final = ("how do i ", "how to ", "how can i ", "best way to ", "what is the best way to ", "can i ")
_PLACE: Final = re.compile(r"(.{12,}) (in|on|with|for|using) ((?:[\w.\-]+ ?){1,3})\??")
_NEGATED: Final = (("can't", "can"), ("doesn't", "does"), ("don't", "do"), ("isn't", "is"), ("not ", ""))
_PLAIN: Final = ("is", "can", "does", "are", "should", "allowed")
_FROM_TO: Final = re.compile(r"\bfrom (\w[\w.\-]*) (to|into) (\w[\w.\-]*)")
_MOVED: Final = re.compile(
    r"\b((?:convert|import|export|migrat|transfer|travel|fly|mov|switch|send|driv|cop|transform|map|train|bus|flight)\w*)"
    r" ([\w.\-]+) (to|into) ([\w.\-]+)",
    re.IGNORECASE,
)
_OPENED_BY_VERB: Final = re.compile(r"(Can|Does|Is|Are|Should|Why is|Why does|Why are) (\S+) (.*)")

Change = Callable[[str, random.Random, Sequence[str]], str]
"""A title, chance, the forum's names → another title, "" where the title allows none."""


def change_number(title: str, chance: random.Random, _: Sequence[str]) -> str:
    """Change one number."""
    numbers = list(re.finditer(r"\d+", title))
    if not numbers:
        return ""
    number = chance.choice(numbers)
    new = str(max(0, int(number[0]) + chance.choice([1, -1, 2, 3, 10])))
    return title[: number.start()] + new + title[number.end() :]


def change_name(title: str, chance: random.Random, names: Sequence[str]) -> str:
    """Put another name of the forum in a name's place."""
    places = names_in(title)
    words = title.split()
    if not places or not names:
        return ""
    place = chance.choice(list(places))
    new = chance.choice(names)
    words[place] = words[place].replace(places[place], new)
    return " ".join(words) if new.lower() != places[place].lower() else ""


def negate(title: str, chance: random.Random, _: Sequence[str]) -> str:
    """Add a negation or take one away."""
    for negated, plain in _NEGATED:
        if f" {negated}" in title:
            return title.replace(negated, plain, 1)
    for first, second in (("without", "with"), ("with", "without")):
        if f" {first} " in title:
            return title.replace(f" {first} ", f" {second} ", 1)
    opened = _OPENED_BY_VERB.fullmatch(title)
    if opened is not None:
        return f"{opened[1]} {opened[2]} not {opened[3]}"
    verbs = [verb for verb in _PLAIN if f" {verb} " in title]
    verb = chance.choice(verbs) if verbs else ""
    return title.replace(f" {verb} ", f" {verb} not ", 1) if verb else ""


def oppose(title: str, chance: random.Random, _: Sequence[str]) -> str:
    """Put a word's opposite in its place."""
    choices = []
    for place, word in enumerate(title.split()):
        core = word.lower().strip("?,.:()")
        for sides in OPPOSITES:
            for side, other in (sides, sides[::-1]):
                if core in side and core not in ("on", "off", "left", "right", "more"):
                    choices.append((place, core, chance.choice(other)))
    if not choices:
        return ""
    place, old, new = chance.choice(choices)
    words = title.split()
    words[place] = re.sub(re.escape(old), new, words[place], flags=re.IGNORECASE)
    return " ".join(words)


def reverse(title: str, _: random.Random, __: Sequence[str]) -> str:
    """Exchange where something comes from and where it goes."""
    if _FROM_TO.search(title):
        return _FROM_TO.sub(r"from \3 \2 \1", title, count=1)
    return _MOVED.sub(r"\1 \4 \3 \2", title, count=1) if _MOVED.search(title) else ""


CHANGES: Final[dict[str, Change]] = {
    "number": change_number,
    "name": change_name,
    "negation": negate,
    "opposite": oppose,
    "direction": reverse,
}


def names_in(title: str) -> dict[int, str]:
    """Return the words with a capital within a title by their places; none where hardly a word is without one."""
    words = title.split()
    if sum(word[:1].islower() for word in words) < 2:
        return {}
    cores = {place: word.strip("?,.:()\"'") for place, word in enumerate(words) if place}
    return {place: core for place, core in cores.items() if core[:1].isupper() and core.isalpha() and len(core) > 1}


def reword(title: str, chance: random.Random, analyzer: Analyzer) -> str:
    """Return a title that says the same: another opening, order, case or spelling."""
    text = title.strip()
    opening = next((opening for opening in _OPENINGS if text.lower().startswith(opening)), "")
    if opening:
        text = chance.choice(["How do I ", "How to ", "How can I ", "", ""]) + text[len(opening) :]
    elif chance.random() < 0.3:
        text = chance.choice(["Question: ", "Help: ", ""]) + text
    placed = _PLACE.fullmatch(text)
    if placed is not None and chance.random() < 0.5:
        text = f"{placed[3].strip()}: {placed[1]}"
    if chance.random() < 0.5:
        text = text.rstrip("?!. ")
    text = text.lower() if chance.random() < 0.4 else text[:1].upper() + text[1:]
    words = text.split()
    if chance.random() < 0.25 and len(words) > 4:
        idle = [place for place, word in enumerate(words) if not analyzer.terms(word) and word not in ("from", "to")]
        if idle:
            del words[chance.choice(idle)]
    if chance.random() < 0.15:
        long = [place for place, word in enumerate(words) if word.isalpha() and len(word) > 5]
        if long:
            place = chance.choice(long)
            at, word = chance.randrange(1, len(words[place]) - 2), words[place]
            words[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)


def near_copies(titles: Sequence[str], chance: random.Random, analyzer: Analyzer) -> list[tuple[str, str, str]]:
    """Return the kind of each pair, a title of the forum, and the changed title; "reworded" ones ask the same."""
    fitting = [title for title in titles if LEAST_LENGTH <= len(title) <= MOST_LENGTH]
    names = sorted({name for title in titles for name in names_in(title).values()})
    pairs: list[tuple[str, str, str]] = []
    for kind, change in CHANGES.items():
        changed = ((title, change(title, chance, names)) for title in chance.sample(fitting, len(fitting)))
        kept = [(title, new) for title, new in changed if new and new != title][:EACH]
        pairs += [(kind, old, reword(new, chance, analyzer) if chance.random() < 0.6 else new) for old, new in kept]
    for title in chance.sample(fitting, min(3 * EACH, len(fitting))):
        pairs.append(("reworded", title, reword(title, chance, analyzer)))
    return [(kind, old, new) for kind, old, new in pairs if new and new != old]

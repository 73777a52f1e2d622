"""What keeps two nearly equal titles from asking the same: numbers, negation, opposites, names, direction.

Similarity cannot show it: "Disable updates in Windows 10" shares all but one number with the same words about Windows
11, and "Copy files from Linux to Windows" shares every word with its reverse. Each difference is looked for only where
the titles share much, since elsewhere it says nothing that the words do not say::

    closeness(s) = min(1, max(0, (s - 0.4) / 0.3))        s: the share of both titles' rarity that they have in common

The word lists are English. In other languages numbers, names and the direction of words remain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import Stemmer

from askalike.search.texts import Text, hashed, hashes_of
from askalike.text.analyzer import Analyzer
from askalike.text.tokens import word_of

DIFFERENCES: Final = ("numbers", "negation", "opposites", "names", "direction")

COORDINATED: Final = 3
LEAST_SHARE: Final = 0.4
FULL_SHARE: Final = 0.7

_stemmer = Stemmer.Stemmer("english")
_stem = lru_cache(1 << 16)(_stemmer.stemWord)


def _listed(words: str) -> list[str]:
    return words.split()


_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_NUMBER_WORDS: Final = {
    word: str(number)
    for number, word in enumerate(_listed("two three four five six seven eight nine ten eleven twelve"), start=2)
}
_DATES: Final = frozenset(
    _listed(
        """january february march april june july august september october november december jan feb mar apr jun jul aug
        sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday"""
    )
)
_NEGATIONS: Final = frozenset(
    _listed(
        """not no never without cannot none nothing neither nor nobody nowhere dont doesnt didnt cant wont isnt arent
        wasnt werent havent hasnt shouldnt couldnt wouldnt"""
    )
)
_IMPLIED_NEGATIONS: Final = frozenset(
    _stemmer.stemWords(
        _listed(
            """refuse fail stop prevent avoid unable impossible lack missing miss stuck keep lose deny denied fix solve
            broken wrong error unless hardly rarely barely disable despite although problem issue trouble"""
        )
    )
)
"""A title with one of these may negate the other's words as well as "not" does."""

OPPOSITES: Final = tuple(
    (tuple(first.split()), tuple(second.split()))
    for first, second in (
        line.split("|")
        for line in """
before prior until | after once afterwards
last previous past yesterday | next upcoming future tomorrow
first | last second third
enable activate allow permit | disable deactivate forbid forbidden block prevent prohibit ban
add insert include | remove delete drop exclude strip
install | uninstall
increase raise enlarge grow gain more maximize higher | decrease lower reduce shrink lose less fewer minimize
open | close shut
start begin launch | stop end quit finish
import | export
upload | download
encode encrypt | decode decrypt
compress zip | decompress unzip extract
lock | unlock
buy purchase | sell
send | receive
connect join | disconnect leave
push | pull
deposit | withdraw
arrive arrival | depart departure leave
entry enter | exit
inside indoor | outside outdoor
left | right
hot warm heat | cold cool
new | old
long longest longer | short shortest shorter
fast fastest faster quick quickest | slow slowest slower
cheap cheapest cheaper | expensive
easy easiest easier | hard hardest harder difficult
best better | worst worse
large big largest biggest bigger larger | small smallest smaller
most maximum max | least minimum min
highest | lowest
public | private
legal | illegal
safe | unsafe dangerous
with | without
cause | consequence effect symptom
male men man father boy | female women woman mother girl
client | server
read | write
show | hide
win | lose
empty | full
domestic | international
single | multiple double
wet | dry
light | dark
input | output
source | target destination
on | off""".strip().splitlines()
    )
)
"""Words of opposite meaning: one side, the other."""
_SWITCHES: Final = frozenset({"turn", "switch", "power"})
"""Only beside one of these do "on" and "off" name a state."""

_NEGATING_PREFIXES: Final = ("un", "dis", "in", "non", "im", "de", "ir")
_FUTURE: Final = frozenset(_listed("will shall gonna next upcoming soon tomorrow"))
_PAST: Final = frozenset(_listed("had did was were last ago yesterday previous already"))
_NOT_SUPERLATIVE: Final = frozenset(
    _listed(
        """request interest suggest forest protest digest contest invest harvest latest arrest budapest manifest honest
        modest conquest bequest midwest northwest southwest everest ingest"""
    )
)
_ARTICLES: Final = frozenset(_listed("a an the my your our his her their its this that these those"))
_COORDINATING: Final = frozenset(_listed("and or vs versus"))
_SYMMETRIC: Final = _COORDINATING | {"between", "with"}
_TOWARDS: Final = frozenset(_listed("to into onto"))
_PLAIN: Final = _SYMMETRIC | _TOWARDS | {"from", "in"}
_NOT_NEGATED: Final = frozenset(_listed("longer only matter"))


def _poles() -> Mapping[str, tuple[tuple[int, int], ...]]:
    """Return the stem of each opposite → the lines that it is in, and on which side of the bar."""
    poles: dict[str, tuple[tuple[int, int], ...]] = {}
    for axis, sides in enumerate(OPPOSITES):
        for side, words in enumerate(sides):
            for stem in {*words, *map(_stemmer.stemWord, words)}:
                poles[stem] = (*poles.get(stem, ()), (axis, side))
    return poles


_POLES: Final = _poles()


def closeness(share: float) -> float:
    """Return how much a difference counts between titles that have this share in common, in [0, 1].

    >>> [round(closeness(share), 2) for share in (0.4, 0.55, 1.0)]
    [0.0, 0.5, 1.0]
    """
    return min(1.0, max(0.0, (share - LEAST_SHARE) / (FULL_SHARE - LEAST_SHARE)))


@dataclass(frozen=True)
class Title:
    """A title, word by word.

    Args:
        written: the words as they are written, in their order.
        terms: the index terms of a word; none of a stop word.
    """

    written: tuple[str, ...]
    terms: Callable[[str], Sequence[str]]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words in lower case; "US" is no pronoun, and "May" beside a number or "of" is a month."""
        words = [word_of(word) for word in self.written]
        is_shouted = all(word.isupper() for word in self.written if word.isalpha())
        for place, written in enumerate(self.written):
            if written in ("US", "U.S") and not is_shouted:
                words[place] = "usa"
            elif written == "May":
                around = [*words[max(0, place - 1) : place], *words[place + 1 : place + 2]]
                if any(near == "of" or near[:1].isdigit() for near in around):
                    words[place] = "may."
        return tuple(words)

    @cached_property
    def content(self) -> Mapping[str, frozenset[str]]:
        """The words that have terms, in their order → their terms."""
        return {word: frozenset(terms) for word in self.words if (terms := self.terms(word))}

    @cached_property
    def all_terms(self) -> frozenset[str]:
        """The terms of all words."""
        return frozenset().union(*self.content.values())

    @cached_property
    def stems(self) -> frozenset[str]:
        """The English stems of all words."""
        return frozenset(map(_stem, self.words))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Numbers, codes, versions, months and days of the week."""
        return frozenset(filter(None, map(_number, self.words)))

    @cached_property
    def names(self) -> frozenset[str]:
        """Words with a capital that does not begin the title; none where hardly a word is without one."""
        has_lower = any(word[0].islower() for word in self.written[1:] if self.terms(word_of(word)))
        if not has_lower:
            return frozenset()
        return frozenset(
            word
            for place, (written, word) in enumerate(zip(self.written, self.words, strict=True))
            if word in self.content
            and word not in _DATES
            and not any(letter.isdigit() for letter in word)
            and ((place and written[0].isupper()) or any(letter.isupper() for letter in written[1:]))
        )

    @cached_property
    def negations(self) -> int:
        """How many words negate: neither "or not" nor "no longer"."""
        words = self.words
        return sum(
            (word in _NEGATIONS or word.endswith("n't"))
            and not (word == "not" and place and words[place - 1] == "or")
            and not (word in ("no", "not") and words[place + 1 : place + 2] and words[place + 1] in _NOT_NEGATED)
            for place, word in enumerate(words)
        )

    @cached_property
    def poles(self) -> frozenset[tuple[int, int]]:
        """Which opposites are named, and on which side."""
        is_switched = not _SWITCHES.isdisjoint(self.stems)
        named = {pole for word in self.words if word not in ("on", "off") for pole in _poles_of(word)}
        if is_switched:
            named.update(pole for word in self.words if word in ("on", "off") for pole in _poles_of(word))
        return frozenset(named)

    @cached_property
    def superlatives(self) -> frozenset[str]:
        """Words like "cheapest"."""
        return frozenset(
            word for word in self.words if len(word) > 5 and word.endswith("est") and word not in _NOT_SUPERLATIVE
        )

    @cached_property
    def is_future(self) -> bool:
        """Whether it speaks of what will be."""
        going = any(pair == ("going", "to") for pair in zip(self.words, self.words[1:], strict=False))
        return going or not _FUTURE.isdisjoint(self.words)

    def is_past_of(self, other: Title) -> bool:
        """Return whether it speaks of what was, in words of its own or in the past tense of a word of the other."""
        return not _PAST.isdisjoint(self.words) or any(
            word.endswith("ed") and word not in other.words and not terms.isdisjoint(other.all_terms)
            for word, terms in self.content.items()
        )

    @cached_property
    def sequence(self) -> tuple[frozenset[str] | str, ...]:
        """The terms of each word in order, without articles; a stop word or preposition stands for itself."""
        return tuple(
            word if word in _PLAIN else self.content.get(word, word) for word in self.words if word not in _ARTICLES
        )

    def lacks(self, other: Title) -> list[str]:
        """Return the words whose terms the other title has not all."""
        return [word for word, terms in self.content.items() if not terms <= other.all_terms]


def _poles_of(word: str) -> tuple[tuple[int, int], ...]:
    return _POLES.get(word) or _POLES.get(_stem(word), ())


def _number(word: str) -> str:
    """Return a word as a number, a code or a date, or nothing."""
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if word in _DATES or word == "may.":
        return word[:3]
    return word if any(letter.isdigit() for letter in word) else ""


@lru_cache(1 << 13)
def title_of(written: str, analyzer: Analyzer) -> Title:
    """Return a title whose words are joined by spaces; the same one for the same words."""
    return Title(tuple(written.split()), analyzer.terms)


def differences(query: Text, candidate: Text, analyzer: Analyzer, share: float) -> tuple[float, ...]:
    """Return how much each of ``DIFFERENCES`` counts between two titles, in [0, 1].

    Args:
        analyzer: of the candidate's language.
        share: of the titles' rarity that they have in common. Dates and versions are so rare that short titles which
            differ in nothing else share little: these are as near as can be.
    """
    near = closeness(share)
    ours, theirs = title_of(query.written, analyzer), title_of(candidate.written, analyzer)
    have_numbers = bool(ours.numbers and theirs.numbers)
    if ours.words == theirs.words or not (near or have_numbers):
        return (0.0,) * len(DIFFERENCES)
    numbers = 0.0
    if have_numbers and _numbers_differ(ours, theirs, query, candidate):
        numbers = 1.0 if _differ_in_numbers_alone(ours, theirs) else near
    if not near:
        return (numbers, *(0.0,) * (len(DIFFERENCES) - 1))
    return (
        numbers,
        near * _negation_differs(ours, theirs),
        near * _has_opposites(ours, theirs),
        near * _names_differ(ours, theirs, query, candidate),
        near * _direction_differs(ours, theirs),
    )


def _differ_in_numbers_alone(ours: Title, theirs: Title) -> bool:
    """Return whether the titles have the same words but for numbers, one at least."""
    plain = [{word for word in title.content if not _number(word)} for title in (ours, theirs)]
    terms = [
        frozenset().union(*(title.content[word] for word in words))
        for title, words in zip((ours, theirs), plain, strict=True)
    ]
    return bool(terms[0]) and terms[0] == terms[1]


def _numbers_differ(ours: Title, theirs: Title, query: Text, candidate: Text) -> bool:
    """Return whether each title has a number that the other question has nowhere."""
    return _has_own_number(ours, theirs, candidate) and _has_own_number(theirs, ours, query)


def _has_own_number(title: Title, other: Title, text: Text) -> bool:
    parts = {part for number in other.numbers for part in _NUMBER.findall(number)}
    own = [
        number
        for number in title.numbers - other.numbers
        if number[0].isalpha() or not parts.issuperset(_NUMBER.findall(number) or [number])
    ]
    return bool(own) and not _are_in(own, title, text)


def _are_in(words: Iterable[str], title: Title, text: Text) -> bool:
    """Return whether a text has the terms of all words."""
    hashes = hashes_of(text)
    return all(hashed(term) in hashes for word in words for term in title.terms(word) or (word,))


def _negation_differs(ours: Title, theirs: Title) -> bool:
    """Return whether one title is negated and the other is not, in any word."""
    if (ours.negations - theirs.negations) % 2 == 0:
        return False
    negated, plain = (ours, theirs) if ours.negations % 2 else (theirs, ours)
    return _IMPLIED_NEGATIONS.isdisjoint(plain.stems - negated.stems)


def _has_opposites(ours: Title, theirs: Title) -> bool:
    """Return whether the titles name opposite poles, other superlatives, or what was and what will be."""
    for axis, side in ours.poles:
        pole, opposite = (axis, side), (axis, 1 - side)
        if opposite in theirs.poles and pole not in theirs.poles and opposite not in ours.poles:
            return True
    if ours.superlatives - theirs.superlatives and theirs.superlatives - ours.superlatives:
        return True
    if ours.is_future != theirs.is_future:
        future, past = (ours, theirs) if ours.is_future else (theirs, ours)
        if past.is_past_of(future):
            return True
    our_words, their_words = ours.lacks(theirs), theirs.lacks(ours)
    return any(
        word == prefix + other or other == prefix + word
        for word in our_words
        for other in their_words
        for prefix in _NEGATING_PREFIXES
    )


def _names_differ(ours: Title, theirs: Title, query: Text, candidate: Text) -> bool:
    """Return whether each title has a name that the other question has nowhere."""
    if not ours.names or not theirs.names:
        return False
    our_own = [name for name in ours.names.intersection(ours.lacks(theirs)) if not _are_in([name], ours, candidate)]
    if not our_own:
        return False
    return any(not _are_in([name], theirs, query) for name in theirs.names.intersection(theirs.lacks(ours)))


def _direction_differs(ours: Title, theirs: Title) -> bool:
    """Return whether two shared words have changed places: "from A to B", "A speaker learning B".

    A word stands behind "from" in one title and behind "to" in the other; or two words, in another order than in the
    other title, have each other's neighbours. Around "and", "or" and the like order says nothing, nor does it of
    what they join: "lenses or mirrors in telescopes", "mirrors or lenses in telescopes".
    """
    first, second = ours.sequence, theirs.sequence
    shared = [term for term in dict.fromkeys(first) if isinstance(term, frozenset) and term in second]
    if len(shared) < 2 and "from" not in first:
        return False
    for term in shared:
        here, there = _before(first, term), _before(second, term)
        for origin, target in ((here, there), (there, here)):
            if "from" in origin and "from" not in target and target & _TOWARDS and not origin & _TOWARDS:
                return True
    for place, word in enumerate(shared):
        for other in shared[place + 1 :]:
            is_kept = (first.index(word) < first.index(other)) == (second.index(word) < second.index(other))
            is_list = _are_coordinated(first, word, other) and _are_coordinated(second, word, other)
            if not is_kept and not is_list and _have_swapped(first, second, word, other):
                return True
    return False


def _are_coordinated(sequence: Sequence[_Key], word: _Key, other: _Key) -> bool:
    """Return whether "and", "or" or the like joins two words, with at most a word of each beside it."""
    start, end = sorted((sequence.index(word), sequence.index(other)))
    between = sequence[start + 1 : end]
    return len(between) <= COORDINATED and any(key in _COORDINATING for key in between)


_Key = frozenset[str] | str


def _before(sequence: Sequence[_Key], term: _Key) -> set[_Key]:
    """Return what stands directly before each place of a term."""
    return {sequence[place - 1] for place, key in enumerate(sequence) if key == term and place}


def _neighbours(sequence: Sequence[_Key], term: _Key, others: tuple[_Key, _Key]) -> set[tuple[str, _Key]]:
    """Return what stands before and after a term, but for the two words themselves and symmetric words."""
    around: set[tuple[str, _Key]] = set()
    for place, key in enumerate(sequence):
        if key == term:
            if place:
                around.add(("before", sequence[place - 1]))
            if place + 1 < len(sequence):
                around.add(("after", sequence[place + 1]))
    return {(side, key) for side, key in around if key not in others and key not in _SYMMETRIC}


def _have_swapped(first: Sequence[_Key], second: Sequence[_Key], word: _Key, other: _Key) -> bool:
    """Return whether each of two words stands where the other stood, or one of them behind the other's "to"."""
    both = (word, other)
    taken = _neighbours(first, word, both) & _neighbours(second, other, both)
    left = _neighbours(first, other, both) & _neighbours(second, word, both)
    if taken and left:
        return True
    towards = _TOWARDS | {"from", "in"}
    return any(side == "before" and key in towards for side, key in taken | left)

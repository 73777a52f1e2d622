"""What a misspelt word may have meant, and how likely each of these words is to be misspelt so: a noisy channel.

One edit parts both: a letter left out, put in, changed, or two neighbours swapped, which were more than four fifths of
the misspellings of Damerau 1964 (Communications of the ACM 7) and more than nine tenths of those of Pollock and Zamora
1983 (Journal of the American Society for Information Science 34). People make some edits more often than others::

    P(typo | word) = P(edit) · P(place | word, edit) · P(letter | place, edit)

- ``P(edit)``: leaving out is the commonest. Source: Pollock and Zamora 1983.
- ``P(place)``: the same for each letter, but the first is seldom wrong, and of two equal letters in a row one is lost
  easily; what this adds is not taken from the other places. Source: what Yannakoudakis and Fawthrop 1983 (Information
  Processing and Management 19) list as known, (iii) and (iv).
- ``P(letter)``: a letter that is put in mostly doubles the one before it, or is a neighbour on the keyboard of the one
  beside it; a changed one is mostly a neighbour of what was meant, or a vowel for a vowel; the rest is shared by all.

Differs: Kernighan, Church and Gale 1990 count each pair of letters in a corpus of typing errors; no such corpus of a
free licence is at hand, so the shares below are estimates that keep the order of these papers' findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from string import ascii_lowercase
from typing import Final

LEFT_OUT: Final = 0.40
PUT_IN: Final = 0.25
CHANGED: Final = 0.20
SWAPPED: Final = 0.15

FIRST: Final = 0.1
"""How often an edit is at the first letter, beside one at each other letter."""
SECOND_OF_TWO: Final = 2.0
"""How often the second of two equal letters is left out, beside any other letter."""

_DOUBLES, _SLIPS, _ANY = 0.5, 0.3, 0.2
"""Of letters put in: shares of a letter typed twice, of a neighbouring key struck with it, of any other."""
_NEAR, _VOWEL, _OTHER = 0.5, 0.3, 0.2
"""Of letters changed: shares of neighbouring keys, of vowels for vowels, of any other."""

_VOWELS: Final = "aeiou"
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _neighbours() -> dict[str, str]:
    """Return letter → the letters on the keys around it, each row half a key to the right of the one above."""
    place = {letter: (row, column + row / 2) for row, keys in enumerate(_ROWS) for column, letter in enumerate(keys)}
    return {
        letter: "".join(
            other
            for other, (row, column) in place.items()
            if other != letter and abs(row - at[0]) <= 1 and abs(column - at[1]) <= 1
        )
        for letter, at in place.items()
    }


NEIGHBOURS: Final[Mapping[str, str]] = _neighbours()
"""Letter → the letters beside it on a keyboard of the order QWERTY."""


def meant(word: str, letters: str = ascii_lowercase) -> dict[str, float]:
    """Return every word that is one edit away → ``P(word | it)``, not the word itself.

    Args:
        letters: what words are made of.

    ``viza`` is ``visa`` with a change at the third of four letters, whose places weigh 0.1, 1, 1 and 1: ``z`` is one of
    the six neighbours of ``s``. It is ``via`` with a letter put in at the third of four places: ``z`` is one of the
    eight neighbours of ``i`` and ``a``.

    >>> words = meant("viza")
    >>> round(words["visa"], 5), round(0.20 / 3.1 * (0.5 / 6 + 0.2 / 25), 5)
    (0.00589, 0.00589)
    >>> round(words["via"], 5), round(0.25 / 3.1 * (0.3 / 8 + 0.2 / 26), 5)
    (0.00364, 0.00364)
    """
    likelihoods: dict[str, float] = {}
    length = len(word)
    shares = {size: _place_share(size) for size in (length - 1, length, length + 1)}
    for at in range(length + 1):
        before, after = word[:at], word[at:]
        weight = FIRST if at == 0 else 1.0
        likelihood = LEFT_OUT * weight * shares[length + 1]
        for letter in letters:  # that was left out here
            other = before + letter + after
            twice = SECOND_OF_TWO if before.endswith(letter) else 1.0
            likelihoods[other] = likelihoods.get(other, 0.0) + likelihood * twice
        if not after:
            break
        here, rest = after[0], after[1:]
        other = before + rest
        likelihood = PUT_IN * weight * shares[length] * _put_in(here, before[-1:], rest[:1])
        likelihoods[other] = likelihoods.get(other, 0.0) + likelihood
        for letter, share in _changes(here, letters):  # that was changed to this one
            other = before + letter + rest
            likelihoods[other] = likelihoods.get(other, 0.0) + CHANGED * weight * shares[length] * share
        if rest and rest[0] != here:
            other = before + rest[0] + here + rest[1:]
            likelihoods[other] = likelihoods.get(other, 0.0) + SWAPPED * weight * shares[length]
    return likelihoods


def _place_share(length: int) -> float:
    """Return the share of one place that is not the first."""
    return 1.0 / (max(length, 1) - 1 + FIRST)


def _put_in(letter: str, before: str, after: str) -> float:
    """Return how likely a letter that is put in between two others is this one."""
    if letter == before:
        return _DOUBLES
    if letter == after:  # the same word comes from leaving out the second of both
        return 0.0
    around = set(NEIGHBOURS.get(before, "") + NEIGHBOURS.get(after, ""))
    return (_SLIPS / len(around) if letter in around else 0.0) + _ANY / 26


@lru_cache(1024)
def _changes(written: str, letters: str) -> tuple[tuple[str, float], ...]:
    """Return the other letters that a letter may have been, each with how likely it is changed so."""
    return tuple((letter, _changed(letter, written)) for letter in letters if letter != written)


def _changed(meant_letter: str, written: str) -> float:
    """Return how likely a letter that is changed becomes this one."""
    near = NEIGHBOURS.get(meant_letter, "")
    likelihood = _OTHER / 25
    if written in near:
        likelihood += _NEAR / len(near)
    if written in _VOWELS and meant_letter in _VOWELS:
        likelihood += _VOWEL / (len(_VOWELS) - 1)
    return likelihood

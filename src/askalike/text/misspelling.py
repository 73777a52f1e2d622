"""What a misspelt word may have meant: the words that are one edit away.

Enters: a word, letters. Leaves: other words, known or not. May import: nothing of askalike.

Source: the edits are those of Damerau 1964 (Communications of the ACM): a letter left out, put in, changed, or two
neighbours turned round, which were more than four fifths of the misspellings that he saw. All words that are one edit
away are made, some 54 for each letter, and looked up: no index of known words is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase

__all__ = ["one_edit_away"]


def one_edit_away(word: str, letters: str = ascii_lowercase) -> Iterator[str]:
    """Yield every word that is one edit away, some of them twice; not the word itself.

    Args:
        letters: what is put in, or stands for another.

    >>> sorted(set(one_edit_away("ab", letters="bc")))
    ['a', 'abb', 'abc', 'ac', 'acb', 'b', 'ba', 'bab', 'bb', 'cab', 'cb']
    """
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        if after:
            yield before + after[1:]
        if len(after) > 1 and after[0] != after[1]:
            yield before + after[1] + after[0] + after[2:]
        for letter in letters:
            yield before + letter + after
            if after and letter != after[0]:
                yield before + letter + after[1:]

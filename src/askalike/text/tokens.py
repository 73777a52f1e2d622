"""Text to words: where words begin and end, and which are kept whole.

No word crosses white space, so a text is split there first and each piece is taken apart on its own; whoever prepares
many texts can remember what became of a piece.

Kept whole: addresses (``https://…``, ``www.…``), e-mail addresses, paths (``/etc/hosts``, ``~/.ssh``, ``C:\\Users``),
dotted names (``resolv.conf``, ``.bashrc``, ``.net``), versions and numbers (``22.04``, ``5.15.0-91``), codes
(``0x80070035``, ``E1234``, ``HTTP-404``), identifiers (``max_size``), ``c++``, ``c#``. A hyphen parts words unless the
token holds a digit. An ideograph, a Hiragana sign or a letter of Thai, Lao, Khmer or Burmese with its marks is a word
of its own, since such text has no spaces between words.
"""

from __future__ import annotations

import re
from functools import lru_cache

from askalike.text.characters import MARKS, normalised

_W = rf"[\w{MARKS}]"
_NAME = rf"{_W}++(?:[.\-]{_W}++)*+"
_PATH = rf"[\w{MARKS}.+@%~$\-]"

# Every alternative either stops after a bounded look ahead or consumes what it looked at (possessive ++), so the time
# grows with the length of the text only.
_TOKEN = re.compile(
    rf"""
    (?: [A-Za-z][A-Za-z0-9+.\-]{{0,15}}:// | [Ww]{{3}}\.(?=\w) ) [\w{MARKS}\-.~:/?\#@!$&*+,;=%]++   # web address
  | \w[\w.+\-]{{0,63}}@\w[\w\-]*+(?:\.[\w\-]++)++                                                   # e-mail address
  | (?<!\w)[A-Za-z]:[\\/]{_PATH}[\w{MARKS}.+@%~$\-\\/]*+                                            # drive and path
  | (?<![\w\\])\\\\\w[\w{MARKS}.$\-\\]*+                                                            # network share
  | (?<![\w/.~])(?: (?: ~ | \.{{1,2}} | %\w{{1,64}}% )(?=[/\\]) | \$[A-Za-z_]\w{{1,63}}(?=/) | (?=/) )
    (?:[/\\](?=\w|[.~%@$]\w){_PATH}++)++                                                            # path
  | (?<!\w)[A-Za-z]\w{{0,15}}\+\+(?:\d\d)?(?![\w+])                                                 # c++, c++17
  | (?<!\w)[A-Za-z]\#(?![\w\#])                                                                     # c#
  | (?<![\w.])\.[A-Za-z]{_NAME}                                                                     # .net, .bashrc
  | (?<![\w,])\d{{1,3}}(?:,\d{{3}})++(?:\.\d++)?(?![\w,])                                           # 1,000.5
  | (?=\w){_W}++(?:'(?=\w){_W}++)++(?![.\-]\w)                                                      # don't
  | (?=\w){_NAME}
    """,
    re.VERBOSE,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_UNSPACED = (
    "\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Hiragana, ideographs
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
)
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_UNSPACED_WORDS = re.compile(f"[{_UNSPACED}][{MARKS}]*|[^{_UNSPACED}]+")
_KATAKANA_END = re.compile("(?<=[\u30a1-\u30fc]{2})\u30fc$")
_SPECIAL = re.compile(r"[^\w']")
_LETTER = re.compile(r"[^\W_]")  # or a digit
_TRAILING = ".,:;!?*_'-$&=~+/\\"

_COMPOUND = re.compile(r"[./\\@:\-_+#%&=?~$!*,;]")
_SEPARATORS = re.compile(rf"[^\w{MARKS}.\-]+")
_VERSION = re.compile(r"v?\d+(?:\.\d+)+")
_ATOM = re.compile(rf"(?<![^\W_])v?\d+(?:\.\d+)+|(?=[^\W_])[^\W_](?:[^\W_]|[{MARKS}])*")
_PLUS = re.compile(r"(\w+\+\+)\d*|\w#")


def surfaces(piece: str) -> list[str]:
    """Return the tokens of ``piece`` as it writes them.

    Args:
        piece: text without white space, in the form that ``characters.normalised`` gives.

    >>> surfaces("(see:/etc/hosts,5.15.0-91)")
    ['see', '/etc/hosts', '5.15.0-91']
    """
    if piece.isalnum() and (piece.isascii() or not _IS_UNSPACED.search(piece)):
        return [piece]
    pieces: list[str] = []
    for token in _TOKEN.findall(piece):
        if _SPECIAL.search(token) or "_" in token:
            pieces.extend(_cut(token))
        else:
            pieces.append(token)
    if not piece.isascii() and _IS_UNSPACED.search(piece):
        return [word for token in pieces for word in _UNSPACED_WORDS.findall(token) if _LETTER.search(word)]
    return pieces


def _cut(token: str) -> list[str]:
    """Return ``token`` without the punctuation around it, in parts where a hyphen joins words only."""
    if token[0] not in "/\\~.$%":
        token = token.lstrip("_")
    if _PLUS.fullmatch(token) is None:
        token = token.rstrip(_TRAILING)
    is_name = re.fullmatch(_NAME, token) is not None
    if is_name and "-" in token and not any(character.isdigit() for character in token):
        return [part for name in token.split("-") if (part := name.strip("_"))]
    return [token] if _LETTER.search(token) else []


def word_of(surface: str) -> str:
    """Return the one form of a token: case folded, ``1,000`` as ``1000``, ``U.S.A`` as ``usa``.

    The dot that folding the Turkish ``İ`` would leave over the ``i`` is dropped, as is the long mark at the end of a
    word of Katakana, which some leave out.
    """
    if surface.isascii():
        word = surface.lower()
        if "," in word and _THOUSANDS.fullmatch(word):
            return word.replace(",", "")
    else:
        word = normalised(surface.casefold().replace("i\u0307", "i")).strip("'")
        word = _KATAKANA_END.sub("", word)
    if "." in word and _INITIALS.fullmatch(word):
        return word.replace(".", "")
    return word


@lru_cache(maxsize=1 << 16)
def _words_of_piece(piece: str) -> tuple[str, ...]:
    return tuple(map(word_of, surfaces(normalised(piece))))


_LONGEST_REMEMBERED = 64


def words(text: str) -> list[str]:
    """Return the words of ``text`` in order, in NFKC form and case folded.

    >>> words("Can't mount 22.04 on C++: see /etc/fstab (error 0x80070035)!")
    ["can't", 'mount', '22.04', 'on', 'c++', 'see', '/etc/fstab', 'error', '0x80070035']
    """
    pieces: list[str] = []
    for piece in text.split():
        if len(piece) <= _LONGEST_REMEMBERED:
            pieces.extend(_words_of_piece(piece))
        else:
            pieces.extend(map(word_of, surfaces(normalised(piece))))
    return pieces


def is_compound(word: str) -> bool:
    """Return whether a word holds punctuation other than an apostrophe, so that it has parts."""
    return _COMPOUND.search(word) is not None


def parts(word: str) -> list[str]:
    """Return what a word that was kept whole is made of: components first named whole, then their words.

    A scheme and ``www.`` are left out; versions stay whole, and ``v1.2`` has the part ``1.2``, ``c++17`` ``c++``.

    >>> parts("/etc/resolv.conf")
    ['etc', 'resolv.conf', 'resolv', 'conf']
    >>> parts("https://www.example.org/a-guide")
    ['example.org', 'example', 'org', 'a-guide', 'a', 'guide']
    """
    plus = _PLUS.fullmatch(word)
    if plus:
        return [plus[1]] if plus[1] and plus[1] != word else []
    scheme, separator, rest = word.partition("://")
    components = _SEPARATORS.split(rest if separator else scheme)
    made_of: list[str] = []
    for component in components:
        name = component.removeprefix("www.").strip("-").rstrip(".")
        if not name or _VERSION.fullmatch(name):
            made_of += [name, name.removeprefix("v")]
            continue
        atoms = _ATOM.findall(name)
        if atoms and atoms != [name]:
            made_of.append(name)
        made_of.extend(atoms)
    return [part for part in dict.fromkeys(made_of) if part and part != word]

"""The rows of the tables as data: which system, over which text, trained how.

Enters: nothing. Leaves: ``Row`` values. May import: encode's config, errors, its own folder.

Source: Lei et al. 2016, tables 2, 4, 5 and section 5; Joshi 2016, tables 7.1 to 7.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from askalike.errors import SettingError
from askalike.experiments.lei2016.reported import REPORTED, Figure
from askalike.models.encoders.settings import EncoderConfig, Kind, Pooling, Reads

__all__ = ["COMPARED", "ROWS", "Row", "chosen_rows"]

WORD_DIMENSIONS: Final = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Args:
        id: its name on the command line and in files.
        system: what is compared: "bm25", "tfidf", "svm", or the kind of an encoder.
        scorer: of tfidf, the name of the scorer in ``SCORERS``; else "".
        reads: what of a question is looked at.
        encoder: of an encoder, its sizes and pooling; else None.
        is_pretrained: whether an encoder-decoder was trained on all texts before.
        about: how it is run, in a few words.
        reported: measure → figure on AskUbuntu's test set, where one is known.
    """

    id: str
    system: str
    scorer: str = ""
    reads: Reads = "title and body"
    encoder: EncoderConfig | None = None
    is_pretrained: bool = False
    about: str = ""
    reported: Mapping[str, Figure] = field(default_factory=dict)

    @property
    def pooling(self) -> str:
        """How an encoder's states become one vector, "" for baselines."""
        return self.encoder.pooling if self.encoder else ""


def _encoder(
    kind: Kind, pooling: Pooling, reads: Reads = "title and body", *, is_pretrained: bool = False, name: str = ""
) -> Row:
    """Return an encoder's row; sizes give the kinds about the same number of parameters (400,800 to 424,320)."""
    hidden, order = {"rcnn": (400, 2), "lstm": (240, 2), "gru": (280, 2), "cnn": (667, 3)}[kind]
    words = [kind, name or pooling, "title" if reads == "title" else "", "pretrained" if is_pretrained else ""]
    identifier = "-".join(word for word in words if word)
    return Row(
        id=identifier,
        system=kind,
        reads=reads,
        encoder=EncoderConfig(kind, WORD_DIMENSIONS, hidden, order, pooling=pooling),
        is_pretrained=is_pretrained,
        about="pre-training on all texts, then max-margin on marked pairs" if is_pretrained else "max-margin",
        reported=REPORTED.get(identifier, {}),
    )


def _words(identifier: str, scorer: str, about: str, reads: Reads = "title and body") -> Row:
    return Row(identifier, "tfidf", scorer, reads, about=about, reported=REPORTED.get(identifier, {}))


_ALL: Final[Sequence[Row]] = (
    Row("bm25", "bm25", about="the candidate search's own scores", reported=REPORTED["bm25"]),
    _words("tfidf", "tfidf", "words"),
    _words("tfidf-2", "tfidf-2", "n-grams of up to 2"),
    _words("tfidf-3", "tfidf-3", "n-grams of up to 3"),
    _words("tfidf-all-words", "tfidf-all-words", "words, stop words kept"),
    _words("tfidf-2-all-words", "tfidf-2-all-words", "n-grams of up to 2, stop words kept"),
    _words("tfidf-3-all-words", "tfidf-3-all-words", "n-grams of up to 3, stop words kept"),
    _words("tfidf-title", "tfidf", "words", "title"),
    Row("svm", "svm", about="linear ranking SVM over similarity measures", reported=REPORTED["svm"]),
    _encoder("cnn", "max"),
    _encoder("cnn", "normalised-mean", name="mean"),
    _encoder("lstm", "last"),
    _encoder("lstm", "normalised-mean", name="mean"),
    _encoder("gru", "last"),
    _encoder("gru", "normalised-mean", name="mean"),
    _encoder("rcnn", "last"),
    _encoder("rcnn", "normalised-mean", name="mean"),
    _encoder("rcnn", "mean", name="plain-mean"),
    _encoder("rcnn", "last", "title"),
    _encoder("rcnn", "normalised-mean", "title", name="mean"),
    _encoder("lstm", "last", is_pretrained=True),
    _encoder("gru", "last", is_pretrained=True),
    _encoder("rcnn", "last", is_pretrained=True),
)

ROWS: Final[Mapping[str, Row]] = {row.id: row for row in _ALL}
"""id → row, in the order of the table. "mean" is the mean of states that were brought to length 1, which the thesis
found better; "plain-mean" is the mean of the states as they are."""

COMPARED: Final[Sequence[tuple[str, str]]] = (
    ("rcnn-last", "lstm-last"),
    ("rcnn-last", "gru-last"),
    ("rcnn-mean", "lstm-mean"),
    ("rcnn-mean", "gru-mean"),
    ("rcnn-mean", "cnn-mean"),
    ("rcnn-last", "rcnn-mean"),
    ("rcnn-mean", "rcnn-plain-mean"),
    ("rcnn-last", "rcnn-last-title"),
    ("rcnn-mean", "rcnn-mean-title"),
    ("lstm-last-pretrained", "lstm-last"),
    ("gru-last-pretrained", "gru-last"),
    ("rcnn-last-pretrained", "rcnn-last"),
    ("rcnn-last-pretrained", "lstm-last-pretrained"),
    ("rcnn-last-pretrained", "gru-last-pretrained"),
    ("rcnn-last-pretrained", "bm25"),
)
"""What paper and thesis say of rows, in order: the RCNN beats others of its size, the last state beats the mean, states
brought to length 1 are better, bodies help, pre-training helps, and the best of all beats BM25."""


def chosen_rows(names: Iterable[str]) -> list[Row]:
    """Return the rows of these ids or systems, in the table's order; all when none is named.

    Raises:
        SettingError: no row has this id or system.

    >>> [row.id for row in chosen_rows(["svm", "gru"])]
    ['svm', 'gru-last', 'gru-mean', 'gru-last-pretrained']
    """
    wanted = list(names)
    for name in wanted:
        if name not in ROWS and not any(row.system == name for row in _ALL):
            systems = ", ".join(dict.fromkeys(row.system for row in _ALL))
            raise SettingError(
                f"there is no row {name!r}", f"expected a system ({systems}) or a row: {', '.join(ROWS)}"
            )
    return [row for row in _ALL if not wanted or row.id in wanted or row.system in wanted]

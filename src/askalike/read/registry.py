"""The one table of formats: a new reader is a file in this folder and a line here."""

from __future__ import annotations

from askalike.read.askubuntu import AskUbuntuReader
from askalike.read.beir import BeirReader
from askalike.read.discourse import DiscourseReader
from askalike.read.frame import Reader
from askalike.read.jsonl import JsonlReader
from askalike.read.pairs import PairsReader
from askalike.read.semeval import SemEvalReader
from askalike.read.stackexchange import StackExchangeReader
from askalike.read.table import TableReader
from askalike.read.yahoo import YahooReader
from askalike.read.yahoo_liveqa import YahooLiveQaReader
from askalike.read.yahoo_threads import YahooThreadsReader

_ALL: tuple[Reader, ...] = (
    StackExchangeReader(),
    DiscourseReader(),
    SemEvalReader(),
    YahooReader(),
    YahooLiveQaReader(),
    YahooThreadsReader(),
    AskUbuntuReader(),
    BeirReader(),
    JsonlReader(),
    TableReader(),
    PairsReader(),
)

READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}

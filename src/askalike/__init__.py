"""askalike finds the questions in a community forum that ask the same thing, so that good answers are reused.

::

    from askalike import Forum

    forum = Forum.create("my.forum")
    forum.load("dump/")
    for hit in forum.similar("Wifi drops every evening", k=5):
        print(hit.score, hit.question.title)

The names here are the public ones; importing them loads neither torch nor a web framework.
"""

from askalike._version import __version__
from askalike.errors import AskalikeError
from askalike.forum import Forum, ForumSettings, ImportOptions, ImportReport, Info
from askalike.models.encoders.model import Model
from askalike.text.settings import TextSettings
from askalike.types import (
    Answer,
    Correction,
    Explanation,
    Filters,
    Group,
    Hit,
    Link,
    Match,
    Qrels,
    Query,
    Question,
    Run,
    SearchResult,
)

__all__ = [
    "Answer",
    "AskalikeError",
    "Correction",
    "Explanation",
    "Filters",
    "Forum",
    "ForumSettings",
    "Group",
    "Hit",
    "ImportOptions",
    "ImportReport",
    "Info",
    "Link",
    "Match",
    "Model",
    "Qrels",
    "Query",
    "Question",
    "Run",
    "SearchResult",
    "TextSettings",
    "__version__",
]

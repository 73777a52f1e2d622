"""askalike finds the questions in a community forum that ask the same thing, so that good answers are reused.

::

    from askalike import Forum

    forum = Forum.create("my.forum")
    forum.load("dump/")
    for hit in forum.similar("Wifi drops every evening", k=5):
        print(hit.score, hit.question.title)

The names here are the public ones. Each is loaded when it is first used, and none loads torch or a web framework.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from askalike._version import __version__

if TYPE_CHECKING:
    from askalike.deduplication import Deduplication, Removal, deduplicate
    from askalike.errors import AskalikeError
    from askalike.forum import Forum, ForumSettings, ImportOptions, ImportReport, Info
    from askalike.models.encoders.model import Model
    from askalike.text.settings import TextSettings
    from askalike.types import (
        Answer,
        Correction,
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
    "Deduplication",
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
    "Removal",
    "Run",
    "SearchResult",
    "TextSettings",
    "__version__",
    "deduplicate",
]

_MODULES = {
    "AskalikeError": "errors",
    **dict.fromkeys(("Deduplication", "Removal", "deduplicate"), "deduplication"),
    **dict.fromkeys(("Forum", "ForumSettings", "ImportOptions", "ImportReport", "Info"), "forum"),
    "Model": "models.encoders.model",
    "TextSettings": "text.settings",
}
"""Public name → its module, but for those of ``types``."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'types')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

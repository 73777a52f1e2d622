"""How a forum is searched, and the text settings that are stored with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from askalike.errors import ForumVersionError, SettingError
from askalike.index.words import FieldWeights
from askalike.search import SearchSettings
from askalike.store import Store
from askalike.text.settings import TextSettings


@dataclass(frozen=True, slots=True)
class ForumSettings:
    """How a forum is searched; the text settings are stored with it, the rest may change from search to search.

    Args:
        fields: how much a match in the title or the text counts.
        search: rankers and what they are tuned by.
        has_vectors: False searches and keeps words alone: no model is read, and vectors that are there fall behind
            until the forum is opened with them again.
    """

    fields: FieldWeights = field(default_factory=FieldWeights)
    search: SearchSettings = field(default_factory=SearchSettings)
    has_vectors: bool = True


def stored_text_settings(store: Store) -> TextSettings:
    """Return the text settings that were stored when the forum was made.

    Raises:
        ForumVersionError: they are not understood.
    """
    try:
        return TextSettings.from_json({name: json.loads(value) for name, value in store.settings().items()})
    except (SettingError, ValueError) as error:
        raise ForumVersionError(
            f"the settings stored in {store.name} are not understood: {error}", "use the version that wrote it"
        ) from error

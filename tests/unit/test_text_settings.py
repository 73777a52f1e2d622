"""The choices of how text becomes terms are checked at construction and survive storing."""

from __future__ import annotations

import json

import pytest

from askalike.errors import SettingError
from askalike.text.analyzer import Analyzer
from askalike.text.settings import LANGUAGES, NO_LANGUAGE, TextSettings


def test_settings_survive_json() -> None:
    settings = TextSettings(language="german", with_code=False, stem=False, stop_words=False)
    assert TextSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_absent_settings_take_their_default() -> None:
    assert TextSettings.from_json({}) == TextSettings()


def test_an_unknown_language_is_refused_with_the_choices() -> None:
    with pytest.raises(SettingError) as caught:
        TextSettings(language="klingon")
    assert "'klingon'" in caught.value.message
    assert all(language in caught.value.message for language in LANGUAGES)


def test_any_other_language_is_read_as_it_is_written() -> None:
    with pytest.raises(SettingError) as caught:
        TextSettings(language="japanese")
    assert NO_LANGUAGE in caught.value.hint
    terms = Analyzer(TextSettings.from_json({"language": NO_LANGUAGE})).terms
    assert terms("The routers, 停電 mounting") == ["the", "routers", "停", "電", "mounting"]


@pytest.mark.parametrize("name", ["with_code", "stem", "stop_words"])
def test_a_switch_that_is_no_boolean_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match=name):
        TextSettings.from_json({name: "yes"})


def test_a_name_that_is_no_setting_is_refused() -> None:
    with pytest.raises(SettingError, match="stemming"):
        TextSettings.from_json({"stemming": True})

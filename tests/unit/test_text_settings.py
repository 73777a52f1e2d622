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


def test_an_unknown_language_is_refused_with_the_choices() -> None:
    with pytest.raises(SettingError) as caught:
        TextSettings(language="klingon")
    assert "'klingon'" in caught.value.message
    assert all(language in caught.value.message for language in LANGUAGES)


@pytest.mark.parametrize(
    ("code", "stored"),
    [
        *((code, "german") for code in ("de", "DE", "de-AT", "de_AT.UTF-8", "German")),
        *(("pt-BR", "portuguese"), ("nb", "norwegian"), ("nn-NO", "norwegian"), (" es ", "spanish"), ("None", "none")),
    ],
)
def test_a_language_may_be_given_by_code_or_tag_and_is_stored_under_its_name(code: str, stored: str) -> None:
    assert TextSettings(language=code).language == stored
    assert TextSettings.from_json({"language": code}).to_json()["language"] == stored


@pytest.mark.parametrize("code", ["ja", "zh-Hant", "klingon", "d", "", "-de"])
def test_a_code_of_a_language_without_a_stemmer_is_refused_as_it_was_given(code: str) -> None:
    with pytest.raises(SettingError, match=f"text language '{code}'"):
        TextSettings(language=code)


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

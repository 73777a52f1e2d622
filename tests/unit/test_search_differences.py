"""What keeps two nearly equal titles from asking the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike.search.differences import DIFFERENCES, differences
from askalike.search.texts import reader_of
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings

ANALYZER = Analyzer(TextSettings())


def found(first: str, second: str, body: str = "") -> list[str]:
    """Return the names of what differs; the second question may have a body."""
    read = reader_of(ANALYZER).read
    texts = read(first, "", "plain").text, read(second, body, "plain").text
    values = differences(*texts, ANALYZER, 1.0)
    assert values == differences(*texts[::-1], ANALYZER, 1.0), "a difference has no direction"
    return [name for name, value in zip(DIFFERENCES, values, strict=True) if value]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Install the 5.15 kernel", "Install the 6.1 kernel"),
        ("Oven shows F3", "Oven shows F7"),
        ("Open thread, 3 March", "Open thread, 10 March"),
        ("What grows well in June", "What grows well in August"),
        ("Is this fine for two people?", "Is this fine for 6 people?"),
    ],
)
def test_numbers_codes_and_dates_that_neither_question_shares(first: str, second: str) -> None:
    assert found(first, second) == ["numbers"]


def test_a_number_that_the_other_question_has_elsewhere_is_no_difference() -> None:
    assert found("Boiler error 27", "Boiler error") == []
    assert found("Boiler error 27", "Boiler error on model 8") == ["numbers"]
    assert found("Boiler error 27", "Boiler error on model 8", "The display says 27.") == []
    assert found("Flat for 900 euros", "Flat under 900€ a month") == []
    assert found("A table for two", "A table for 2") == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Why does the heating start?", "Why does the heating not start?"),
        ("Tyres I can mount myself", "Tyres I can't mount myself"),
        ("Cake without sugar", "Cake, sugar, how much?"),
    ],
)
def test_one_title_is_negated(first: str, second: str) -> None:
    assert "negation" in found(first, second)


def test_titles_that_differ_in_a_date_alone_are_near_each_other_however_rare_the_date_is() -> None:
    read = reader_of(ANALYZER).read
    first, second, other = (
        read(title, "", "plain").text
        for title in ("2021.3.9 office hours", "2021.4.13 office hours", "2021.4.13 release of the plugin")
    )
    assert differences(first, second, ANALYZER, 0.2)[0] == 1.0
    assert differences(first, other, ANALYZER, 0.2)[0] == 0.0


def test_two_negations_or_another_way_to_deny_are_no_difference() -> None:
    assert found("Drill doesn't spin", "Drill not spinning") == []
    assert found("Son won't brush his teeth", "Son refuses to brush his teeth") == []
    assert found("Is thin ice safe or not?", "Is thin ice safe") == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Add a page to a PDF", "Remove a page from a PDF"),
        ("Turn on the sirens", "Turn off the sirens"),
        ("What to eat before a race", "What to eat after a race"),
        ("Cheapest train to Ghent", "Fastest train to Ghent"),
        ("Lock the screen", "Unlock the screen"),
        ("Reversible jackets", "Irreversible jackets"),
        ("My team will lose the game", "My team lost the game yesterday"),
    ],
)
def test_opposites_superlatives_and_tenses(first: str, second: str) -> None:
    assert "opposites" in found(first, second)


def test_a_word_with_its_opposite_beside_it_is_no_difference() -> None:
    assert found("Import or export a profile", "Export or import a profile") == []
    assert found("Light on the left or right", "Right or left light") == []


def test_names_that_neither_question_shares() -> None:
    assert found("How do I reach Bruges by night train?", "How do I reach Turin by night train?") == ["names"]
    assert found("Reach Bruges by train", "How do I reach it by train?", "I mean Bruges.") == []
    assert found("Reach Bruges By Night Train", "Reach Turin By Night Train") == []  # in capitals nothing stands out
    assert found("reach bruges by train", "reach turin by train") == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Move mails from Outlook to Thunderbird", "Move mails from Thunderbird to Outlook"),
        ("Convert litres into gallons", "Convert gallons into litres"),
        ("Dutch teacher learning Welsh", "Welsh teacher learning Dutch"),
        ("Ferry from Kiel", "Ferry to Kiel"),
        ("Moving from the US to Peru", "Moving to the US from Peru"),
    ],
)
def test_what_has_changed_places(first: str, second: str) -> None:
    assert "direction" in found(first, second)


def test_another_order_alone_is_no_difference() -> None:
    assert found("Difference of jam and jelly", "Jelly and jam: the difference") == []
    assert found("Which is better, tea or coffee", "Coffee or tea, which is better") == []
    assert found("Lenses or mirrors in telescopes?", "Mirrors or lenses in telescopes?") == []
    assert found("Clean lenses and mirrors in summer", "Clean mirrors and lenses in summer") == []
    assert found("Telescopes with reflectors and refractors", "Telescopes with refractors and reflectors") == []
    assert found("How often are gutters cleaned?", "Gutters: how often are they cleaned") == []


@given(st.lists(st.text("aB 1.é'-", max_size=40), min_size=2, max_size=2))
def test_any_titles_can_be_compared_and_a_title_has_no_difference_from_itself(titles: list[str]) -> None:
    found(*titles)
    assert found(titles[0], titles[0]) == []

"""Misspelt words of a query are read as what was probably meant; what is no prose, or may be right, never changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from string import ascii_lowercase

import pytest

from askalike.search.correction import MOST_WORDS, PROBES, TYPOS, KnownWords, corrected
from askalike.search.engine import TermStatistics
from askalike.search.query import TermCounts
from askalike.text import misspelling
from askalike.text.analyzer import Analyzer
from askalike.text.misspelling import meant
from askalike.text.settings import TextSettings
from askalike.types import Markup, Query

ANALYZER = Analyzer(TextSettings())
READ = (
    *("segmentation", "router", "laptop", "rotor", "wifi", "printer", "restarts", "visa", "via", "drop", "night"),
    *("fiducials", "mouse", "moute"),
)
HELD = {"router": 9, "laptop": 5, "rotor": 3, "wifi": 7, "printer": 1, "restart": 4, "wlan": 2, "drop": 20, "night": 8}
TRAVEL = {"visa": 1_633, "via": 329, "china": 400, "need": 900, "made": 700, "mad": 4, "boot": 5, "row": 400}


KNOWN = KnownWords({word: rank for rank, word in enumerate(READ)}, ascii_lowercase)


class Held:
    """How many questions of a forum have a term."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        return TermStatistics(5_000, {term: self._counts[term] for term in terms if self._counts.get(term)})


def read(
    title: str, body: str = "", frequencies: Mapping[str, int] = HELD, markup: Markup = "plain"
) -> tuple[Query, list[str]]:
    written = ANALYZER.prepare(title, body, markup)
    counts = TermCounts(Held(frequencies))  # type: ignore[arg-type]  # no more is asked for
    query, corrections = corrected(Query(title, body, markup), written, ANALYZER, lambda: KNOWN, counts)
    return query, [f"{correction.written}>{correction.meant}" for correction in corrections]


def test_a_word_that_nobody_knows_is_read_as_what_was_probably_meant() -> None:
    query, corrections = read("My roter and lapotp")  # roter is as near to rotor as to router
    assert (query.title, corrections) == ("My router and laptop", ["roter>router", "lapotp>laptop"])


def test_how_many_questions_have_a_word_decides_and_not_its_rank() -> None:
    assert read("Do I need a viza for China", frequencies=TRAVEL)[1] == ["viza>visa"]
    assert read("Do I need a viza for China", frequencies={**TRAVEL, "visa": 20, "via": 5_000})[1] == ["viza>via"]
    fiducials = {"fiduci": 300}  # a stem of the forum's own words
    assert read("place fiducails", frequencies=fiducials)[1] == ["fiducails>fiducials"]


def test_the_likelihood_of_an_edit_decides_between_words_as_frequent() -> None:
    assert read("a mouze", frequencies={"mous": 1_500, "mout": 1_500})[1] == [
        "mouze>mouse"
    ]  # z is beside s on the keyboard
    assert read("a mouye", frequencies={"mous": 1_500, "mout": 1_500})[1] == ["mouye>moute"]  # and y beside t


def test_a_misspelling_that_the_archive_holds_too_is_corrected_where_the_right_word_is_much_more_frequent() -> None:
    frequencies = {"segmentaton": 1, "segment": 4_000}
    assert TYPOS * 4_000 * meant("segmentaton")["segmentation"] == pytest.approx(1.44, abs=0.01)
    assert read("segmentaton of a liver", frequencies=frequencies)[1] == ["segmentaton>segmentation"]
    assert read("segmentaton of a liver", frequencies={**frequencies, "segment": 400})[1] == []
    assert read("segmentaton of a liver", frequencies={**frequencies, "segmentaton": 8})[1] == []


def test_the_body_is_corrected_too_and_keeps_the_rest_of_what_was_written() -> None:
    query, corrections = read("Wifi", "<p>The <b>Roter</b>, roter-7 &amp; restrats.</p>", markup="html")
    assert query.body == "<p>The <b>router</b>, roter-7 &amp; restarts.</p>"
    assert corrections == ["roter>router", "restrats>restarts"]


@pytest.mark.parametrize(
    ("body", "markup", "meant_body"),
    [
        (
            "<p id='roter'>A roter <code>roter</code> <a href='//x/roter'>it</a></p><pre>roter\n\nroter</pre>roter",
            "html",
            "<p id='roter'>A router <code>roter</code> <a href='//x/roter'>it</a></p><pre>roter\n\nroter</pre>router",
        ),
        (
            "A roter `roter` ``a ` roter`` [it](http://x/roter)\n\n    roter\n```\nroter\n```\nroter",
            "markdown",
            "A router `roter` ``a ` roter`` [it](http://x/roter)\n\n    roter\n```\nroter\n```\nrouter",
        ),
    ],
)
def test_code_tags_and_addresses_keep_the_word_that_is_corrected_beside_them(
    body: str, markup: Markup, meant_body: str
) -> None:
    assert read("Wifi drops", body, markup=markup)[0].body == meant_body


@pytest.mark.parametrize(
    ("title", "why"),
    [
        ("wlan", "the forum knows it"),
        ("rotor", "the forum's words have it, though router is more frequent"),
        ("tgi", "too short"),
        ("lapotpp", "two edits away"),
        ("lapt0p", "not all letters"),
        ("prnter", "a single question has what may have been meant"),
        ("/etc/roter.conf", "a path"),
        ("https://roter", "an address"),
        ("myRoter", "an identifier"),
        ("roter()", "a call"),
        ("ROTER", "an abbreviation"),
        ("roter's", "a name"),
    ],
)
def test_what_is_known_short_far_or_no_word_stays(title: str, why: str) -> None:
    assert read(title) == (Query(title, "", "plain"), []), why


def test_a_capital_within_a_sentence_makes_a_name_likelier() -> None:
    frequencies = {"visa": 90, "wifi": 7}
    assert read("wifi vsia", frequencies=frequencies)[1] == read("Vsia", frequencies=frequencies)[1] == ["vsia>visa"]
    assert read("wifi Vsia", frequencies=frequencies)[1] == []
    assert read("wifi. Vsia", frequencies=frequencies)[1] == ["vsia>visa"]


def test_a_near_word_that_the_forum_lacks_is_passed_over() -> None:
    assert read("roter", frequencies={**HELD, "router": 0, "rotor": 60})[1] == ["roter>rotor"]


LOG = """\
[    0.000000] BIOS-e820: mem 0x00000000-0x9fbff usable
ACPI: madt table rev 3 kvmguest
mtrr default type uncachable ranges enabled viza
smpboot hotplug cpus allowing cmdline
"""


def test_a_pasted_log_stays_and_the_question_above_it_is_corrected() -> None:
    query, corrections = read("viza at boot", LOG, frequencies=TRAVEL)
    assert (query.title, query.body, corrections) == ("visa at boot", LOG, ["viza>visa"])


def test_nothing_is_corrected_where_many_words_are_unknown() -> None:
    unknown = " ".join(f"x{letter * 4}a" for letter in "bcdfghjkl")
    assert read(f"{unknown} roter")[1] == []
    assert read("roter", f"night wifi drop {unknown}. lapotp")[1] == ["roter>router"]


def test_a_query_of_which_nearly_every_word_is_misspelt_is_no_log() -> None:
    frequencies = {term: 10 * count for term, count in HELD.items()}
    assert (
        len(read("wif drpo nigth rouetr lapotp restrats", frequencies=frequencies)[1]) == 5
    )  # and one that is too short
    assert read("mtrr rouetr madt xbbbba lapotp", frequencies=frequencies)[1] == []


@pytest.mark.parametrize(("word", "most"), [("x{}ubabo", PROBES), ("rou{}ter", MOST_WORDS)])
def test_only_so_many_words_are_looked_at(word: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def meant(written: str, letters: str) -> dict[str, float]:
        looked_at.append(written)
        return misspelling.meant(written, letters)

    monkeypatch.setattr("askalike.search.correction.meant", meant)
    letters = "abcdefghijklmnopqrstuvwxyz"
    misspelt = [word.format(letter) for letter in letters] + [f"{letter}router" for letter in letters]
    misspelt += [f"router{letter}" for letter in letters]
    text = "\n".join(f"{word} wifi drops at night" for word in misspelt)
    read("wifi", text, frequencies={**HELD, "router": 900})
    assert len(looked_at) == most


@pytest.mark.parametrize(
    "body",
    ["." * 10_000 + "a", "<code" * 2_000, "`" * 10_000, "](" * 5_000, "<" * 10_000, "'" * 10_000, "a-" * 5_000],
    ids=["dots", "tags", "ticks", "links", "angles", "quotes", "hyphens"],
)
@pytest.mark.parametrize("markup", ["plain", "html", "markdown"])
def test_hostile_bodies_stay_as_they_are(body: str, markup: Markup) -> None:
    assert read("Wifi", body, markup=markup)[0].body == body


def test_one_edit_away_are_all_words_of_the_four_edits_and_never_the_word_itself() -> None:
    words = set(meant("aab", letters="ab"))
    left_out, swapped = {"ab", "aa"}, {"aba"}
    put_in = {"aaab", "baab", "abab", "aabb", "aaba"}
    changed = {"bab", "abb", "aaa"}
    assert words == left_out | swapped | put_in | changed


@pytest.mark.parametrize(
    ("word", "likelier", "less"),
    [
        ("routter", "router", "rotter"),  # a letter twice, rather than another one changed
        ("commitee", "committee", "committe"),
        ("visq", "visa", "visp"),  # a key beside the one that was meant
        ("seperate", "separate", "sepxrate"),  # a vowel for a vowel
        ("ocurred", "occurred", "odcurred"),  # one of two is lost easily
        ("visit", "visits", "rvisit"),  # seldom at the first letter
    ],
)
def test_edits_that_people_make_are_likelier(word: str, likelier: str, less: str) -> None:
    probabilities = meant(word)
    assert probabilities.get(likelier, 0.0) >= probabilities.get(less, 0.0)

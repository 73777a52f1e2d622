"""Groups that hold together: complete linkage by hand; people's word before any probability; in step."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike import Answer, Forum, Link, Question
from askalike.errors import SettingError
from askalike.forum import groups as groups_module
from askalike.forum.groups import EvidenceReader, differ_in_names
from askalike.forum.linkage import Evidence, Linkage, lacking, with_link
from askalike.store.pairs import Pair

LONG = 60.0


def linked(evidence: Evidence, minimum: float = 0.5) -> list[tuple[int, ...]]:
    return [node.nums for node in Linkage(evidence, minimum).nodes]


# -- the linkage, by hand ----------------------------------------------------------------------------------------------


def test_a_chain_of_neighbours_is_no_group() -> None:
    chain = [Pair(num, num + 1, 0.9 - num / 100) for num in range(1, 8)]
    assert linked(Evidence(chain)) == [(1, 2), (3, 4), (5, 6), (7, 8)]


def test_the_two_groups_whose_least_likely_pair_is_likeliest_join_first() -> None:
    # {1, 2} joins at .9; then {1, 2} + 3 at min(.8, .6) = .6 comes before 3 + 4 at .55, which is then refused
    pairs = [Pair(1, 2, 0.9), Pair(1, 3, 0.8), Pair(2, 3, 0.6), Pair(3, 4, 0.55)]
    (node,) = Linkage(Evidence(pairs), 0.5).nodes
    assert (node.nums, node.height, node.weakest) == ((1, 2, 3), 0.6, (2, 3))
    assert [group.nums for group in node.cut(0.7)] == [(1, 2)]
    assert list(node.cut(0.95)) == []


def test_what_people_say_of_a_pair_joins_it_however_unlikely_and_needs_all_its_pairs_to_grow() -> None:
    assert linked(Evidence([Pair(2, 3, 0.9)], same=[(1, 2)])) == [(1, 2)]  # nobody compared 1 and 3
    assert linked(Evidence([Pair(2, 3, 0.9), Pair(1, 3, 0.7)], same=[(1, 2)])) == [(1, 2, 3)]


def test_what_was_judged_different_never_joins_however_likely() -> None:
    pairs = [Pair(1, 2, 0.99), Pair(1, 3, 0.9), Pair(2, 3, 0.9)]
    assert linked(Evidence(pairs, different=[(1, 2)])) == [(1, 3)]


def test_where_people_contradict_each_other_what_is_different_stays_so() -> None:
    said = Evidence(same=[(1, 2), (2, 3), (3, 4)], different=[(1, 3)])
    assert linked(said) == [(1, 2), (3, 4)]


def test_copies_join_first_and_the_first_of_them_speaks_for_all() -> None:
    evidence = Evidence([Pair(1, 9, 0.8)], texts=[[1, 2, 3]])
    assert linked(evidence) == [(1, 2, 3, 9)]
    assert linked(Evidence([Pair(1, 9, 0.8)], texts=[[1, 2, 3]], different=[(2, 9)])) == [(1, 2, 3)]
    assert linked(Evidence(texts=[[1, 2, 3]], different=[(1, 2), (1, 3)])) == [(2, 3)]


def test_linked_pairs_that_nobody_compared_are_lacking() -> None:
    assert lacking(Evidence(linked=[(1, 2)]), 0.5) == [(1, 2)]
    assert lacking(Evidence([Pair(1, 2, 0.01)], linked=[(1, 2)]), 0.5) == []
    assert lacking(Evidence(linked=[(1, 2)], different=[(1, 2)]), 0.5) == []


def test_only_pairs_that_alone_keep_groups_apart_are_lacking() -> None:
    assert lacking(Evidence([Pair(1, 2, 0.9), Pair(3, 4, 0.9), Pair(1, 3, 0.7)]), 0.5) == [(1, 4), (2, 3), (2, 4)]
    assert lacking(Evidence([Pair(1, 2, 0.9), Pair(3, 4, 0.9), Pair(1, 3, 0.7), Pair(2, 4, 0.2)]), 0.5) == []
    assert lacking(Evidence([Pair(1, 2, 0.9), Pair(2, 3, 0.8)], different=[(1, 3)]), 0.5) == []


numbers = st.integers(0, 11)
ends = st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1])


@given(
    st.dictionaries(ends, st.floats(0.3, 1.0), max_size=50),
    st.lists(ends, max_size=6),
    st.lists(ends, max_size=6),
    st.floats(0.5, 1.0),
)
def test_no_group_holds_what_is_different_and_every_pair_is_likely_or_joined_by_people(
    scores: dict[tuple[int, int], float], same: list[tuple[int, int]], different: list[tuple[int, int]], minimum: float
) -> None:
    pairs = [Pair(first, second, score) for (first, second), score in scores.items()]
    nodes = [group for node in Linkage(Evidence(pairs, same, different), 0.5).nodes for group in node.cut(minimum)]
    joined = Linkage(Evidence([], same, different), 0.5).nodes
    by_people = {pair for node in joined for pair in combinations(node.nums, 2)}
    within = {pair for node in nodes for pair in combinations(node.nums, 2)}
    assert within.isdisjoint(different)
    assert by_people <= within
    assert all(scores.get(pair, 0.0) >= minimum for pair in within - by_people)
    placed = [num for node in nodes for num in node.nums]
    assert len(placed) == len(set(placed))
    for node in nodes:
        likely = [scores[pair] for pair in combinations(node.nums, 2) if pair not in by_people]
        assert node.height == min(likely, default=1.0)


# -- a forum's groups --------------------------------------------------------------------------------------------------


@pytest.fixture
def forum(tmp_path: Path, words_alone: None) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as forum:
        forum.add(
            [
                Question("a", "wifi drops every evening"),
                Question("b", "wifi drops every evening"),
                Question("c", "wifi drops every evening here"),
                Question("d", "printer prints blank pages"),
                Question("e", "printer prints blank pages only"),
            ]
        )
        yield forum


def groups(forum: Forum, minimum: float = 0.5) -> list[set[str]]:
    assert forum.pairs.advance(LONG) == 0
    return [set(group.members) for group in forum.groups.find(minimum)]


def test_groups_name_their_canonical_question_their_kind_and_their_weakest_pair(forum: Forum) -> None:
    forum.store.add_answers([Answer("1", "c", "Change the channel", is_accepted=True)])
    assert groups(forum) == [{"a", "b", "c"}, {"d", "e"}]
    wifi, printer = forum.groups.find(0.5)
    assert (wifi.canonical, wifi.members[0], wifi.kind) == ("c", "c", "same question")
    assert wifi.weakest is not None
    assert {wifi.weakest.first, wifi.weakest.second} == {"a", "c"}
    assert 0.5 <= wifi.weakest.probability < 1
    assert printer.canonical == "d"  # none is answered: the first
    above = (wifi.weakest.probability + 1) / 2
    assert [(group.members, group.kind, group.weakest) for group in forum.groups.find(above)] == [
        (("a", "b"), "same text", None)
    ]


def test_answers_votes_and_duplicates_choose_the_canonical_question_and_no_duplicate_is_it(forum: Forum) -> None:
    forum.put([Question("e", "printer prints blank pages only", score=6)])
    assert groups(forum)[-1] == {"d", "e"}
    assert forum.groups.find(0.5)[-1].canonical == "e"
    forum.store.put_links([Link("e", "d")])
    assert groups(forum)[-1] == {"d", "e"}
    printer = forum.groups.find(0.5)[-1]
    assert (printer.canonical, printer.kind) == ("d", "linked")
    assert printer.weakest is not None


def test_a_link_makes_its_pair_likelier_and_joins_neither_what_is_unlike_nor_two_duplicates_of_one(
    forum: Forum,
) -> None:
    (_, before) = (groups(forum), forum.groups.find(0.5)[-1].weakest)
    forum.add([Question("f", "printer jams"), Question("g", "scanner cuts pages"), Question("x", "unlike all others")])
    forum.store.put_links([Link(identifier, "d") for identifier in "efgx"])
    found_groups = groups(forum)
    assert not any({"f", "g"} <= group or "x" in group for group in found_groups)
    after = next(group for group in forum.groups.find(0.5) if {"d", "e"} <= set(group.members)).weakest
    assert before is not None
    assert after is not None
    assert (after.first, after.second) == (before.first, before.second)
    assert after.probability == pytest.approx(with_link(before.probability))


def test_a_linked_pair_is_kept_for_groups_and_shown_to_nobody(forum: Forum) -> None:
    groups(forum)
    numbers = forum.store.nums_by_id(["d", "e"])
    open_before = forum.pairs.store.count()
    forum.store.put_links([Link("e", "d")])
    assert {"d", "e"} in groups(forum)
    (pair,) = [pair for pair in forum.pairs.store.pairs_of([numbers["d"]]) if pair.second == numbers["e"]]
    assert not pair.is_open
    assert forum.pairs.store.count() == open_before - 1
    assert pair not in forum.pairs.store.page(0.0, 100)
    forum.store.delete_links([Link("e", "d")])
    groups(forum)
    assert forum.pairs.store.count() == open_before


def test_one_question_with_two_originals_does_not_join_them(forum: Forum) -> None:
    forum.add([Question("x", "unlike all others", "and of another kind")])
    forum.store.put_links([Link("x", "a"), Link("x", "d")])
    assert groups(forum) == [{"a", "b", "c"}, {"d", "e"}]


def test_what_people_linked_as_merely_related_is_not_joined_by_its_probability(forum: Forum) -> None:
    forum.store.put_links([Link("e", "d", "related")])
    assert groups(forum) == [{"a", "b", "c"}]
    forum.store.put_links([Link("e", "d")])
    assert groups(forum) == [{"a", "b", "c"}, {"d", "e"}]


def test_titles_that_ask_alike_of_different_things_are_not_joined_by_their_probability(forum: Forum) -> None:
    forum.add([Question(place, f"which ferry runs at night from Athens to {place}") for place in ("Crete", "Rhodes")])
    forum.add([Question("again", "which ferry runs at night to Crete from Athens")])
    found_groups = groups(forum)
    assert {"Crete", "again"} in found_groups
    assert not any("Rhodes" in group for group in found_groups)
    forum.judge("Rhodes", "Crete", "duplicate")
    assert any({"Rhodes", "Crete"} <= group for group in groups(forum))


def test_a_linked_pair_whose_titles_differ_in_a_name_is_a_group(forum: Forum) -> None:
    forum.add([Question(place, f"which ferry runs at night from Athens to {place}") for place in ("Crete", "Rhodes")])
    forum.add([Question("again", "which ferry runs at night to Crete from Athens")])
    forum.store.put_links([Link("Rhodes", "Crete")])
    assert {"Rhodes", "Crete"} in groups(forum)  # the other two questions ask of different things


def test_names_are_told_by_capitals_and_a_title_of_capitals_has_none() -> None:
    assert differ_in_names(
        "How do I mount a volume in Docker on a server", "How do I mount a volume in Podman on a server"
    )
    assert differ_in_names("Reminder: preparation meeting on Dec 12th", "preparation meeting tomorrow, 19 December")
    assert not differ_in_names("Reminder: meeting on Dec 12th", "The meeting on Dec 12th is tomorrow")
    assert not differ_in_names("how do i mount a volume in docker", "how do i mount a volume in podman")
    assert not differ_in_names("How To Mount A Volume In Docker", "How To Mount A Volume In Podman")
    assert not differ_in_names("Volume in Docker is lost after a restart", "Why did my data in Podman go")
    assert not differ_in_names("Do I need a visa for Iran", "Do I need a visa for Iran as a citizen of Spain")


def test_what_one_author_posts_again_after_weeks_is_announced_and_after_days_asked_again(forum: Forum) -> None:
    title, began = "call for papers on statistical shapes in medicine workshop lisbon", datetime(2020, 5, 1, tzinfo=UTC)

    def post(name: str, days: int, author: str, words: str = "") -> None:
        forum.add([Question(name, f"{title} {words}".strip(), author=author, created=began + timedelta(days))])

    post("first", 0, "eva")
    post("in vain", 3, "eva", "please")
    assert {"first", "in vain"} in groups(forum)
    post("next", 365, "eva", "now")
    assert not any("next" in group for group in groups(forum))
    forum.judge("next", "first", "duplicate")
    assert any({"next", "first"} <= group for group in groups(forum))
    forum.judge("next", "first", "withdrawn")
    forum.edit([Question("next", f"{title} now", author="jan", created=began + timedelta(365))])
    assert any({"next", "first"} <= group for group in groups(forum))


def test_authors_that_stand_for_many_people_announce_nothing(forum: Forum) -> None:
    for name, year in (("now", 2019), ("please", 2020)):
        created = datetime(year, 5, 1, tzinfo=UTC)
        forum.add(
            [
                Question(
                    name,
                    f"noise of heat pumps at night keeps neighbours awake {name}",
                    author="[deleted]",
                    created=created,
                )
            ]
        )
    assert {"now", "please"} in groups(forum)


def test_judgements_and_deletions_count_at_once(forum: Forum) -> None:
    assert groups(forum) == [{"a", "b", "c"}, {"d", "e"}]
    forum.judge("d", "e", "different")
    assert [set(group.members) for group in forum.groups.find(0.5)] == [{"a", "b", "c"}]
    forum.judge("e", "c", "duplicate")
    assert {"e", "c"} in [set(group.members) for group in forum.groups.find(0.5)]
    forum.judge("e", "c", "withdrawn")
    forum.delete("b")
    assert [set(group.members) for group in forum.groups.find(0.5)] == [{"a", "c"}]
    forum.judge("d", "e", "withdrawn")
    assert groups(forum) == [{"a", "c"}, {"d", "e"}]


def test_meetings_of_different_days_are_no_group(forum: Forum) -> None:
    days = [datetime(2019, 5, 12, tzinfo=UTC) + timedelta(days=7 * week) for week in range(6)]
    forum.add([Question(f"m{at}", f"Weekly meeting {day:%Y-%m-%d}", created=day) for at, day in enumerate(days)])
    assert not any(identifier.startswith("m") for group in groups(forum) for identifier in group)


def test_a_minimum_below_even_odds_is_refused(forum: Forum) -> None:
    with pytest.raises(SettingError, match=r"minimum is 0\.3"):
        forum.groups.find(0.3)


def test_groups_in_step_are_those_made_anew_whatever_changes(forum: Forum) -> None:
    groups(forum)
    forum.edit(Question("b", "printer prints blank pages every evening"))
    forum.add([Question(f"n{num}", f"printer prints blank pages number {num}") for num in range(4)])
    forum.store.put_links([Link("n1", "a"), Link("c", "d")])
    forum.judge("n2", "n3", "different")
    in_step = groups(forum)
    with Forum.open(forum.path) as anew:
        assert [set(group.members) for group in anew.groups.find(0.5)] == in_step
    forum.store.delete_links([Link("n1", "a")])
    forum.delete(["n0", "d"])
    in_step = groups(forum)
    with Forum.open(forum.path) as anew:
        assert [set(group.members) for group in anew.groups.find(0.5)] == in_step


def test_a_change_touches_its_neighbourhood_alone(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    groups(forum)
    read: list[set[int]] = []
    near = EvidenceReader.near

    def watched(reader: EvidenceReader, *arguments: object) -> set[int] | None:
        neighbours = near(reader, *arguments)  # type: ignore[arg-type]
        read.append(neighbours or set())
        return neighbours

    monkeypatch.setattr(groups_module.EvidenceReader, "near", watched)
    forum.judge("d", "e", "different")
    forum.groups.find(0.5)
    assert read == [set(forum.store.nums_by_id(["d", "e"]).values())]


def test_pairs_that_no_search_finds_are_compared_where_they_alone_keep_groups_apart(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.forum.pairs.PARTNERS", 1)
    forum.add([Question(word, f"{word} kettle boils over on the stove") for word in ("the", "my", "this", "our")])
    assert {"the", "my", "this", "our"} in groups(forum)

"""Single changes of answers and links, each in one durable transaction: put and taken away."""

from __future__ import annotations

from collections.abc import Sequence

from askalike.store import rows
from askalike.store.archive import MANUAL_SOURCE, Archive
from askalike.store.writes import (
    Operation,
    delete_answer,
    delete_link,
    put_row,
    require_question,
    source_number,
    unknown_id,
)
from askalike.types import Answer, Link


def put_answers(archive: Archive, answers: Sequence[Answer]) -> dict[str, Operation]:
    """Add new answers and edit those whose id is known; return for each id that changed which of both.

    Raises:
        UnknownIdError: an answer's question is not there; nothing is stored then.
        InputError: a value cannot be stored; nothing is stored then.
    """
    done: dict[str, Operation] = {}
    with archive.write() as connection:
        source = source_number(connection, MANUAL_SOURCE, "manual")
        for answer in answers:
            values = rows.answer_values(answer)
            require_question(connection, answer.question_id)
            operation = put_row(connection, "answer", answer.id, values, source)
            if operation is not None:
                done.setdefault(answer.id, operation)
    return done


def delete_answers(archive: Archive, ids: Sequence[str]) -> None:
    """Delete answers.

    Raises:
        UnknownIdError: one of them is not there; nothing is deleted then.
    """
    with archive.write() as connection:
        for one in ids:
            if not (rows.is_storable(one) and delete_answer(connection, one)):
                raise unknown_id("answer", one)


def delete_links(archive: Archive, links: Sequence[Link]) -> int:
    """Take marks away; return how many there were."""
    removed = 0
    with archive.write() as connection:
        for link in links:
            rows.check_link(link)
            removed += delete_link(connection, link)
    return removed

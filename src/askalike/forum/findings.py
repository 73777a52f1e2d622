"""What a check of a forum's folder finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from askalike.durable import REFUSED
from askalike.errors import AskalikeError, DamagedForumError, ForumError

Part = Literal["archive", "words", "vectors", "pairs", "model", "ranker", "files"]

REPAIR: Final = 'run "askalike check FORUM --repair"'


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be.

    Args:
        path: of the file or folder, within the forum's.
        what: is the matter with it.
        mend: what mends it; "" where nothing needs to be done.
        is_damage: False for what does no harm, such as a file that is nobody's.
    """

    part: Part
    path: str
    what: str
    mend: str = REPAIR
    is_damage: bool = True


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Args:
        repaired: what was made anew, such as "words".
    """

    findings: tuple[Finding, ...]
    repaired: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Return whether nothing is damaged."""
        return not any(finding.is_damage for finding in self.findings)

    def damaged(self, part: Part) -> list[Finding]:
        """Return the damage of one part."""
        return [finding for finding in self.findings if finding.part == part and finding.is_damage]


def refused(part: Part, path: str, error: Exception, mend: str = REPAIR) -> Finding:
    """Return the finding of what could not be read; where only rights are lacking, nothing is to be repaired."""
    what = error.message if isinstance(error, AskalikeError) else str(error)
    if isinstance(error, ForumError) and not isinstance(error, DamagedForumError):
        mend = error.hint
    elif isinstance(error, OSError) and error.errno in REFUSED:
        mend = "check the rights of the forum's folder"
    return Finding(part, path, what, mend)

"""How this command is called again: by its name, or by the path under which it was called where a shell lacks the name.

Enters: what the process was called by, and PATH. Leaves: commands to copy. May import: nothing of askalike.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

__all__ = ["command"]

NAME: Final = "askalike"


def command(*words: object) -> str:
    """Return a command of askalike as a shell takes it, such as ``.venv/bin/askalike search my.forum``.

    A program that is called in another way than by its script is named as after an ordinary installation.
    """
    called = sys.argv[0]
    is_script = Path(called).stem == NAME and Path(called).is_file()
    found = shutil.which(NAME)
    if not is_script or (found and Path(found).samefile(called)):
        called = NAME
    return shlex.join([called, *map(str, words)])

"""How this command is called again: by its name, or by its path where a shell lacks the name."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

NAME: Final = "askalike"
_MODULE: Final = Path(__file__).parent.parent / "__main__.py"


def command(*words: object) -> str:
    """Return a command of askalike as a shell takes it, such as ``.venv/bin/askalike search my.forum``.

    ``python -m askalike`` stays that where a shell lacks the name. A program that is called in another way than by its
    script is named as after an ordinary installation.
    """
    called = sys.argv[0]
    if Path(called) == _MODULE and not shutil.which(NAME):
        interpreter = Path(sys.executable)
        known = shutil.which(interpreter.name)
        is_known = known is not None and Path(known).parent == interpreter.parent
        return shlex.join([interpreter.name if is_known else str(interpreter), "-m", NAME, *map(str, words)])
    is_script = Path(called).stem == NAME and Path(called).is_file()
    found = shutil.which(NAME)
    if not is_script or (found and Path(found).samefile(called)):
        called = NAME
    return shlex.join([called, *map(str, words)])

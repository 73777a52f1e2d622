"""Where the real data sets lie, and where forums are built for learning and measuring."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
DATA: Final = Path(os.environ.get("ASKALIKE_DATA", REPOSITORY.parent / "shared" / "data")).absolute()
WORK: Final = Path(os.environ.get("ASKALIKE_BENCH", Path(tempfile.gettempdir()) / "askalike-bench"))
"""Forums that are built here are taken as they are by the next run, or built over."""

MINILM: Final = Path(os.environ.get("ASKALIKE_MINILM", WORK / "all-MiniLM-L6-v2"))
"""The folder of sentence-transformers' all-MiniLM-L6-v2, with which the bundled encoder began."""


def need_data(name: str) -> Path:
    """Return a path of the real data sets, or stop saying what is missing."""
    path = DATA / name
    if not path.exists():
        sys.exit(f"{path} is not there; set ASKALIKE_DATA to the folder of the real data sets")
    return path


def build_once(folder: Path, build: Callable[[Path], object]) -> Path:
    """Return a folder that is built unless an earlier run completed it; what a stopped run left is removed."""
    mark = folder.with_suffix(".complete")
    if not mark.exists():
        shutil.rmtree(folder, ignore_errors=True)
        build(folder)
        mark.touch()
    return folder

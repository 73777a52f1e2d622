"""Work done in other processes, some of which are to be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path


def in_child(work: Callable[[], object]) -> int:
    """Do something in a child; return its status. Its parent opens no index: a thread's locks would be inherited."""
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    return os.waitpid(child, 0)[1]


def printed_by(module: str, function: str, folder: Path) -> str:
    """Call a test module's function with a folder, in a process that has no threads; return what it prints."""
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys, pathlib; from tests.integration import {module} as here;"
            f" here.{function}(pathlib.Path(sys.argv[1]))",
            str(folder),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stdout
    return child.stdout

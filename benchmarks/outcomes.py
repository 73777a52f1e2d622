"""What rows came to with each seed, kept in one file of the repository, so that trainings of hours are done once.

Enters: the files that a command keeps of what is finished. Leaves: a ZIP file; from it, the same files in another
folder. What is taken back is only counted where the command itself finds it to be of the same data and settings.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path

_MOMENT = (1980, 1, 1, 0, 0, 0)


def take_back(archive: Path, folder: Path) -> list[str]:
    """Write the files of an archive that a folder has not, and return their names.

    Args:
        archive: may be missing.
    """
    if not archive.exists():
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as held:
        missing = [name for name in held.namelist() if not (folder / Path(name).name).exists()]
        for name in missing:
            (folder / Path(name).name).write_bytes(held.read(name))
    return missing


def keep(files: Iterable[Path], archive: Path) -> None:
    """Write JSON files into one archive; the same files give the same bytes."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for file in sorted(files):
            content = json.dumps(json.loads(file.read_bytes()), separators=(",", ":"))
            entry = zipfile.ZipInfo(file.name, _MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, content)
    print(f"wrote {archive}")

"""The page's files: a fixed table, made when the service starts; no request can read a path."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parent / "page"

TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
"""Suffix → content type; other files are not served."""

CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

EMBEDDED: Final = ("/widget.js", "/widget.css")
"""What pages of other sites load, and every file under /widget/."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is sent.

    Args:
        tag: changes when the content does.
        is_embedded: pages of other sites may load it.
    """

    content: bytes
    type: str
    tag: str
    is_embedded: bool


def static_files(folder: Path = PAGE) -> dict[str, StaticFile]:
    """Return each path that is served, with its file; index.html under "/" too."""
    found: dict[str, StaticFile] = {}
    for file in sorted(folder.rglob("*")):
        if file.suffix not in TYPES or not file.is_file() or file.is_symlink():
            continue
        path = f"/{file.relative_to(folder).as_posix()}"
        content = file.read_bytes()
        tag = hashlib.sha256(content).hexdigest()[:16]
        is_embedded = path in EMBEDDED or path.startswith("/widget/")
        found[path] = StaticFile(content, TYPES[file.suffix], f'"{tag}"', is_embedded)
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found

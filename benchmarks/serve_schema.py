"""Requests made from the OpenAPI document by Schemathesis: none may end in an error of the service.

Command: ``python -m benchmarks.serve_schema [--seconds S]``; needs the dependency group ``schema``, or another
environment's ``st`` named by ASKALIKE_SCHEMATHESIS. Checked are, for each answer: no 5xx, a status, a content type and
a body that the document describes, refused methods, and ``Allow``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from recipes.folders import WORK

from askalike import Forum
from askalike.data import bundled_forum
from benchmarks.record import option_parser, write
from benchmarks.serving import serving

COMMAND = "python -m benchmarks.serve_schema"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "unsupported_method",
    "allow_header_conformance",
)


def main() -> None:
    """Send requests for a time, and write how many were sent."""
    parser = option_parser(__doc__)
    parser.add_argument("--seconds", type=int, default=300)
    options = parser.parse_args()
    beside = Path(sys.executable).with_name("st")
    tool = os.environ.get("ASKALIKE_SCHEMATHESIS") or (str(beside) if beside.exists() else shutil.which("st"))
    if not tool:
        sys.exit("Schemathesis is not installed: pip install --group schema --constraint constraints.txt")
    folder = WORK / "serve" / "schema.forum"
    shutil.rmtree(folder, ignore_errors=True)
    with Forum.create(folder) as forum:
        forum.load(bundled_forum())
    with serving(folder) as running:
        address = f"http://127.0.0.1:{running.port}/openapi.json"
        more = f"--phases examples,coverage,fuzzing --suppress-health-check all --seed 1 --max-time {options.seconds}"
        command = [tool, "run", address, "--checks", ",".join(CHECKS), *more.split()]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder.parent)
    print(run.stdout[-4_000:])
    statuses = re.findall(r'"status": (\d+)', (folder.parent / "service.log").read_text(encoding="utf-8"))
    errors = sum(status.startswith("5") for status in statuses)
    if errors or run.returncode:
        sys.exit(f"{errors} server errors" if errors else "an answer differs from the document")
    write("serve-schema", COMMAND, {"requests": len(statuses), "server_errors": errors})


if __name__ == "__main__":
    main()

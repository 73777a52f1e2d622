"""Ray on this machine, as a cluster that a batch joins: two workers, little memory; it ends with its process."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_PROGRAM = """
import sys, ray
context = ray.init(num_cpus=2, object_store_memory=200_000_000, include_dashboard=False, _temp_dir=sys.argv[1])
print(context.address_info["gcs_address"], flush=True)
sys.stdin.read()
ray.shutdown()
"""
START_S = "180"


@contextmanager
def ray_environment() -> Iterator[dict[str, str]]:
    """Give the environment by which programs join a cluster; {} where it did not start.

    It must be there before ``ray`` is imported.
    """
    folder = tempfile.mkdtemp(prefix="r")  # the names of its sockets must be short
    keys = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    more = {"RAY_raylet_start_wait_time_s": START_S, "RAY_USAGE_STATS_ENABLED": "0", **keys}
    environment = {name: value for name, value in (os.environ | more).items() if name != "RAY_ADDRESS"}
    server = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, folder],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        yield {"RAY_ADDRESS": address, **keys} if address else {}
    finally:
        server.communicate(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)

"""Ray on this machine, as a cluster that a batch joins: two workers, little memory; it ends with its process."""

from __future__ import annotations

import os
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
def ray_address() -> Iterator[str]:
    """Give the address of a cluster, which RAY_ADDRESS names; "" where it did not start."""
    folder = tempfile.mkdtemp(prefix="r")  # the names of its sockets must be short
    more = {"RAY_raylet_start_wait_time_s": START_S, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": ""}
    environment = {name: value for name, value in (os.environ | more).items() if value}
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
        yield server.stdout.readline().strip()
    finally:
        server.communicate(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)

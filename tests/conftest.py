"""Fixtures that every kind of test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings
from recipes.folders import DATA

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before any test loads what reads them
    os.environ.setdefault(_name, "1")  # what is multiplied is tiny, and threads that wait for each other spin

os.environ.pop("ASKALIKE_ENCODER", None)  # tests name their encoders

settings.register_profile("askalike", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("askalike")  # a busy machine is no failure


LONGEST = ("test_histories.py", "test_journeys.py", "test_page.py", "test_milvus.py", "test_kill.py")
"""Files that begin first, so that no process is left alone with one of them at the end."""
ALONE = ("test_histories.py", "test_journeys.py")
"""Files whose tests share nothing: each goes to the process that is free."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one process of ``--dist loadgroup``, and begin with the longest."""
    for item in items:
        if item.path.name not in ALONE:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(scope="module")
def words_alone() -> Iterator[None]:
    """Have a package that carries no encoder, so that forums without one of their own are searched by words."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("askalike.models.encoder_settings.general_folder", lambda: None)
        yield


@pytest.fixture(scope="session")
def encoded_homenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a forum of the package's questions, indexed by default settings once for all processes: to be copied."""
    from askalike import Forum
    from askalike.data import bundled_forum

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path, whole = folder / "encoded-homenet.forum", folder / "encoded-homenet.whole"
    with FileLock(folder / "encoded-homenet.lock"):
        if not whole.exists():
            with Forum.create(path) as forum:
                forum.load(bundled_forum())
            whole.touch()
    return path


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of the real data sets; skip the test where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"the real data sets are not at {DATA}; ASKALIKE_DATA names another folder")
    return DATA

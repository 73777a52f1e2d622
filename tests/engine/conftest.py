"""Forums whose questions each engine finds: this machine, Milvus Lite, and Milvus Lite with records in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.milvus_server import milvus_address
from tests.postgres_server import new_database

from askalike import Forum, ForumSettings

Make = Callable[..., Forum]
KINDS = ("local", "milvus", "milvus and postgresql")
SETTINGS = ForumSettings(has_vectors=False)


@pytest.fixture(scope="module", autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of an engine; a forum's collections there are its own."""
    return milvus_address(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Return what makes a new forum, by words alone unless other settings are given."""
    with ExitStack() as opened:

        def made(name: str = "forum", settings: ForumSettings = SETTINGS) -> Forum:
            path = tmp_path / name
            if "postgresql" in kind:
                forum = Forum.attach(path, new_database(), settings=settings)
            else:
                forum = Forum.create(path, settings=settings)
            opened.enter_context(forum)
            if "milvus" in kind:
                forum.indexes.use_engine(request.getfixturevalue("engine"))
            return forum

        yield made

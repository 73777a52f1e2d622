"""A forum's records as data frames, and data frames as a forum: pandas, polars and whatever else speaks Arrow."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from askalike.errors import MissingExtraError, SettingError
from askalike.records import arrow_rows, arrow_schema

FrameLibrary = Literal["pandas", "polars", "pyarrow"]


def frame_of(records: Iterable[Any], kind: type, library: FrameLibrary) -> Any:
    """Return records as a data frame.

    Raises:
        SettingError: there is no such library.
        MissingExtraError: it, or pyarrow, is not installed.
    """
    if library not in ("pandas", "polars", "pyarrow"):
        raise SettingError(f"there is no library {library!r} of data frames", "expected pandas, polars or pyarrow")
    table = _module("pyarrow").Table.from_pylist(arrow_rows(records), schema=arrow_schema(kind))
    if library == "pyarrow":
        return table
    found = _module(library)
    return table.to_pandas() if library == "pandas" else found.from_arrow(table)


def archive_of(frame: Any, folder: Path) -> Path:
    """Write a data frame to a file that the reader of tables takes, and return its path.

    Args:
        frame: with ``__arrow_c_stream__`` (pandas 2.2 and later, polars, pyarrow, DuckDB, …) or ``__dataframe__``.

    Raises:
        SettingError: it is no data frame.
        MissingExtraError: pyarrow is not installed.
    """
    pyarrow = _module("pyarrow")
    if hasattr(frame, "__arrow_c_stream__"):
        table = pyarrow.table(frame)
    elif hasattr(frame, "__dataframe__"):
        table = _module("pyarrow.interchange").from_dataframe(frame)
    else:
        raise SettingError(
            f"a {type(frame).__name__} is no data frame",
            "expected one of pandas, polars, pyarrow or another that speaks Arrow",
        )
    path = folder / "frame.parquet"
    _module("pyarrow.parquet").write_table(table, path)
    return path


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(f"data frames need {name.split('.')[0]}, which is not installed", "frames") from error

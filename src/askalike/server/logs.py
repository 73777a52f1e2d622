"""The service's log: one JSON object a line on standard error, without what was asked."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any


class JsonLines(logging.Formatter):
    """Writes a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found: dict[str, Any] = {"at": moment, "level": record.levelname.lower(), "worker": os.getpid()}
        fields = getattr(record, "fields", None)
        found |= fields if isinstance(fields, dict) else {"message": record.getMessage()}
        if record.exc_info:
            found["trace"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=True)


def set_up_logs(level: str = "INFO") -> None:
    """Let the service's and the server's loggers write JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("askalike.server", "uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level)

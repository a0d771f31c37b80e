"""Log lines as Terraform reads them from a plugin: JSON on standard error, with a level each.

What is shown is Terraform's choice (`TF_LOG_PROVIDER`); here everything is written.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import datetime, timezone
from typing import Literal

from sojourn.core.escape import escaped_lines

__all__ = ["Level", "Log"]

Level = Literal["trace", "debug", "info", "warn", "error"]


class Log:
    """Writes lines that all have the same fields beside their own."""

    def __init__(self, name: str, **fields: object) -> None:
        self._name = name
        self._fields = fields

    def having(self, **fields: object) -> Log:
        """The same, with more fields on every line."""
        return Log(self._name, **{**self._fields, **fields})

    def write(self, level: Level, message: str, **fields: object) -> None:
        """Write one line. Terraform decodes it and prints the texts as they are: escaped here."""
        line = {
            "@level": level,
            "@message": escaped_lines(message),
            "@module": self._name,
            "@timestamp": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            **{name: _shown(value) for name, value in (self._fields | fields).items()},
        }
        # In one piece, since verbs run in parallel. Terraform may be gone, and what is under way
        # has to come to a good end all the same.
        with suppress(OSError):
            sys.stderr.write(json.dumps(line, default=str) + "\n")
            sys.stderr.flush()


def _shown(value: object) -> object:
    return escaped_lines(value) if isinstance(value, str) else value

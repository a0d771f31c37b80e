"""A script that comes through a pipe."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.taskfiles import script_task

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.core.task import Task

__all__ = ["read_piped"]


def read_piped(source: Path | int, name: str) -> Task:
    """The script that comes through a pipe, which may take its time; Ctrl-C ends the waiting."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in (
            (signal.SIGINT, signal.default_int_handler),
            (signal.SIGTERM, signal.default_int_handler),
        )
    }
    try:
        with open(source, "rb", closefd=not isinstance(source, int)) as pipe:
            data = pipe.read()
    except OSError as error:
        raise InvalidInput("script", f"could not read {name}: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return script_task(data, name)

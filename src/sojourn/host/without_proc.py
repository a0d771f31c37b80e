"""What is known of processes where there is no /proc: psutil asks the system.

It is installed on such systems only, and loaded when it is needed.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psutil import Process

__all__ = ["began", "command", "environment", "is_suspended", "lives"]


@contextmanager
def _looking(pid: int) -> Iterator[Process]:
    """A process of this pid. Gone, or another user's: raises OSError, as reading /proc does."""
    import psutil

    try:
        yield psutil.Process(pid)
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from error
    except psutil.Error as error:
        raise ProcessLookupError(str(error)) from error


def command(pid: int) -> bytes:
    """Its words, each with a NUL at its end."""
    with _looking(pid) as process:
        return b"".join(os.fsencode(word) + b"\0" for word in process.cmdline())


def environment(pid: int) -> dict[str, str]:
    """The variables that it was started with."""
    with _looking(pid) as process:
        return dict(process.environ())


def began(pid: int) -> str:
    """When it began; of another process with its pid, it is another time."""
    with _looking(pid) as process:
        return repr(process.create_time())


def lives(pid: int) -> bool:
    """Whether it has not ended."""
    with _looking(pid) as process:
        return str(process.status()) != "zombie"


def is_suspended(pid: int) -> bool:
    """Whether it was stopped by SIGSTOP or a debugger."""
    with _looking(pid) as process:
        return process.status() in ("stopped", "tracing-stop")

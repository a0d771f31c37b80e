"""How many jobs a runner program carries out, as it says itself in its metrics.

For programs whose hooks run inside of the jobs' containers, or that have none. The script tells
which metric it is; the port is ours to choose, as only we can tell whether one is free.
"""

from __future__ import annotations

import http.client
import math
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Gauge", "free_port"]

_WITHIN = 1.0  # seconds; the program is on the same machine
_LARGEST = 1 << 20


def free_port() -> int:
    """One of this machine that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Gauge:
    """Keeps the file that tells of a job, as hooks of other programs do.

    `described`: has the metric's name and, after a blank, what the page must contain to be that of
    our program; without this file, there is no metric. `busy`: as it was last told.
    """

    def __init__(self, port: int, described: Path, job: Path) -> None:
        self._port = port
        self._described = described
        self._job = job
        self.busy = False

    @property
    def there(self) -> bool:
        return self._described.exists()

    def look(self) -> bool:
        """Whether it could be told."""
        name, _, mark = self._described.read_text().strip().partition(" ")
        number = _value(self._page(), name, mark)
        if number is None:
            return False
        self.busy = number > 0
        # For the next machine, if this one is lost. Jobs may be able to write there, too.
        with suppress(OSError):
            self._note() if self.busy else self._job.unlink(missing_ok=True)
        return True

    def _page(self) -> str:
        # Not by way of a proxy, which urllib would use.
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_WITHIN)
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().read(_LARGEST).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            return ""
        finally:
            connection.close()

    def _note(self) -> None:
        """No link is followed, and a file that is there stays."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        os.close(os.open(self._job, flags, 0o644))


def _value(page: str, name: str, mark: str) -> float | None:
    """The sum of a metric over all its labels; None if it is not there, or not ours."""
    if mark not in page:
        return None
    found = []
    for line in page.splitlines():
        key, _, number = line.rpartition(" ")
        if key.partition("{")[0] == name:
            with suppress(ValueError):
                found.append(float(number))
    total = math.fsum(found)
    return total if found and math.isfinite(total) else None

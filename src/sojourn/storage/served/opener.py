"""The connection that is there, or a new one: opened by one thread, for all that wait for it."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

from sojourn.core.errors import Transient
from sojourn.storage.served.connection import Connection, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Opener", "Unopened"]

_PAUSES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between tries


class Unopened(Exception):
    """There is no connection now; another try may help."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class Opener:
    """Opens streams when they are needed, with growing pauses while that fails."""

    def __init__(self, open_stream: Callable[[], Stream]) -> None:
        self._open_stream = open_stream
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closed = threading.Event()
        self._failures = 0
        self._not_before = 0.0
        self._why: Exception = Transient("not connected")

    def connection(self) -> Connection:
        """One that was alive a moment ago; raises Unopened, and what nobody can repair."""
        with self._lock:
            self._check()
            if self._connection and not self._connection.lost:
                return self._connection
            if time.monotonic() < self._not_before:
                raise Unopened(self._why)  # another thread has just tried
            if self._connection:
                self._connection.close()
                if self._connection.useful:
                    self._failures = 0
                self._connection = None
                self._fail(Transient("The connection to the store was lost"))
            connection = self._opened()
            self._connection = connection
            if self._closed.is_set():  # meanwhile
                connection.close()
            self._check()
            return connection

    def pause(self) -> bool:
        """Wait until another try makes sense; False if there will be none."""
        wait = max(0.0, self._not_before - time.monotonic())
        return not self._closed.wait(wait + random.uniform(0.0, 0.05))  # noqa: S311

    def close(self) -> None:
        """End the connection, and open no other."""
        self._closed.set()  # without the lock, which a thread that opens one may hold for long
        if self._connection:
            self._connection.close()

    def _check(self) -> None:
        if self._closed.is_set():
            raise Transient("The connection to the store is closed")

    def _opened(self) -> Connection:
        try:
            connection = Connection(self._open_stream())
        except (Transient, OSError) as error:
            self._fail(error)
            raise Unopened(error) from error
        self._why = Transient("The connection to the store was lost")
        return connection

    def _fail(self, why: Exception) -> None:
        self._why = why
        self._not_before = time.monotonic() + _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        self._failures += 1

"""Streams to a server of a folder in a process of its own, and streams with faults."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

__all__ = ["Faulty", "ProcessStream", "served"]


class ProcessStream:
    """The standard input and output of a process."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self.process.stdin
        assert self.process.stdout
        self._in = self.process.stdin
        self._out = self.process.stdout
        self._closing = threading.Lock()

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._in.fileno(), rest) :]

    def read(self) -> bytes:
        return os.read(self._out.fileno(), 1 << 20)

    def close(self) -> None:
        # Its end wakes threads that read or write. The pipes stay until nobody uses them.
        with self._closing:
            self.process.kill()
            self.process.wait()

    def __del__(self) -> None:
        self._in.close()
        self._out.close()


def served(folder: Path, *more: str) -> ProcessStream:
    """A stream to a server of this folder."""
    return ProcessStream(sys.executable, "-m", "sojourn.storage.served", str(folder), *more)


class Faulty:
    """A stream that something happens to: `wrote` and `got` see each piece and may change it.

    Either may raise, and the stream is cut.
    """

    def __init__(
        self,
        inner: ProcessStream,
        *,
        wrote: Callable[[bytes], bytes] = bytes,
        got: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._inner = inner
        self._wrote = wrote
        self._got = got

    def write(self, data: bytes) -> None:
        self._inner.write(self._wrote(data))

    def read(self) -> bytes:
        return self._got(self._inner.read())

    def close(self) -> None:
        self._inner.close()

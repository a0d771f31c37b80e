"""An API server that fails at one call, or at which the caller is killed.

A call has a name: `POST Secret` is the first of its kind, `PUT Secret 2` the second. Those that
change nothing are only told apart by what they ask for: how often depends on the cluster's pace.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import sojourn
from sojourn.core.errors import Transient
from sojourn.kube import channels, websocket
from sojourn.kube.api import Api

__all__ = ["ID", "VERBS", "Break", "breaking", "changes"]

_NAME = "broken"
ID = f"tpi-{_NAME}"


def _task(workdir: str) -> sojourn.Task:
    return sojourn.Task(
        "#!/bin/sh\nmkdir -p output; echo result > output/file; sleep 1000",
        cloud="k8s",
        machine="s",
        name=_NAME,
        storage=sojourn.Storage(workdir=workdir, output="output"),
    )


VERBS: dict[str, Callable[[str], object]] = {
    "create": lambda workdir: sojourn.create(_task(workdir)),
    "status": lambda _: sojourn.get(ID).status(),
    "stop": lambda _: sojourn.get(ID).stop(),
    "start": lambda _: sojourn.get(ID).start(),
    "delete": lambda _: sojourn.get(ID).delete(),
}


def changes(call: str) -> bool:
    """Whether a call has an effect."""
    return not call.startswith("GET")


class Break:
    """Where to break, before or after the call had its effect; `calls` are those that were made."""

    def __init__(self, at: str = "", *, after: bool = False, kill: bool = False) -> None:
        self._at = at
        self._after = after
        self._kill = kill
        self._lock = threading.Lock()
        self._count: Counter[str] = Counter()
        self.calls: list[str] = []

    def around(self, method: str, what: str, call: Callable[[], Any]) -> Any:
        name = self._named(method, what)
        if not name or name != self._at:
            return call()
        if self._after:
            call()
        if self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
        raise Transient(f"a test broke {self._at}")

    def _named(self, method: str, what: str) -> str:
        name = f"{method} {what.split()[0]}"
        with self._lock:
            self._count[name] += 1
            if self._count[name] > 1:
                name = f"{name} {self._count[name]}" if changes(method) else ""
            if name:
                self.calls.append(name)
        return name


@contextmanager
def breaking(where: Break) -> Iterator[None]:
    """All calls of the block go through it."""
    call, open_channels = Api._call, channels.open_channels

    def broken_call(api: Api, what: str, method: str, *more: Any, **named: Any) -> Any:
        return where.around(method, what, lambda: call(api, what, method, *more, **named))

    def broken_channels(api: Api, what: str, *more: Any, **named: Any) -> Any:
        kind = what.removeprefix("create ")
        return where.around("OPEN", kind, lambda: open_channels(api, what, *more, **named))

    with (
        mock.patch.object(Api, "_call", broken_call),
        mock.patch.object(websocket, "open_channels", broken_channels),
    ):
        yield


if __name__ == "__main__":  # VERB WORKDIR CALL before|after: be killed there
    verb, folder, at, when = sys.argv[1:]
    with breaking(Break(at, after=when == "after", kill=True)):
        VERBS[verb](str(Path(folder)))

"""The laptop's side is killed at a call: what it asked for last happens, and nothing after it.

These are the tests of each cloud, which call them with a laptop of theirs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sojourn.core.errors import Conflict, NotFound
from tests.unit.clouds.vm.laptop import IMAGE, Laptop

# Loads the SDK once, and carries out verbs in children of its own, each of which may be killed.
_PARENT = """
import os, sys
import {sdk}
from sojourn.clouds.vm import agent_files
from sojourn.core.context import Context
from tests.unit.clouds.{name}.faults.laptop import Laptop

agent_files.bundle = lambda *_: b"the agent"
sleep = Context.sleep
Context.sleep = lambda self, seconds: sleep(self, min(seconds, 0.02))
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            getattr(Laptop(None), line.strip())()
        finally:
            os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


class Crasher:
    """Starts verbs in processes, and kills them."""

    def __init__(self, laptop: Laptop) -> None:
        self._laptop = laptop
        self._parent = subprocess.Popen(
            [sys.executable, "-c", _PARENT.format(name=laptop.name, sdk=laptop.sdk)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def crash(self, verb: str, nth: int) -> str:
        """The name of the call at which it was killed; empty if there were not so many."""
        at = ""
        child: list[int] = []
        known = threading.Event()

        def tell(call: Any) -> None:
            nonlocal at
            if len(self._laptop.sim.calls) >= nth and not at:
                at = call.name
                known.wait(10)
                with suppress(ProcessLookupError):
                    os.kill(child[0], signal.SIGKILL)

        assert self._parent.stdin
        assert self._parent.stdout
        self._laptop.sim.calls.clear()
        self._laptop.sim.watch(tell)
        self._parent.stdin.write(f"{verb}\n")
        self._parent.stdin.flush()
        child.append(int(self._parent.stdout.readline()))
        known.set()
        assert self._parent.stdout.readline() == "ended\n"
        time.sleep(0.1)  # what was asked for last takes its effect
        self._laptop.sim.watch(lambda _: None)
        return at

    def close(self) -> None:
        self._parent.communicate(timeout=60)


@contextmanager
def _crasher(laptop: Laptop) -> Iterator[Crasher]:
    crasher = Crasher(laptop)
    try:
        yield crasher
    finally:
        crasher.close()


def creation_that_is_killed(laptop: Laptop, *, repeated: bool) -> None:
    calls = len(laptop.calls_of(laptop.create))
    laptop.delete()
    struck = []
    with _crasher(laptop) as crasher:
        for nth in range(1, calls + 1):
            at = crasher.crash("create", nth)
            struck += [at] if at else []  # at times others come first, and there are fewer
            if repeated:
                laptop.create()
                assert laptop.has_all(), at
            with suppress(NotFound):  # it was killed before the first effect
                laptop.delete()
            assert laptop.sim.inventory() == [], at
    assert len(struck) > 30


def deletion_that_is_killed(laptop: Laptop) -> None:
    laptop.create()
    calls = len(laptop.calls_of(laptop.delete))
    struck = []
    with _crasher(laptop) as crasher:
        for nth in range(1, calls + 1):
            laptop.create()
            at = crasher.crash("delete", nth)
            struck += [at] if at else []
            with suppress(NotFound):  # it was killed after the last effect
                laptop.delete()
            assert laptop.sim.inventory() == [], at
    assert len(struck) > 15


def change_that_is_killed(laptop: Laptop, verb: str, back: str) -> None:
    laptop.create()
    if verb == "start":
        laptop.stop()
    struck = []
    with _crasher(laptop) as crasher:
        for nth in range(1, 30):
            at = crasher.crash(verb, nth)
            getattr(laptop, verb)()
            assert laptop.has_all() if verb == "start" else laptop.machines() == (), at
            getattr(laptop, back)()
            if not at:
                break
            struck.append(at)
    assert len(struck) > 3
    laptop.delete()
    assert laptop.sim.inventory() == []


def an_image_whose_maker_is_killed(laptop: Laptop) -> None:
    calls = len(laptop.calls_of(laptop.make_image))
    laptop.delete_image()
    struck = []
    with _crasher(laptop) as crasher:
        for nth in range(1, calls + 1):
            at = crasher.crash("make_image", nth)
            struck += [at] if at else []
            with suppress(Conflict):  # it was finished
                laptop.make_image()
            assert laptop.images() == [(IMAGE, True)], at
            laptop.delete_image()
            assert laptop.sim.inventory() == [], at
    assert len(struck) > 30

from __future__ import annotations

import subprocess
import sys
import threading
import time

from sojourn.core.flag import Flag


def test_it_is_an_event() -> None:
    flag = Flag()
    assert not flag.is_set()
    assert not flag.wait(0.01)
    flag.set()
    flag.set()
    assert flag.is_set()
    assert flag.wait()
    flag.clear()
    assert not flag.is_set()


def test_it_wakes_another_thread() -> None:
    flag = Flag()
    threading.Timer(0.1, flag.set).start()
    began = time.monotonic()
    assert flag.wait(30)
    assert time.monotonic() - began < 10


_STRESS = """
import random, signal, time
from sojourn.core.context import Context
from sojourn.core.errors import Cancelled

contexts = []
signal.signal(signal.SIGALRM, lambda *_: contexts[-1].cancel())
end = time.monotonic() + 3
while time.monotonic() < end:
    contexts[:] = [Context()]
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.0004))
    try:
        while True:
            contexts[0].sleep(0.00001)
    except Cancelled:
        pass
"""


def test_a_signal_handler_may_set_it_at_any_moment() -> None:
    subprocess.run([sys.executable, "-c", _STRESS], check=True, timeout=20)

"""The command line: its entry point, which listens to signals before it loads anything else.

What does not belong here: how anything is done. A command reads its arguments, calls the API and
renders events.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

import sojourn.core.quickstart  # noqa: F401 -- before all that uses dataclasses
from sojourn.cli.interrupts import INTERRUPTED, ignored, watching

__all__ = ["BEGAN", "main"]

BEGAN = time.time()
"""When this command began: as early as one of ours can tell."""


def main() -> None:
    """The entry point."""
    try:
        code = _watched()
    except KeyboardInterrupt:  # before signals were heard
        code = INTERRUPTED
    sys.exit(code)


def _watched() -> int:
    """Run the command while signals are heard; returns the exit code."""
    _open_streams()
    atexit.register(ignored)  # what is registered first is called last
    with watching() as watch:
        try:
            watch.begin()
            from sojourn.cli.app import run  # not before: loading takes long enough for a Ctrl-C

            return run()
        except KeyboardInterrupt:
            return INTERRUPTED
        except RuntimeError:  # as Python 3.11 and before wrap it while a class is made
            if not watch.unanswered:
                raise
            return INTERRUPTED
        finally:
            watch.over = True


def _open_streams() -> None:
    """What somebody closed (`>&-`) leads nowhere: Python would have no such stream at all.

    And the next file to be opened would get its number, and with it what others print there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w"))  # noqa: SIM115

"""Between the two worlds: contexts, events and errors of Sojourn, and those of the protocol."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput, SojournError
from sojourn.core.events import Event, Note, Progress, StepEnded, StepStarted, Warned
from sojourn.terraform.plugin.diagnostics import Diagnostic, Failure, Path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sojourn.core.errors import Problem
    from sojourn.terraform.plugin.log import Level
    from sojourn.terraform.plugin.resource import Call

__all__ = ["context", "diagnostics", "failing"]

_PROGRESS_EVERY = 5.0  # seconds between two lines of level INFO on one transfer


def context(call: Call) -> Context:
    """A context for one verb: it stops when Terraform says so, and in time."""
    ctx = Context(_Teller(call), cancelled=call.stopped)
    return ctx.within(call.seconds)


@contextmanager
def failing(hint: str = "") -> Iterator[None]:
    """Let our errors out as those of the protocol.

    `hint`: what to do about one of the computer's own, a full disk say.
    """
    try:
        yield
    except (SojournError, OSError) as error:
        raise Failure(diagnostics(error, hint)) from error


def diagnostics(error: SojournError | OSError, hint: str = "") -> Iterable[Diagnostic]:
    """An error as Terraform shows it; what is wrong with an attribute points to it."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return [Diagnostic(f"{where}{error.strerror or error}", hint)]
    if isinstance(error, InvalidInput):
        return [_about(problem, error.hint) for problem in error.problems]
    return [Diagnostic(error.message, error.hint)]


def _about(problem: Problem, hint: str) -> Diagnostic:
    return Diagnostic(f"{problem.path}: {problem.message}", hint.strip(), _path(problem.path))


def _path(text: str) -> Path:
    """The path of an attribute; names of variables and the like are not attributes."""
    first, _, rest = text.partition(".")
    return ("storage", 0, rest) if first == "storage" and rest else (first,)


class _Teller:
    """Turns events into log lines with the right level, and warnings into diagnostics as well."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._step = 0
        self._numbers: dict[tuple[str, str], int] = {}  # of the steps under way
        self._told: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        log = self._call.log
        if isinstance(event, StepStarted):
            self._step += 1
            self._numbers[event.phase, event.step] = self._step
            log.write("info", f"Step {self._step}: {event.step}", step=self._step)
        elif isinstance(event, StepEnded):
            self._ended(event)
        elif isinstance(event, Progress):
            log.write(self._level(event), _amount(event), done=event.done, total=event.total)
        elif isinstance(event, Note):
            log.write("info", event.message)
        elif isinstance(event, Warned):
            log.write("warn", event.message)
            self._call.warn(Diagnostic(event.message, warning=True))

    def _ended(self, event: StepEnded) -> None:
        number = self._numbers.pop((event.phase, event.step), self._step)
        fields = {"step": number, "seconds": event.seconds}
        how = f"failed after {event.seconds:g} s" if event.error else f"done in {event.seconds:g} s"
        level: Level = "error" if event.error else "info"
        self._call.log.write(level, f"{event.step}: {how}", **fields, **_error(event))

    def _level(self, event: Progress) -> Level:
        now = time.monotonic()
        if event.done != event.total and now - self._told.get(event.step, 0) < _PROGRESS_EVERY:
            return "debug"
        self._told[event.step] = now
        return "info"


def _error(event: StepEnded) -> dict[str, str]:
    return {"error": " ".join(event.error.split())} if event.error else {}


def _amount(event: Progress) -> str:
    total = f" of {event.total}" if event.total >= 0 else ""
    return f"{event.step}: {event.done}{total} {event.unit}"

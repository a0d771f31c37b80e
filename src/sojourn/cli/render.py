"""Events become words: on a terminal with progress, in plain lines when piped, or as JSON lines.

Results and logs go to standard output; what Sojourn tells of its own work goes to standard error.
With --json everything goes to standard output, a JSON object a line.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from sojourn.core.errors import (
    AuthError,
    Cancelled,
    InvalidInput,
    MissingDependency,
    SojournError,
    TaskFailed,
)
from sojourn.core.events import (
    Event,
    LogLine,
    Note,
    Progress,
    StatusChanged,
    StepEnded,
    StepStarted,
    Warned,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tqdm import tqdm

__all__ = ["INTERRUPTED", "Renderer", "error_code", "error_row", "make_renderer", "show_error"]

INTERRUPTED = 130
_STATE_COLOURS = {"succeeded": "32", "running": "36", "failed": "31", "timed-out": "31"}


class Renderer(Protocol):
    """Turns events and results into output."""

    def __call__(self, event: Event) -> None:
        """Show an event."""

    def result(self, row: Mapping[str, Any], text: str) -> None:
        """Show a result: its data with --json, else the text."""

    def close(self) -> None:
        """Finish what is being drawn."""


def make_renderer(
    *, as_json: bool, ranks: bool = False, timestamps: bool = False, quiet: bool = False
) -> Renderer:
    """The renderer for this output. `ranks`: tell whose line it is; `quiet`: logs only."""
    if as_json:
        return JsonRenderer()
    if sys.stderr.isatty() and not quiet:
        return TerminalRenderer(ranks=ranks, timestamps=timestamps)
    return PlainRenderer(ranks=ranks, timestamps=timestamps, quiet=quiet)


class JsonRenderer:
    """JSON lines, for programs."""

    def __call__(self, event: Event) -> None:
        self.result(event.to_dict(), "")

    def result(self, row: Mapping[str, Any], text: str) -> None:
        import json  # loaded only when it is asked for

        _write(json.dumps(row) + "\n")

    def close(self) -> None:
        pass


class PlainRenderer:
    """Plain lines, for pipes and files."""

    def __init__(self, *, ranks: bool, timestamps: bool, quiet: bool = False) -> None:
        self._ranks = ranks
        self._timestamps = timestamps
        self._quiet = quiet
        self._open: tuple[int, int] | None = None  # whose line has no end yet on the screen
        self._partial: set[tuple[int, int]] = set()  # whose has none at all yet

    def __call__(self, event: Event) -> None:
        if isinstance(event, LogLine):
            self.log(event)
        elif isinstance(event, Warned):
            self.tell(f"Warning: {event.message}")
        elif not self._quiet:
            self.event(event)

    def event(self, event: Event) -> None:
        if isinstance(event, Note):
            self.tell(event.message)
        elif isinstance(event, StepStarted):
            self.tell(event.step)
        elif isinstance(event, StatusChanged):
            self.tell(state_line(event))

    def log(self, line: LogLine) -> None:
        """A line of the script; the pieces of one are joined while no other comes between."""
        whose = (line.rank, line.attempt)
        if whose in self._partial and self._open != whose and not (line.text or line.partial):
            self._partial.discard(whose)
            return  # the end of a line that others have cut off already
        (self._partial.add if line.partial else self._partial.discard)(whose)
        if self._open not in (None, whose):
            _write("\n")
        head = ""
        if self._open != whose:
            head = f"{line.time} " if self._timestamps else ""
            head += f"[{line.rank}] " if self._ranks else ""
        _write(head + line.text + ("" if line.partial else "\n"))
        self._open = whose if line.partial else None

    def result(self, row: Mapping[str, Any], text: str) -> None:
        if text:
            _write(text + "\n")

    def tell(self, text: str) -> None:
        self.close()
        _say(text)

    def close(self) -> None:
        if self._open is not None:
            self._open = None
            _write("\n")


class TerminalRenderer(PlainRenderer):
    """A terminal: steps with their times, bars with bytes, rate and time left."""

    def __init__(self, *, ranks: bool, timestamps: bool) -> None:
        super().__init__(ranks=ranks, timestamps=timestamps)
        self._bar: tqdm[Any] | None = None

    def event(self, event: Event) -> None:
        if isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, StepEnded):
            self._end_bar()
            mark = _coloured("failed", "31") if event.error else _coloured("done", "32")
            self.tell(f"{event.step}: {mark} in {event.seconds:.1f} s")
        elif isinstance(event, StatusChanged):
            self.tell(_coloured(state_line(event), _STATE_COLOURS.get(event.state, "33")))
        elif isinstance(event, Note):
            self.tell(event.message)

    def _progress(self, event: Progress) -> None:
        if self._bar is None:
            from tqdm import tqdm  # only when something is drawn: it is not free to load

            self._bar = tqdm(
                total=event.total if event.total >= 0 else None,
                desc=event.step,
                unit="B" if event.unit == "bytes" else event.unit,
                unit_scale=True,
                unit_divisor=1024,
                leave=False,
                delay=0.3,
            )
        self._bar.update(event.done - self._bar.n)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def close(self) -> None:
        self._end_bar()
        super().close()


def state_line(event: StatusChanged) -> str:
    """A state, its exit code and its reason in one line."""
    told = not event.exit_code or f"exit code {event.exit_code}" in event.reason
    code = "" if told else f", exit code {event.exit_code}"
    reason = f": {event.reason}" if event.reason else ""
    return f"Task {event.state}{code}{reason}"


def _coloured(text: str, code: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\033[{code}m{text}\033[0m"


def _write(text: str) -> None:
    """If its reader has enough, as `head` does, that is raised once; later output is dropped."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        raise


def _say(text: str) -> None:
    """Nobody has to listen to what Sojourn tells of its own work."""
    try:
        print(text, file=sys.stderr, flush=True)  # noqa: T201
    except BrokenPipeError:
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def show_error(error: SojournError) -> int:
    """Tell an error on standard error; returns the exit code for it."""
    _say(error.message if isinstance(error, Cancelled) else f"Error: {error.message}")
    if error.hint:
        _say(error.hint.strip())
    return error_code(error)


def error_row(error: SojournError) -> dict[str, Any]:
    """The `error` row of the documented schema."""
    problems = error.problems if isinstance(error, InvalidInput) else ()
    return {
        "type": "error",
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint.strip(),
        "problems": [{"path": p.path, "message": p.message} for p in problems],
    }


def error_code(error: SojournError) -> int:
    """What a command that ended with this error exits with."""
    if isinstance(error, Cancelled):
        return INTERRUPTED
    if isinstance(error, TaskFailed):
        return error.exit
    return 2 if isinstance(error, (InvalidInput, MissingDependency, AuthError)) else 1

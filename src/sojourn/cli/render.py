"""Events become words: on a terminal with progress, in plain lines when piped, or as JSON lines.

Results and logs go to standard output; what Sojourn tells of its own work goes to standard error.
With --json, standard output has a JSON object a line; only notes, which are for people, go to
standard error.

The details of a step are shown with --verbose only.
"""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

from sojourn.cli import screen, steps
from sojourn.cli.interrupts import INTERRUPTED
from sojourn.cli.screen import Coloured, Line, state_colour
from sojourn.core.errors import (
    AuthError,
    Cancelled,
    InvalidInput,
    MissingDependency,
    SojournError,
    TaskFailed,
)
from sojourn.core.escape import escaped
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
    from collections.abc import Mapping, Sequence

    from click import ClickException
    from tqdm import tqdm

__all__ = [
    "Renderer",
    "error_code",
    "error_row",
    "make_renderer",
    "show_error",
    "show_misuse",
    "show_unwritable",
    "state_text",
]

_CANCELLED = ("Cancelled", "KeyboardInterrupt")  # how the error of a step begins after Ctrl-C
_NO_BAR_BEFORE = 0.3  # seconds; most steps are over sooner


class Renderer(Protocol):
    """Turns events and results into output."""

    def __call__(self, event: Event) -> None:
        """Show an event."""

    def result(self, row: Mapping[str, Any], text: str | Sequence[Line]) -> None:
        """Show a result: its data with --json, else the text, or its lines."""

    def summary(self, row: Mapping[str, Any], text: str, state: str) -> None:
        """Say at the end how a task went: its data with --json, else one line."""

    def mark(self, text: str) -> None:
        """Say something between two lines of a log; not with --json, whose rows tell it."""

    def close(self) -> None:
        """Finish what is being drawn."""


def make_renderer(
    *,
    as_json: bool,
    ranks: bool = False,
    timestamps: bool = False,
    quiet: bool = False,
    document: bool = False,
    verbose: bool = False,
) -> Renderer:
    """The renderer for this output.

    `ranks`: tell whose line it is; `quiet`: logs only; `document`: with --json, standard output
    has the result and nothing else; `verbose`: the details of steps, too.
    """
    if as_json:
        return JsonRenderer(document=document)
    if sys.stderr.isatty() and not quiet:
        return TerminalRenderer(ranks=ranks, timestamps=timestamps, verbose=verbose)
    return PlainRenderer(ranks=ranks, timestamps=timestamps, quiet=quiet, verbose=verbose)


class JsonRenderer:
    """JSON lines, for programs."""

    def __init__(self, *, document: bool = False) -> None:
        self._document = document

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note):
            screen.say(event.message)
        elif not self._document:
            self.result(event.to_dict(), "")
        elif isinstance(event, Warned):
            screen.say(f"Warning: {event.message}")

    def result(self, row: Mapping[str, Any], text: str | Sequence[Line]) -> None:
        import json  # loaded only when it is asked for

        screen.write(json.dumps(row) + "\n")

    def summary(self, row: Mapping[str, Any], text: str, state: str) -> None:
        self.result(row, "")

    def mark(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class PlainRenderer:
    """Plain lines, for pipes and files."""

    _coloured: bool | None = None  # not known

    def __init__(
        self, *, ranks: bool, timestamps: bool, quiet: bool = False, verbose: bool = False
    ) -> None:
        self._ranks = ranks
        self._timestamps = timestamps
        self._quiet = quiet
        self._verbose = verbose
        self._open: tuple[int, int] | None = None  # whose line has no end yet on the screen
        self._partial: set[tuple[int, int]] = set()  # whose has none at all yet

    def __call__(self, event: Event) -> None:
        if isinstance(event, LogLine):
            self.log(event)
        elif isinstance(event, Warned):
            self.tell(Coloured("Warning:", screen.YELLOW), f" {self.brief(event.message)}")
        elif not self._quiet and (self._verbose or not _is_detail(event)):
            self.event(event)

    def event(self, event: Event) -> None:
        if isinstance(event, Note):
            self.tell(self.brief(event.message))
        elif isinstance(event, StepStarted):
            self.tell(steps.short(event.step))
        elif isinstance(event, StatusChanged):
            self.tell(state_line(event))

    def brief(self, message: str) -> str:
        """What is said of tasks and folders; --verbose has whole ids and paths."""
        return message if self._verbose else steps.brief(message)

    def log(self, line: LogLine) -> None:
        """A line of the script; the pieces of one are joined while no other comes between."""
        whose = (line.rank, line.attempt)
        if whose in self._partial and self._open != whose and not (line.text or line.partial):
            self._partial.discard(whose)
            return  # the end of a line that others have cut off already
        (self._partial.add if line.partial else self._partial.discard)(whose)
        if self._open not in (None, whose):
            screen.write("\n")
        head = ""
        if self._open != whose:
            head = f"{line.time} " if self._timestamps else ""
            head += f"[{line.rank}] " if self._ranks else ""
        screen.write(head + line.text + ("" if line.partial else "\n"))
        self._open = whose if line.partial else None

    def result(self, row: Mapping[str, Any], text: str | Sequence[Line]) -> None:
        if text:
            screen.write_lines(text.split("\n") if isinstance(text, str) else text)

    def summary(self, row: Mapping[str, Any], text: str, state: str) -> None:
        self.tell(text)

    def mark(self, text: str) -> None:
        self.tell(Coloured(text, screen.DIM))

    def tell(self, *parts: str | Coloured) -> None:
        if self._open is not None and screen.share_a_screen():
            self.end_line()
        screen.say(*parts, coloured=self._coloured)

    def end_line(self) -> None:
        """End the line of the script that has no end yet."""
        if self._open is not None:
            self._open = None
            screen.write("\n")

    def close(self) -> None:
        self.end_line()


class TerminalRenderer(PlainRenderer):
    """A terminal: the step at work, those before it with their times, bars with bytes and rate.

    The step at work stands in a line without an end, which gives way to all that is written.
    """

    _coloured = True

    def __init__(self, *, ranks: bool, timestamps: bool, verbose: bool = False) -> None:
        super().__init__(ranks=ranks, timestamps=timestamps, verbose=verbose)
        self._bar: tqdm[Any] | None = None
        self._steps: dict[tuple[str, str], float] = {}  # those at work, and when they began
        self._drawn = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            self._progress(event)
            return
        self._erase()
        if isinstance(event, StepStarted):
            self._steps[event.phase, event.step] = time.monotonic()
        elif isinstance(event, StepEnded):
            self._steps.pop((event.phase, event.step), None)
        super().__call__(event)
        self._draw()

    def event(self, event: Event) -> None:
        if isinstance(event, StepEnded):
            self.tell(*_outcome(event), f" in {event.seconds:.1f} s")
        elif isinstance(event, StatusChanged):
            self.tell(Coloured(state_line(event), state_colour(event.state)))
        elif isinstance(event, Note):
            self.tell(self.brief(event.message))

    def result(self, row: Mapping[str, Any], text: str | Sequence[Line]) -> None:
        self._erase()
        super().result(row, text)
        self._draw()

    def summary(self, row: Mapping[str, Any], text: str, state: str) -> None:
        self._erase()
        self.tell(Coloured(text, state_colour(state)))

    def close(self) -> None:
        self._erase()
        self._steps.clear()
        super().close()

    def _progress(self, event: Progress) -> None:
        if self._bar is None:
            began = [at for (_, step), at in self._steps.items() if step == event.step]
            if time.monotonic() - max(began, default=0.0) < _NO_BAR_BEFORE:
                return
            self._erase()
            if screen.share_a_screen():
                self.end_line()
            from tqdm import tqdm  # only when something is drawn: it is not free to load

            self._bar = tqdm(
                total=event.total if event.total >= 0 else None,
                initial=event.done,
                desc=escaped(event.step),
                unit="B" if event.unit == "bytes" else event.unit,
                unit_scale=True,
                unit_divisor=1024,
                leave=False,
                nrows=20,  # where a terminal does not know its own, nothing would be drawn
            )
        self._bar.update(event.done - self._bar.n)

    def _draw(self) -> None:
        if not self._steps:
            return
        if screen.share_a_screen():
            self.end_line()
        self._drawn = True
        # What is wider than the screen goes on in the next line, and could not be erased.
        phase, step = map(steps.short, next(reversed(self._steps)))
        if phase and not self._verbose:
            step = f"{phase}: {step[:1].lower()}{step[1:]}"
        screen.print_(escaped(f"{step} ...")[: screen.columns() - 1])

    def _erase(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._drawn:
            self._drawn = False
            # The whole line, because a terminal adds ^C to what stands there.
            screen.print_(f"\r{' ' * (screen.columns() - 1)}\r")


def _is_detail(event: Event) -> bool:
    return isinstance(event, StepStarted | StepEnded) and bool(event.phase)


def _outcome(event: StepEnded) -> tuple[str | Coloured, ...]:
    if not event.error:
        verb, space, rest = steps.done(steps.short(event.step)).partition(" ")
        return Coloured(verb, screen.GREEN), space + rest
    if event.error.startswith(_CANCELLED):
        return f"{steps.short(event.step)}: ", Coloured("cancelled", screen.YELLOW)
    return f"{steps.short(event.step)}: ", Coloured("failed", screen.RED)


def state_line(event: StatusChanged) -> str:
    """A state, its exit code and its reason in one line."""
    return f"Task {state_text(event.state, event.exit_code, event.reason)}"


def state_text(state: str, exit_code: int | None, reason: str) -> str:
    """The same, to follow the name of the task; an exit code is told once, and 0 not at all."""
    told = not exit_code or f"exit code {exit_code}" in reason
    code = "" if told else f", exit code {exit_code}"
    return f"{state}{code}{f': {reason}' if reason else ''}"


def show_unwritable(error: OSError) -> int:
    """The same for what was not written by us; returns the exit code."""
    screen.silence(sys.stdout)
    return show_error(screen.unwritable(error))


def show_error(error: SojournError) -> int:
    """Tell an error on standard error; returns the exit code for it."""
    if isinstance(error, Cancelled):
        screen.say(error.message)
    else:
        screen.say(Coloured("Error:", screen.RED), f" {error.message}")
    if error.hint:
        screen.say(error.hint.strip())
    return error_code(error)


def show_misuse(error: ClickException) -> None:
    """Tell what is wrong with the command line itself, which may repeat what was typed."""
    text = io.StringIO()
    error.show(file=text)
    for line in text.getvalue().expandtabs(4).splitlines():  # click indents choices with tabs
        label, colon, rest = line.partition(":")
        error_line = label == "Error" and colon
        screen.say(*((Coloured("Error:", screen.RED), rest) if error_line else (line,)))


error_row = SojournError.to_dict


def error_code(error: SojournError) -> int:
    """What a command that ended with this error exits with."""
    if isinstance(error, Cancelled):
        return INTERRUPTED
    if isinstance(error, TaskFailed):
        return error.exit
    return 2 if isinstance(error, (InvalidInput, MissingDependency, AuthError)) else 1

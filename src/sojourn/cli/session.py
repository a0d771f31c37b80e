"""What every command has: a renderer, a context, and a safe Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sojourn.cli.interrupts import AT_ONCE, answered, listening
from sojourn.cli.render import Renderer, error_code, error_row, make_renderer
from sojourn.cli.screen import Unwritable
from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, InvalidInput, SojournError

if TYPE_CHECKING:
    from types import FrameType

__all__ = [
    "Session",
    "check_into",
    "complete_id",
    "display_options",
    "id_argument",
    "ids_argument",
    "into_option",
    "is_verbose",
    "opened",
    "output_option",
    "told",
    "tty_option",
]

_VERBOSE = "sojourn.verbose"
_BROKEN_PIPE = 141  # as a shell has it for a program that SIGPIPE ended
_Function = TypeVar("_Function", bound=Callable[..., Any])


_UNFINISHED = "Cancelled before the last step could end"


class Session:
    """One command's run. The first Ctrl-C cancels in an orderly way, a third ends at once."""

    def __init__(self, renderer: Renderer, *, as_json: bool = False) -> None:
        self.renderer = renderer
        self.ctx = Context(renderer)
        self.parting = "Run the command again to resume."  # said if it has to be ended
        self._as_json = as_json
        self.interrupts = 0
        self.terminated = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self.terminated = True  # by a program, such as `timeout`: nobody is there to ask
        else:
            self.interrupts += 1
        if self.interrupts >= AT_ONCE:
            raise KeyboardInterrupt
        self.ctx.cancel()

    def may_end(self) -> bool:
        """Whether nothing has to be undone before it ends."""
        return not self.ctx.is_whole

    def last_words(self) -> tuple[int, bytes]:
        """For a command that has to be ended because what it waits for does not end."""
        error = Cancelled(_UNFINISHED, hint=self.parting)
        if self._as_json:
            import json

            return 1, f"{json.dumps(error_row(error))}\n".encode()
        begin = "\n" if os.isatty(2) else ""  # what is drawn there has no end yet
        return 2, f"{begin}{error}\n".encode()

    def renew(self) -> None:
        """Go on after a cancellation, with a new context."""
        answered()
        self.ctx = Context(self.renderer)


@contextmanager
def opened(*, as_json: bool, **how: bool) -> Iterator[Session]:
    """A session whose signals are handled."""
    renderer = make_renderer(as_json=as_json, verbose=is_verbose(), **how)
    session = Session(renderer, as_json=as_json)
    with listening(session):
        yield from _guarded(session, as_json)


def _guarded(session: Session, as_json: bool) -> Iterator[Session]:
    try:
        session.ctx.check()  # a signal may have come before
        yield session
    except BrokenPipeError as error:
        raise click.exceptions.Exit(_BROKEN_PIPE) from error
    except (OSError, SojournError) as error:
        known = told(error)
        if not as_json or isinstance(known, Unwritable):
            raise known from error
        session.renderer.result(error_row(known), "")
        raise click.exceptions.Exit(error_code(known)) from error
    finally:
        session.renderer.close()


def told(error: OSError | SojournError) -> SojournError:
    """What the system says, as an error of ours."""
    if isinstance(error, SojournError):
        return error
    if isinstance(error, FileNotFoundError) and not error.filename and _is_nowhere():
        return SojournError("The current folder no longer exists", hint="Change to another folder.")
    where = f"{error.filename}: " if error.filename else ""
    return SojournError(f"{where}{error.strerror or error}")


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def display_options(function: _Function) -> _Function:
    """Adds --json, and --verbose, which `opened` asks for itself."""
    as_json = click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print JSON lines; see docs/reference.md.",
    )
    verbose = click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="Show details.",
    )
    return as_json(verbose(function))


def _remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_VERBOSE] = True


def is_verbose() -> bool:
    """Whether the user wants details: every step, whole IDs."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx and ctx.meta.get(_VERBOSE))


def tty_option(function: _Function) -> _Function:
    """Adds --tty and --no-tty; None if neither is given."""
    return click.option(
        "-t/-T",
        "--tty/--no-tty",
        "tty",
        default=None,
        help="Use a terminal or none (default: a terminal if you are at one).",
    )(function)


def complete_id(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion for ids."""
    from sojourn import api

    return [h.id for h in api.list_tasks() if h.id.startswith((incomplete, f"tpi-{incomplete}"))]


def id_argument(function: _Function) -> _Function:
    """Adds the argument ID; None if it is not given, see `chosen`."""
    return click.argument("id", required=False, shell_complete=complete_id)(function)


def ids_argument(function: _Function) -> _Function:
    """Adds the argument IDS: any number of them."""
    return click.argument("ids", nargs=-1, shell_complete=complete_id)(function)


def into_option(text: str) -> Callable[[_Function], _Function]:
    """Adds --into; `check_into` has to be called."""
    return click.option("--into", type=click.Path(file_okay=False, readable=False), help=text)


def check_into(into: str | None) -> None:
    """A variable that is empty by mistake must not mean the workdir."""
    if into == "":
        raise InvalidInput("into", "must not be empty; specify a folder")


def output_option(function: _Function) -> _Function:
    """Adds --output."""
    return click.option(
        "--output", help="Download this folder of the workdir instead of the output."
    )(function)

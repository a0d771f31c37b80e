"""Commands that do one thing to several tasks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sojourn.cli.chosen import chosen
from sojourn.cli.gone import gone_meanwhile
from sojourn.cli.render import error_code, error_row, show_error
from sojourn.cli.screen import Unwritable, share_a_screen
from sojourn.cli.session import is_verbose, opened, told
from sojourn.cli.steps import name
from sojourn.core.errors import Cancelled, IntegrityError, NotFound, SojournError
from sojourn.core.events import StatusChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sojourn.api import Handle
    from sojourn.cli.session import Session

__all__ = ["deleted_meanwhile", "gone_since_listed", "tell_deleted", "to_each", "with_state"]


def to_each(
    ids: Sequence[str],
    as_json: bool,
    verb: Callable[[Session, Handle], None],
    check: Callable[[Handle], None] = lambda _: None,
    gone: Callable[[Session, str], bool] | None = None,
) -> int:
    """Do it to each task, without ids to the last one of this folder; returns the exit code.

    One that fails does not keep it from the others. What is not there, unless `gone` takes that
    for done, and what `check` refuses, is refused before anything is done. The exit code is that
    of the first error.
    """
    with opened(as_json=as_json) as session:
        handles = _resolved(session, ids, gone)
        for handle in handles:
            check(handle)
        if len(handles) == 1:
            verb(session, handles[0])
            return 0
        codes = [_attempted(session, handle, as_json, verb) for handle in handles]
        return next((code for code in codes if code), 0)


def tell_deleted(session: Session, id: str) -> None:
    """Say it on standard output, unless its reader has just seen the step that says so."""
    seen = sys.stderr.isatty() and share_a_screen()
    session.renderer.result({"type": "deleted", "id": id}, "" if seen else f"Deleted {id}")


def deleted_meanwhile(session: Session, id: str) -> bool:
    """Whether another command of this computer deleted a task since this one began."""
    found = gone_meanwhile(id)
    if found:
        session.ctx.note(found[1].message)
        tell_deleted(session, found[0])
    return found is not None


def gone_since_listed(session: Session, id: str) -> bool:
    """For tasks that this command has listed: that one is not there any more is no error."""
    shown = id if is_verbose() else name(id)
    session.ctx.note(f"Task {shown} was deleted by another command")
    return True


def with_state(verb: Callable[[Handle], None]) -> Callable[[Session, Handle], None]:
    """The same, showing the state that a task is in afterwards, if it can be read."""

    def done(session: Session, handle: Handle) -> None:
        verb(handle)
        try:
            now = handle.status()
        except IntegrityError as error:  # a machine may have damaged what tells it
            session.ctx.warn(f"Could not read the state of {handle.id}: {error.message}")
            return
        session.renderer(StatusChanged(handle.id, str(now.state), now.reason, now.exit_code))

    return done


def _resolved(
    session: Session, ids: Sequence[str], gone: Callable[[Session, str], bool] | None
) -> list[Handle]:
    """The tasks, each once, however often and by whichever beginning it is named."""
    wanted: Sequence[str | None] = ids or [None]
    found = {}
    for each in wanted:
        try:
            handle = chosen(session, each)
        except NotFound:
            if each is None or gone is None or not gone(session, each):
                raise
        else:
            found[handle.id] = handle
    return list(found.values())


def _attempted(
    session: Session, handle: Handle, as_json: bool, verb: Callable[[Session, Handle], None]
) -> int:
    try:
        verb(session, handle)
    except (Cancelled, BrokenPipeError, Unwritable):
        raise  # these are about the command, not about one task
    except (OSError, SojournError) as error:
        return _shown(session, handle, as_json, told(error))
    return 0


def _shown(session: Session, handle: Handle, as_json: bool, error: SojournError) -> int:
    session.renderer.close()
    if as_json:
        session.renderer.result(error_row(error) | {"id": handle.id}, "")
        return error_code(error)
    if handle.id not in error.message:
        error.message = f"{handle.id}: {error.message}"
    return show_error(error)

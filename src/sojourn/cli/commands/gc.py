"""`sojourn gc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from sojourn.cli.session import json_option, opened
from sojourn.core.errors import InvalidInput, NotFound, SojournError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.api import Handle
    from sojourn.cli.session import Session
    from sojourn.core.interfaces import MadeImage
    from sojourn.runners import Orphan


@click.command()
@click.option("-y", "--yes", is_flag=True, help="Delete them, after downloading their results.")
@json_option
@click.pass_context
def gc(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Show finished and incomplete tasks, unfinished images and runners without a machine.

    Runners are those of the repository that `sojourn runner launch` would find here. With --yes,
    deletes all of them.

    Downloads results first. Like `sojourn run`, keeps a task that succeeded but left nothing in its
    output. Also keeps a task whose results cannot be downloaded because it has no workdir, or a
    workdir on another computer.

    \b
    sojourn gc
    sojourn gc --yes
    """
    from sojourn import api, runners

    with opened(as_json=as_json) as session:
        found = [
            *(_task(handle, reason) for handle, reason in api.gc(ctx=session.ctx)),
            *(_image(session, *each) for each in api.images.garbage(ctx=session.ctx)),
            *(_runner(session, each) for each in runners.garbage(ctx=session.ctx)),
        ]
        kept = [each for each in found if not _told(session, each, yes=yes)]
        if found and not yes:
            session.ctx.note("Run `sojourn gc --yes` to delete them.")
        elif not found:
            session.ctx.note("Nothing to delete.")
    ctx.exit(1 if kept else 0)


class _Garbage(NamedTuple):
    """`kind` comes before its name in texts."""

    kind: str
    id: str
    reason: str
    remove: Callable[[], None]


def _task(handle: Handle, reason: str) -> _Garbage:
    def remove() -> None:
        _refuse_homeless(handle)
        handle.delete()

    return _Garbage("", handle.id, reason, remove)


def _image(session: Session, cloud: str, image: MadeImage) -> _Garbage:
    def remove() -> None:
        from sojourn import api

        api.images.delete(image.name, cloud=cloud, region=image.region, ctx=session.ctx)

    return _Garbage("image ", image.name, "making it did not finish", remove)


def _runner(session: Session, found: Orphan) -> _Garbage:
    return _Garbage(
        "runner ",
        found.registered.name,
        f"registered at {found.repo}, but its machine is gone",
        lambda: found.unregister(session.ctx),
    )


def _told(session: Session, found: _Garbage, *, yes: bool) -> bool:
    """False if it could not be removed, and should have been."""
    error = ""
    if yes:
        try:
            found.remove()
        except SojournError as raised:
            error = raised.message
    row = {
        "type": "garbage",
        "id": found.id,
        "reason": found.reason,
        "removed": yes and not error,
        "error": error,
    }
    text = f"{found.kind}{found.id}  {found.reason}"
    if yes:
        text = f"Kept {text}: {error}" if error else f"Deleted {text}"
    session.renderer.result(row, text)
    return not error


def _refuse_homeless(handle: Handle) -> None:
    """`delete` brings results without a home here; but nobody named this task, or this folder."""
    try:
        storage = handle.task().storage
    except NotFound:
        return  # it was never completely created: there are no results
    if storage.output and not storage.workdir and not handle.left_nothing():
        raise InvalidInput(
            "workdir",
            "not set, so the results have no folder to go to. "
            f"Run `sojourn delete {handle.id} --into FOLDER` to choose one",
        )

"""`sojourn gc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import json_option, opened
from sojourn.core.errors import InvalidInput, NotFound, SojournError

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.cli.session import Session
    from sojourn.core.interfaces import MadeImage

_UNFINISHED = "making it did not finish"


@click.command()
@click.option("-y", "--yes", is_flag=True, help="Delete them, after downloading their results.")
@json_option
@click.pass_context
def gc(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Show finished and incomplete tasks and unfinished images; with --yes, delete them.

    Downloads results first. Like `sojourn run`, keeps a task that succeeded but left nothing in its
    output. Also keeps a task whose results cannot be downloaded because it has no workdir, or a
    workdir on another computer.

    \b
    sojourn gc
    sojourn gc --yes
    """
    from sojourn import api

    kept = 0
    with opened(as_json=as_json) as session:
        found = api.gc(ctx=session.ctx)
        for handle, reason in found:
            row = {
                "type": "garbage",
                "id": handle.id,
                "reason": reason,
                "removed": False,
                "error": "",
            }
            text = f"{handle.id}  {reason}"
            if yes:
                try:
                    _refuse_homeless(handle)
                    handle.delete()
                    row["removed"] = True
                    text = f"Deleted {text}"
                except SojournError as error:
                    kept += 1
                    row["error"] = error.message
                    text = f"Kept {text}: {error.message}"
            session.renderer.result(row, text)
        unfinished = api.images.garbage(ctx=session.ctx)
        for cloud, image in unfinished:
            kept += _told_of_image(session, cloud, image, yes=yes)
        found_any = bool(found or unfinished)
        if found_any and not yes:
            session.ctx.note("Run `sojourn gc --yes` to delete them.")
        elif not found_any:
            session.ctx.note("Nothing to delete.")
    ctx.exit(1 if kept else 0)


def _told_of_image(session: Session, cloud: str, image: MadeImage, *, yes: bool) -> int:
    """How many were kept that should not have been: one, or none."""
    from sojourn import api

    row = {
        "type": "garbage",
        "id": image.name,
        "reason": _UNFINISHED,
        "removed": False,
        "error": "",
    }
    text = f"image {image.name}  {_UNFINISHED}"
    if yes:
        try:
            api.images.delete(image.name, cloud=cloud, region=image.region, ctx=session.ctx)
            row["removed"] = True
            text = f"Deleted {text}"
        except SojournError as error:
            row["error"] = error.message
            text = f"Kept {text}: {error.message}"
    session.renderer.result(row, text)
    return int(bool(row["error"]))


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

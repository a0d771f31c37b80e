"""`sojourn gc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import json_option, opened
from sojourn.core.errors import InvalidInput, NotFound, SojournError

if TYPE_CHECKING:
    from sojourn.api import Handle


@click.command()
@click.option("-y", "--yes", is_flag=True, help="Remove it, after bringing results home.")
@json_option
@click.pass_context
def gc(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Show what finished and broken-off tasks left; with --yes, remove it.

    Results come home first. A task that succeeded and left nothing in its output stays, as after
    `sojourn run`. A task whose results cannot be brought home, because it has no workdir, or one
    on another computer, stays.

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
                    text = f"Removed {text}"
                except SojournError as error:
                    kept += 1
                    row["error"] = error.message
                    text = f"Kept {text}: {error.message}"
            session.renderer.result(row, text)
        if found and not yes:
            session.ctx.note("Remove them with: sojourn gc --yes")
        elif not found:
            session.ctx.note("There is nothing to remove.")
    ctx.exit(1 if kept else 0)


def _refuse_homeless(handle: Handle) -> None:
    """`delete` brings results without a home here; but nobody named this task, or this folder."""
    try:
        storage = handle.task().storage
    except NotFound:
        return  # it was never completely created: there are no results
    if storage.output and not storage.workdir and not handle.left_nothing():
        raise InvalidInput(
            "workdir",
            "there is none that the results belong in; "
            f"say where they should go: sojourn delete {handle.id} --into FOLDER",
        )

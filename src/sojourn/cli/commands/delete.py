"""`sojourn delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.each import to_each
from sojourn.cli.session import (
    Session,
    check_into,
    ids_argument,
    into_option,
    json_option,
    opened,
    output_option,
)

if TYPE_CHECKING:
    from sojourn.api import Handle


@click.command()
@ids_argument
@into_option("Bring the results into this folder instead of the task's own workdir.")
@output_option
@click.option("--no-pull", is_flag=True, help="Do not bring the results home: they are lost.")
@click.option(
    "--force",
    is_flag=True,
    help="Remove everything even if that fails; machines get 10 seconds to stop.",
)
@json_option
def delete(
    ids: tuple[str, ...], into: str | None, output: str, no_pull: bool, force: bool, as_json: bool
) -> None:
    """Stop the machines, bring the results home, then remove all that was made.

    If the results cannot be brought home, nothing is removed.

    \b
    sojourn delete tpi-brave-amber-otter
    sojourn delete brave calm --no-pull
    """

    with opened(as_json=as_json):
        check_into(into)

    def delete_one(session: Session, handle: Handle) -> None:
        handle.delete(into=into, output=output, fetch=not no_pull, force=force)
        session.renderer.result({"type": "deleted", "id": handle.id}, f"Deleted {handle.id}")

    to_each(ids, as_json, delete_one)

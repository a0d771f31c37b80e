"""`sojourn gc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from sojourn.cli.chosen import chosen
from sojourn.cli.foreign import refuse_homeless
from sojourn.cli.session import display_options, ids_argument, is_verbose, opened
from sojourn.cli.steps import brief, name
from sojourn.core.errors import InvalidInput, SojournError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sojourn.api import Handle
    from sojourn.cli.session import Session
    from sojourn.core.interfaces import MadeImage
    from sojourn.engine.gc import Garbage
    from sojourn.runners import Orphan


@click.command()
@ids_argument
@click.option("--repo", metavar="URL", help="Look for runners of this one (default: found here).")
@click.option("--driver", help="Forge of --repo (default: found from it).")
@click.option("-y", "--yes", is_flag=True, help="Delete them, after downloading their results.")
@display_options
@click.pass_context
def gc(
    ctx: click.Context,
    ids: Sequence[str],
    repo: str | None,
    driver: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Show finished and incomplete tasks, unfinished images and runners without a machine.

    Runners are those of the repository that `sojourn runner launch` would find here, if this
    computer launched others of its forge with the same token, or of --repo. With --yes, deletes all
    of them, but tasks that another computer created only if you name their IDS.

    Downloads results first. Like `sojourn run`, keeps a task that succeeded but left nothing in its
    output. Also keeps a task whose results cannot be downloaded because it has no workdir, or a
    workdir on another computer.

    \b
    sojourn gc
    sojourn gc --yes
    sojourn gc --yes brave
    """
    with opened(as_json=as_json) as session:
        found = list(_named(session, ids) if ids else _all(session, repo, driver))
        kept = [each for each in found if not _told(session, each, yes=yes)]
        _advise(session, found, yes=yes)
    ctx.exit(1 if kept else 0)


class _Found(NamedTuple):
    """`kind` comes before its name in texts. `creator`: another computer's; left alone."""

    kind: str
    id: str
    reason: str
    remove: Callable[[], None]
    creator: str = ""


def _all(session: Session, repo: str | None, driver: str | None) -> Iterator[_Found]:
    from sojourn import api, runners

    for handle, item in api.garbage(ctx=session.ctx):
        yield _task(handle, item, "" if item.here else _creator(item))
    for image in api.images.garbage(ctx=session.ctx):
        yield _image(session, *image)
    for runner in runners.garbage(repo=repo or "", driver=driver or "", ctx=session.ctx):
        yield _runner(session, runner)


def _named(session: Session, ids: Sequence[str]) -> Iterator[_Found]:
    from sojourn import api

    wanted = {chosen(session, id).id for id in ids}  # noqa: A001
    found = {handle.id: (handle, item) for handle, item in api.garbage(ctx=session.ctx)}
    for id in sorted(wanted - set(found)):  # noqa: A001
        raise InvalidInput(
            "id",
            f"{id} is in use, or its results need a decision. "
            f"Run `sojourn status {id}` for details, or `sojourn delete {id}` to delete it",
        )
    for id in sorted(wanted):  # noqa: A001
        yield _task(*found[id])


def _creator(item: Garbage) -> str:
    return ", ".join(item.creators) or "another computer"


def _task(handle: Handle, item: Garbage, creator: str = "") -> _Found:
    def remove() -> None:
        refuse_homeless(handle)
        handle.delete()

    return _Found("", handle.id, item.reason, remove, creator)


def _image(session: Session, cloud: str, image: MadeImage) -> _Found:
    def remove() -> None:
        from sojourn import api

        api.images.delete(image.name, cloud=cloud, region=image.region, ctx=session.ctx)

    return _Found("image ", image.name, "making it did not finish", remove)


def _runner(session: Session, found: Orphan) -> _Found:
    return _Found(
        "runner ",
        found.registered.name,
        f"registered at {found.repo}, but its machine is gone",
        lambda: found.unregister(session.ctx),
    )


def _told(session: Session, found: _Found, *, yes: bool) -> bool:
    """False if it could not be removed, and should have been."""
    error = ""
    remove = yes and not found.creator
    if remove:
        try:
            found.remove()
        except SojournError as raised:
            error = raised.message
    row = {
        "type": "garbage",
        "id": found.id,
        "reason": found.reason,
        "removed": remove and not error,
        "error": error,
        "creator": found.creator,
    }
    shown = found.id if found.kind or is_verbose() else name(found.id)
    text = f"{found.kind}{shown}  {found.reason}"
    if found.creator:
        text += f"  (created by {found.creator})"
    if remove:
        text = (
            f"Kept {text}: {error if is_verbose() else brief(error)}"
            if error
            else f"Deleted {text}"
        )
    elif yes:
        text = f"Left {text}"
    session.renderer.result(row, text)
    return not error


def _advise(session: Session, found: Sequence[_Found], *, yes: bool) -> None:
    others = [each.id for each in found if each.creator]
    if not found:
        session.ctx.note("Nothing to delete.")
    elif not yes and len(others) < len(found):
        session.ctx.note("Run `sojourn gc --yes` to delete them.")
    if others:
        session.ctx.note(
            "Tasks of other computers are deleted only by name. "
            f"Run `sojourn gc --yes {others[0]}` to delete one."
        )

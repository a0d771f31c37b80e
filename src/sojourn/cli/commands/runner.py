"""`sojourn runner`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from sojourn.cli.each import deleted_meanwhile, tell_deleted, to_each
from sojourn.cli.session import Session, display_options, is_verbose, opened
from sojourn.cli.taskoptions import PATH, machine_fields, machine_options
from sojourn.forges import DRIVERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.api import Handle
    from sojourn.core.runner import Runner
    from sojourn.core.status import Status
    from sojourn.runners import Launched
    from sojourn.taskfiles.changes import Fields


@click.group()
def runner() -> None:
    """Launch CI runners, list and delete them.

    \b
    sojourn runner launch --machine m+t4 --labels gpu
    sojourn runner list
    """


@runner.command(options_metavar="[OPTIONS]")
@click.option("--driver", help=f"Forge: {', '.join(DRIVERS)} (default: found from the repository).")
@click.option("--repo", metavar="URL", help="Repository or organization (default: found here).")
@click.option("--token", help="Token of the forge (default: CML_TOKEN, REPO_TOKEN or its own).")
@click.option("--labels", default="cml", show_default=True, help="Comma-separated labels.")
@click.option(
    "--idle-timeout",
    metavar="DURATION",
    help="End the runner after this long without a job (default: 5m; 0: never).",
)
@click.option(
    "--single/--no-single",
    default=None,
    help="End the runner after one job (default: for public repositories).",
)
@click.option("--reuse", is_flag=True, help="Do nothing if a runner with these labels is online.")
@click.option("--reuse-idle", is_flag=True, help="Do nothing if such a runner is online and idle.")
@click.option("--startup-script", type=PATH, help="Script to run on the machine first.")
@click.option(
    "--token-on-machine/--no-token-on-machine",
    default=None,
    help="Let the machine use the token, to unregister itself and to re-run lost jobs.",
)
@click.option("--ca-file", type=PATH, help="Certificates (PEM) of a forge with a private CA.")
@click.option(
    "--docker",
    is_flag=True,
    help="Let jobs use the machine's Docker, with which they can become root there.",
)
@click.option(
    "--docker-volumes",
    metavar="VOLUME",
    multiple=True,
    help="Volume for the containers of jobs, such as /data:/data (GitLab only; repeatable).",
)
@click.option(
    "--upload-program",
    is_flag=True,
    help="Upload the runner program, for machines that cannot download it.",
)
@machine_options("no limit")
@display_options
def launch(as_json: bool, startup_script: str | None, **options: Any) -> None:
    """Launch a runner and wait until it is online; prints its ID.

    The ID is one of its labels, too, so a job can ask for this very runner. If the machine is
    lost, another one takes its place as the same runner.

    \b
    sojourn runner launch --machine m+t4 --spot 0 --labels gpu
    sojourn runner launch --repo https://github.com/acme/widgets --single
    """
    from sojourn import runners
    from sojourn.taskfiles.reading import read_text

    with opened(as_json=as_json) as session:
        text = read_text(Path(startup_script)) if startup_script else ""
        fields = cast("Fields", machine_fields(options))
        made = runners.launch(startup_script=text, ctx=session.ctx, **fields)
        if made is not None:
            session.renderer.result({"type": "launched", "id": made.id}, made.id)


@runner.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Print IDs only, one per line.")
@display_options
def list_(quiet: bool, as_json: bool) -> None:
    """List all runners, with the states of their machines.

    \b
    sojourn runner list
    """
    from sojourn import runners
    from sojourn.api import rows
    from sojourn.cli.rows import task_table

    with opened(as_json=as_json) as session:
        found = runners.list(ctx=session.ctx)
        if as_json:
            for row in found:
                session.renderer.result(rows.runner(*row), "")
        elif quiet:
            session.renderer.result({}, [each.id for each, _, _ in found])
        elif found:
            lines = [_columns(*row) for row in found]
            session.renderer.result({}, task_table(lines, _HEADER, whole=is_verbose()))
        else:
            session.ctx.note("No runners found. Run `sojourn runner launch --help` to start one.")


_HEADER = ("ID", "STATE", "CLOUD", "REPO", "LABELS", "REASON")


def _columns(found: Launched, what: Runner, status: Status) -> tuple[str, ...]:
    labels = ",".join(what.labels)
    return (found.id, str(status.state), found.cloud, what.repo, labels, status.reason)


@runner.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--token", default="", help="Token of the forge (default: as in `launch`).")
@click.option("--repo", default="", help="Repository that the token is for (default: as found).")
@click.option("--force", is_flag=True, help="Delete even if it is running a job.")
@click.option("--ca-file", type=PATH, help="Certificates (PEM) of a forge with a private CA.")
@display_options
@click.pass_context
def delete(
    ctx: click.Context,
    ids: Sequence[str],
    token: str,
    repo: str,
    force: bool,
    ca_file: str | None,
    as_json: bool,
) -> None:
    """Unregister runners, then delete their machines.

    \b
    sojourn runner delete tpi-brave-amber-otter
    """
    from sojourn import runners
    from sojourn.core.errors import IntegrityError, InvalidInput, NotFound
    from sojourn.runners.tokens import forge_of

    seen: set[str] = set()

    def of_one_forge(handle: Handle) -> None:
        with suppress(IntegrityError, NotFound):  # `remove` tells
            what = handle.task().runner
            seen.update([forge_of(what.repo)] if what and token else [])
        if len(seen) > 1:
            raise InvalidInput("token", f"cannot be for all of {', '.join(sorted(seen))}")

    def delete_one(session: Session, handle: Handle) -> None:
        runners.Launched.of(handle).remove(
            token=token, force=force, ca_file=ca_file or "", repo=repo
        )
        tell_deleted(session, handle.id)

    ctx.exit(to_each(ids, as_json, delete_one, of_one_forge, deleted_meanwhile))

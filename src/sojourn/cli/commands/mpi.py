"""`sojourn mpi`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sojourn.cli.commands.mpirun import run
from sojourn.cli.session import display_options, opened
from sojourn.core.operators import NAMESPACE

if TYPE_CHECKING:
    from sojourn.core.operators import Operator


@click.group()
def mpi() -> None:
    """Run MPI programs on several machines.

    A cluster needs mpi-operator for it, once, for all its users.

    \b
    sojourn mpi run hpl --machines 3 --slots 2 --file HPL.dat=@HPL.dat -- xhpl
    sojourn mpi install
    sojourn mpi status
    """


mpi.add_command(run)
_cloud = click.option(
    "--cloud", default="", metavar="NAME", help="Named cloud (default: this computer's cluster)."
)


@mpi.command()
@click.option("--namespace", default="", help=f"Namespace of its own (default: {NAMESPACE}).")
@click.option("--image", default="", help="Copy of its image, if the cluster cannot pull it.")
@_cloud
@display_options
def install(namespace: str, image: str, cloud: str, as_json: bool) -> None:
    """Install mpi-operator, and wait until it is ready.

    If another tool installed one, it is left as it is. Run it again to change the image, or to
    complete an installation that was interrupted.

    \b
    sojourn mpi install
    sojourn mpi install --image registry.example.com/mpi-operator:0.8.2
    """
    from sojourn.api import mpi as operator

    with opened(as_json=as_json) as session:
        found = operator.install(namespace=namespace, image=image, cloud=cloud, ctx=session.ctx)
        text = f"Installed {found}" if found.ours else f"Found {found}"
        session.renderer.result(_row(found), text)


@mpi.command()
@click.option("--force", is_flag=True, help="Remove it even if MPIJobs exist; deletes them, too.")
@_cloud
@display_options
def uninstall(force: bool, cloud: str, as_json: bool) -> None:
    """Remove mpi-operator, if Sojourn installed it.

    \b
    sojourn mpi uninstall
    """
    from sojourn.api import mpi as operator

    with opened(as_json=as_json) as session:
        removed = operator.uninstall(force=force, cloud=cloud, ctx=session.ctx)
        text = "Removed mpi-operator" if removed else []
        session.renderer.result({"type": "mpi-operator-removed", "removed": removed}, text)
        if not removed:
            session.ctx.note("mpi-operator is not installed.")


@mpi.command()
@_cloud
@display_options
@click.pass_context
def status(ctx: click.Context, cloud: str, as_json: bool) -> None:
    """Show which mpi-operator there is, and if it is ready.

    Exits with 1 if there is none, or if it is not ready. Without the right to list deployments,
    only tells that there is one.

    \b
    sojourn mpi status
    """
    from sojourn.api import mpi as operator
    from sojourn.cli.rows import table

    with opened(as_json=as_json) as session:
        found = operator.status(cloud=cloud, ctx=session.ctx)
        if found is None:
            session.renderer.result(_row(None), "mpi-operator is not installed")
        else:
            session.renderer.result(_row(found), table(_lines(found)))
    ctx.exit(0 if found and _state(found) != "not ready" else 1)


def _row(found: Operator | None) -> dict[str, Any]:
    if found is None:
        return {"type": "mpi-operator", "installed": False}
    return {"type": "mpi-operator", "installed": True, **found.to_dict()}


def _lines(found: Operator) -> list[tuple[str, str]]:
    return [
        ("state", _state(found)),
        ("version", found.version or "unknown"),
        ("namespace", found.namespace or "unknown"),
        ("image", found.image or "unknown"),
        ("installed by", "Sojourn" if found.ours else "another tool"),
    ]


def _state(found: Operator) -> str:
    if found.ready:
        return "ready"
    return "not ready" if found.namespace else "unknown"

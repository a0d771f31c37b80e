"""What MPI tasks need in a cluster: mpi-operator, which its administrator installs once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import clouds
from sojourn.api.telling import OnEvent, context_for

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.operators import Operator

__all__ = ["install", "status", "uninstall"]


def install(
    *,
    namespace: str = "",
    image: str = "",
    cloud: str = "",
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
) -> Operator:
    """Install the operator and wait until it is ready; one that is there already is found.

    `namespace`: by default `mpi-operator`. `image`: a copy of its image, for clusters that cannot
    pull the released one. Ours changes to another image; one of others is left as it is. `cloud`:
    by default the cluster of this computer's own configuration, as everywhere here.
    """
    ctx = ctx or context_for(on_event)
    return clouds.mpi_operator(cloud).install(ctx, namespace, image)


def uninstall(
    *,
    force: bool = False,
    cloud: str = "",
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
) -> bool:
    """Remove what `install` made; whether there was anything.

    Refused while MPIJobs exist. `force`: they are deleted with it.
    """
    ctx = ctx or context_for(on_event)
    return clouds.mpi_operator(cloud).uninstall(ctx, force=force)


def status(
    *, cloud: str = "", on_event: OnEvent | None = None, ctx: Context | None = None
) -> Operator | None:
    """The operator that there is, whoever installed it; None if there is none."""
    ctx = ctx or context_for(on_event)
    return clouds.mpi_operator(cloud).look(ctx)

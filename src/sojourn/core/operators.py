"""The program in a cluster that carries out MPI tasks, and what a cloud that needs one implements.

Others call it mpi-operator. It is the administrator's, not a task's: tasks of all users share it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["IMAGE", "NAMESPACE", "MpiOperator", "Operator"]

NAMESPACE = "mpi-operator"
"""Where it is installed unless somebody says otherwise."""

IMAGE = "mpioperator/mpi-operator:0.8.2"
"""The release that this version of Sojourn installs."""


@dataclass(frozen=True)
class Operator:
    """The operator as observed; what we may not see of it is empty.

    `ready`: it carries out jobs. `ours`: Sojourn installed it, so Sojourn may remove it.
    """

    namespace: str = ""
    image: str = ""
    version: str = ""
    ready: bool = False
    ours: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        version = f" {self.version}" if self.version else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"mpi-operator{version}{where}"


class MpiOperator(Protocol):
    """Installs and removes the operator. Each verb can be repeated."""

    def look(self, ctx: Context) -> Operator | None:
        """What there is, by whoever. Absent: None."""

    def install(self, ctx: Context, namespace: str = "", image: str = "") -> Operator:
        """Install it, or change ours to this image, and wait until it is ready.

        Without an image, ours becomes the release of today, but a copy of an image stays. One
        that others installed is left as it is.
        """

    def uninstall(self, ctx: Context, *, force: bool = False) -> bool:
        """Remove all that `install` made; whether there was anything.

        Refused while there are jobs, unless forced: they are deleted with it.
        """

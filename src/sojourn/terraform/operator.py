"""`iterative_mpi_operator`: what MPI tasks need in a cluster, installed by Terraform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import Conflict, InvalidInput, NotFound, SojournError
from sojourn.core.operators import IMAGE, NAMESPACE
from sojourn.terraform.plugin.diagnostics import Failure
from sojourn.terraform.plugin.schema import STRING, Attribute, Block, Schema
from sojourn.terraform.plugin.values import UNKNOWN, Object, Unknown
from sojourn.terraform.translate import context, diagnostics, failing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.core.operators import Operator
    from sojourn.terraform.plugin.diagnostics import Diagnostic
    from sojourn.terraform.plugin.resource import Call

__all__ = ["OPERATOR", "OperatorResource"]

_LOOK_WITHIN = 60.0  # seconds to see what an installation that failed left
OPERATOR = Schema(
    Block(
        (
            Attribute("id", STRING, "The namespace that it is in.", computed=True),
            Attribute(
                "namespace",
                STRING,
                "Namespace to install it in; created if there is none.",
                optional=True,
                default=NAMESPACE,
                replace=True,
            ),
            Attribute(
                "image",
                STRING,
                "Image to run: a copy, if the cluster cannot pull the released one.",
                optional=True,
                default=IMAGE,
            ),
            Attribute(
                "version", STRING, "Version of the operator: its image's tag.", computed=True
            ),
        ),
        (),
        "Installs mpi-operator in a cluster, which MPI tasks there need; as `sojourn mpi install` "
        "does. A cluster has one for all its users. It is not destroyed while MPIJobs exist.",
    ),
    timeouts={"create": 600.0, "read": 180.0, "update": 600.0, "delete": 600.0},
)

# The clouds are loaded when there is an operator: few configurations have one.


class OperatorResource:
    """Schema and verbs."""

    schema = OPERATOR

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        for name in ("namespace", "image"):
            if config[name] == "":
                yield from diagnostics(InvalidInput(name, "must not be empty"))

    def plan(self, call: Call, prior: Object | None, planned: Object) -> Iterable[Diagnostic]:
        if isinstance(planned["id"], Unknown) and isinstance(planned["namespace"], str):
            planned["id"] = planned["namespace"]
        if prior is not None and planned["image"] != prior["image"]:
            planned["version"] = UNKNOWN
        return ()

    def plan_removal(self, call: Call, prior: Object) -> Iterable[Diagnostic]:
        return ()

    def create(self, call: Call, planned: Object) -> Object:
        try:
            return self._installed(call, planned)
        except Failure as failure:
            if _is_ours(call, planned["namespace"]):  # if only in part: it has to be destroyed
                state = {**planned, "id": planned["namespace"], "version": ""}
                raise Failure(failure.diagnostics, state) from failure
            raise

    def read(self, call: Call, state: Object) -> Object | None:
        from sojourn.api import mpi

        with failing():
            found = mpi.status(ctx=context(call))
        if found is None or not found.ours or found.namespace != state["namespace"]:
            call.log.write("warn", f"mpi-operator is no longer in namespace {state['namespace']}")
            return None
        return {**state, **_seen(found)}

    def update(self, call: Call, prior: Object, planned: Object) -> Object:
        return self._installed(call, planned)

    def delete(self, call: Call, state: Object) -> None:
        from sojourn.api import mpi

        with failing():
            if not mpi.uninstall(ctx=context(call)):
                call.log.write("info", "mpi-operator is already uninstalled")

    def find(self, call: Call, id: str) -> Object:
        from sojourn.api import mpi

        with failing():
            found = mpi.status(ctx=context(call))
            if found is None or found.namespace != id:
                where = f"; there is {found}" if found else ""
                raise NotFound(f"mpi-operator not found in namespace {id}{where}")
            _check_ours(found)
            return {"id": id, "namespace": id, **_seen(found)}

    def upgrade(self, version: int, state: Object) -> Object:
        return state

    def _installed(self, call: Call, planned: Object) -> Object:
        from sojourn.api import mpi

        with failing():
            made = mpi.install(
                namespace=planned["namespace"], image=planned["image"], ctx=context(call)
            )
            _check_ours(made)
            return {**planned, "id": made.namespace, **_seen(made)}


def _is_ours(call: Call, namespace: str) -> bool:
    from sojourn.api import mpi

    try:
        found = mpi.status(ctx=context(call).shielded().within(_LOOK_WITHIN))
    except (SojournError, OSError):
        return False
    return found is not None and found.ours and found.namespace == namespace


def _seen(found: Operator) -> Object:
    return {"image": found.image, "version": found.version}


def _check_ours(found: Operator) -> None:
    if not found.ours:
        raise Conflict(
            f"{found} is already installed by another tool",
            hint="Remove this resource from the configuration: tasks can use it as it is.",
        )

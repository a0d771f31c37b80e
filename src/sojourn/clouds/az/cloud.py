"""Azure as a list of resources."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sojourn.clouds.az import profile, tags
from sojourn.clouds.az.account import Account
from sojourn.clouds.az.locations import Locations, check_container
from sojourn.clouds.az.machines import Offers, check_offer
from sojourn.clouds.az.networks import check_network, chosen_subnet
from sojourn.clouds.az.placement import note_on_placement
from sojourn.clouds.az.regions import region
from sojourn.clouds.vm.cloud import VmCloud, check_limits
from sojourn.clouds.vm.options import check_options
from sojourn.core.errors import AuthError, InvalidInput, NotFound
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sojourn.clouds.az.task_context import AzureContext
    from sojourn.core.context import Context
    from sojourn.core.interfaces import Images, Resource, Scaler
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["AzureCloud"]

# Azure's own limits; of times it tells none, and ten years are as good as ever.
_MOST = {"disk_size": 4095, "timeout": 10 * 365 * 86400}
_DECIMALS = 5  # of prices in dollars
_LEAST_PRICE = 10**-_DECIMALS


def _check_limits(task: Task) -> None:
    check_limits(task, _MOST)
    if 0 < task.spot < _LEAST_PRICE:
        raise InvalidInput(
            "spot", f"must be 0 or at least {_LEAST_PRICE:.{_DECIMALS}f}, got {task.spot}"
        )
    price = Decimal(str(task.spot))
    if round(price, _DECIMALS) != price:  # rounded up, it would be more than was allowed
        raise InvalidInput(
            "spot", f"must have at most {_DECIMALS} decimals on Azure, got {task.spot}"
        )


class AzureCloud(VmCloud[Account, Locations, Offers]):
    """Tasks in the user's subscription."""

    def __init__(self, account: Account, name: str = "az") -> None:
        super().__init__(account, Locations(account), Offers(account), name)

    def check_form(self, task: Task) -> None:
        _check_limits(task)
        check_options(task, "Azure")
        tags.check(task)
        profile.identities(task.permission_set)
        check_container(task)
        chosen_subnet(task)
        check_offer(task)

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        return [*super().check(ctx, task), *note_on_placement(task)]

    def _check_places(self, task: Task) -> None:
        super()._check_places(task)
        check_network(self._account, task, region(task.region))

    def _check_permission_set(self, task: Task) -> list[str]:
        """The first identity is the one that needs rights."""
        principals = [self._principal(each) for each in profile.identities(task.permission_set)]
        if not principals:
            return []
        first = profile.identities(task.permission_set)[0]
        context = self._context_of(TaskId.for_name(task.name, {}), task)
        return profile.check_rights(context, first, principals[0])

    def _principal(self, identity: str) -> str:
        """By which roles are assigned to it; empty: we may not know."""
        try:
            found = self._account.call("permission_set", "GET", identity)
        except NotFound as error:
            raise InvalidInput("permission_set", f"identity {identity} not found") from error
        except AuthError:
            return ""
        return str(found["properties"]["principalId"])

    def resources(self, id: TaskId, task: Task | None) -> Sequence[Resource]:
        from sojourn.clouds.az import resources
        from sojourn.clouds.az.placement import PlacementGroup, is_placed
        from sojourn.clouds.az.scaler import AzureScaler
        from sojourn.clouds.az.store import store_of
        from sojourn.clouds.vm.agent_files import AgentFiles

        context = self._context_of(id, task)
        # What is in the store goes with it: only who creates a task has to do with it.
        in_store: list[Resource] = []
        if task:
            in_store = [
                resources.Key(context),
                AgentFiles(context.store, context.luggage),
            ]
            if is_placed(task):
                in_store.append(PlacementGroup(context))  # it goes with the group
        own = task is None or not task.permission_set
        return (
            store_of(context),
            *((resources.Identity(context),) if own else ()),
            resources.Network(context),
            *in_store,
            AzureScaler(context),
        )

    def scaler(self, id: TaskId) -> Scaler:
        from sojourn.clouds.az.scaler import AzureScaler

        return AzureScaler(self._context_of(id, None))

    def images(self) -> Images:
        from sojourn.clouds.az.images import AzureImages

        return AzureImages(self, self._account, self._locations, self._offers)

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        from sojourn.clouds.az.listing import states

        return states(ctx, self._account, ids)

    def _context_of(self, id: TaskId, task: Task | None) -> AzureContext:
        from sojourn.clouds.az.task_context import AzureContext

        return AzureContext(self._account, self._locations, self._offers, id, task)

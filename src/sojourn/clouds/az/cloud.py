"""Azure as a list of resources."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sojourn.clouds.az import profile, tags
from sojourn.clouds.az.locations import Locations, check_container
from sojourn.clouds.az.machines import Offers, check_offer
from sojourn.clouds.az.networks import check_network, chosen_subnet
from sojourn.clouds.az.placement import note_on_placement
from sojourn.clouds.az.regions import region
from sojourn.clouds.vm.options import check_options
from sojourn.core.errors import AuthError, InvalidInput, NotFound
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import Data, Features, Images, Reach, Resource, Scaler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sojourn.clouds.az.account import Account
    from sojourn.clouds.az.deployment import Deployment
    from sojourn.core.context import Context
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["AzureCloud"]

# Azure's own limits; of times it tells none, and ten years are as good as ever.
_MOST = {"disk_size": 4095, "timeout": 10 * 365 * 86400}
_DECIMALS = 5  # of prices in dollars
_LEAST_PRICE = 10**-_DECIMALS


def _check_limits(task: Task) -> None:
    for field, most in _MOST.items():
        if getattr(task, field) > most:
            raise InvalidInput(field, f"must be at most {most}, got {getattr(task, field)}")
    if 0 < task.spot < _LEAST_PRICE:
        raise InvalidInput(
            "spot", f"must be 0 or at least {_LEAST_PRICE:.{_DECIMALS}f}, got {task.spot}"
        )
    price = Decimal(str(task.spot))
    if round(price, _DECIMALS) != price:  # rounded up, it would be more than was allowed
        raise InvalidInput(
            "spot", f"must have at most {_DECIMALS} decimals on Azure, got {task.spot}"
        )


class AzureCloud:
    """Tasks in the user's subscription."""

    features = Features(
        warm=True,
        private_machines=True,
        shared_identity=True,
        interrupt=True,
        reach=True,
        images=True,
        poll=2.0,
    )

    def __init__(self, account: Account, name: str = "az") -> None:
        self.name = name
        self._account = account
        self._locations = Locations(account)
        self._offers = Offers(account)

    def address(self) -> str:
        return self._account.address()

    def check_form(self, task: Task) -> None:
        _check_limits(task)
        check_options(task, "Azure")
        tags.check(task)
        profile.identities(task.permission_set)
        check_container(task)
        chosen_subnet(task)
        check_offer(task)

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        self.check_form(task)
        for told in self._check_identities(task):
            ctx.warn(told)
        self._locations.check(task)
        check_network(self._account, task, region(task.region))
        notes = self._offers.check(task)
        if replaced := self._offers.replaced(task):
            ctx.warn(replaced)
        return [*notes, *note_on_placement(task)]

    def _check_identities(self, task: Task) -> list[str]:
        """Refuse identities that are not there, or a first one that lacks rights, if we may know;
        returns what there is to say."""
        principals = [self._principal(each) for each in profile.identities(task.permission_set)]
        if not principals:
            return []
        first = profile.identities(task.permission_set)[0]
        deployment = self._deployed(TaskId.for_name(task.name, {}), task)
        return profile.check_rights(deployment, first, principals[0])

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
        from sojourn.clouds.az.store import store_of
        from sojourn.clouds.vm.agent_files import AgentFiles

        deployment = self._deployed(id, task)
        # What is in the store goes with it: only who creates a task has to do with it.
        in_store: list[Resource] = []
        if task:
            in_store = [
                resources.Key(deployment),
                AgentFiles(deployment.store, deployment.luggage),
            ]
            if is_placed(task):
                in_store.append(PlacementGroup(deployment))  # it goes with the group
        own = task is None or not task.permission_set
        return (
            store_of(deployment),
            *((resources.Identity(deployment),) if own else ()),
            resources.Network(deployment),
            *in_store,
            self._scaler(deployment),
        )

    def scaler(self, id: TaskId) -> Scaler:
        return self._scaler(self._deployed(id, None))

    def _scaler(self, deployment: Deployment) -> Scaler:
        from sojourn.clouds.az.scaler import AzureScaler

        return AzureScaler(deployment)

    def data(self, id: TaskId) -> Data:
        from sojourn.storage.data import StoreData

        return StoreData(self._deployed(id, None).store)

    def reach(self, id: TaskId, machine: str) -> Reach:
        from sojourn.clouds.vm.reach import SshReach

        deployment = self._deployed(id, None)
        return SshReach(self._scaler(deployment), deployment.store, machine, self._offers.user_of)

    def images(self) -> Images:
        from sojourn.clouds.az.images import AzureImages

        return AzureImages(self, self._account, self._locations, self._offers)

    def tasks(self, ctx: Context) -> Iterator[TaskId]:
        yield from sorted(self._locations.tasks())

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        from sojourn.clouds.az.listing import states

        return states(ctx, self._account, ids)

    def _deployed(self, id: TaskId, task: Task | None) -> Deployment:
        from sojourn.clouds.az.deployment import Deployment

        return Deployment(self._account, self._locations, self._offers, id, task)

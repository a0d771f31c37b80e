"""AWS as a list of resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.aws import profile, tags
from sojourn.clouds.aws.locations import Locations, check_container
from sojourn.clouds.aws.machines import Offers, check_offer
from sojourn.clouds.aws.security_groups import OPTION
from sojourn.clouds.vm.options import check_options
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import Data, Features, Images, Reach, Resource, Scaler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.deployment import Deployment
    from sojourn.core.context import Context
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["AwsCloud"]

# AWS's own limits; of times it tells none, and ten years are as good as ever.
_MOST = {"disk_size": 65536, "timeout": 10 * 365 * 86400}


def _check_limits(task: Task) -> None:
    for field, most in _MOST.items():
        if getattr(task, field) > most:
            raise InvalidInput(field, f"must be at most {most}, got {getattr(task, field)}")


class AwsCloud:
    """Tasks in the user's account."""

    features = Features(
        warm=True,
        private_machines=True,
        shared_identity=True,
        interrupt=True,
        reach=True,
        images=True,
        poll=2.0,
    )

    def __init__(self, account: Account, name: str = "aws") -> None:
        self.name = name
        self._account = account
        self._locations = Locations(account)
        self._offers = Offers(account)

    def address(self) -> str:
        return self._account.address()

    def check_form(self, task: Task) -> None:
        if task.permission_set:
            profile.arn_of(task.permission_set)
        _check_limits(task)
        check_options(task, "AWS", own=(OPTION,))
        tags.check(task)
        check_container(task)
        check_offer(task)

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        self.check_form(task)
        for told in self._check_profile(task):
            ctx.warn(told)
        self._locations.check(task)
        notes = self._offers.check(task)
        if replaced := self._offers.replaced(task):
            ctx.warn(replaced)
        return notes

    def _check_profile(self, task: Task) -> list[str]:
        """Refuse a profile that is not there or lacks rights, if we may know."""
        given = task.permission_set
        if not given:
            return []
        role = profile.role_in(self._account, given)
        id = TaskId.for_name(task.name, {})  # noqa: A001
        location = self._locations.planned(id, task)
        return [
            *profile.note_on(given),
            *profile.check_rights(self._account, role, location, id),
        ]

    def resources(self, id: TaskId, task: Task | None) -> Sequence[Resource]:
        from sojourn.clouds.aws import resources
        from sojourn.clouds.aws.placement import PlacementGroup
        from sojourn.clouds.aws.store import BucketTags, store_of
        from sojourn.clouds.aws.template import LaunchTemplate
        from sojourn.clouds.vm.agent_files import AgentFiles

        deployment = self._deployed(id, task)
        # What is in the store goes with it: only who creates a task has to do with it.
        in_store: list[Resource] = (
            [AgentFiles(deployment.store, deployment.luggage)] if task else []
        )
        if task and not task.storage.container:
            in_store.append(BucketTags(deployment))
        placement = (PlacementGroup(deployment),) if task is None or task.gang else ()
        role = () if task is not None and task.permission_set else (resources.Role(deployment),)
        return (
            store_of(deployment),
            *role,
            resources.SecurityGroup(deployment),
            resources.KeyPair(deployment),
            *placement,
            *in_store,
            LaunchTemplate(deployment),
            self.scaler(id) if task is None else self._scaler(deployment),
        )

    def scaler(self, id: TaskId) -> Scaler:
        return self._scaler(self._deployed(id, None))

    def _scaler(self, deployment: Deployment) -> Scaler:
        from sojourn.clouds.aws.scaler import AwsScaler

        return AwsScaler(deployment)

    def data(self, id: TaskId) -> Data:
        from sojourn.storage.data import StoreData

        return StoreData(self._deployed(id, None).store)

    def reach(self, id: TaskId, machine: str) -> Reach:
        from sojourn.clouds.vm.reach import SshReach

        deployment = self._deployed(id, None)
        return SshReach(self._scaler(deployment), deployment.store, machine, self._offers.user_of)

    def images(self) -> Images:
        from sojourn.clouds.aws.images import AwsImages

        return AwsImages(self, self._account, self._locations, self._offers)

    def tasks(self, ctx: Context) -> Iterator[TaskId]:
        yield from sorted(self._locations.tasks())

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        from sojourn.clouds.aws.listing import states

        return states(ctx, self._account, self._locations, ids)

    def _deployed(self, id: TaskId, task: Task | None) -> Deployment:
        from sojourn.clouds.aws.deployment import Deployment

        return Deployment(self._account, self._locations, self._offers, id, task)

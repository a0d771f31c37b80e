"""AWS as a list of resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.aws import profile, tags
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.locations import Locations, parse_container
from sojourn.clouds.aws.machines import Offers, check_offer
from sojourn.clouds.aws.security_groups import OPTION
from sojourn.clouds.vm.cloud import VmCloud, check_limits
from sojourn.clouds.vm.containers import check_plain
from sojourn.clouds.vm.options import check_options
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.aws.task_context import AwsContext
    from sojourn.core.context import Context
    from sojourn.core.interfaces import Images, Resource, Scaler
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["AwsCloud"]

# AWS's own limits; of times it tells none, and ten years are as good as ever.
_MOST = {"disk_size": 65536, "timeout": 10 * 365 * 86400}


class AwsCloud(VmCloud[Account, Locations, Offers]):
    """Tasks in the user's account."""

    def __init__(self, account: Account, name: str = "aws") -> None:
        super().__init__(account, Locations(account), Offers(account), name)

    def check_form(self, task: Task) -> None:
        if task.permission_set:
            profile.arn_of(task.permission_set)
        check_limits(task, _MOST)
        check_options(task, "AWS", own=(OPTION,))
        tags.check(task)
        check_plain(task, "AWS", parse_container)
        check_offer(task)

    def _check_permission_set(self, task: Task) -> list[str]:
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
        from sojourn.clouds.aws.scaler import AwsScaler
        from sojourn.clouds.aws.store import BucketTags, store_of
        from sojourn.clouds.aws.template import LaunchTemplate
        from sojourn.clouds.vm.agent_files import AgentFiles

        context = self._context_of(id, task)
        # What is in the store goes with it: only who creates a task has to do with it.
        in_store: list[Resource] = [AgentFiles(context.store, context.luggage)] if task else []
        if task and not task.storage.container:
            in_store.append(BucketTags(context))
        placement = (PlacementGroup(context),) if task is None or task.gang else ()
        role = () if task is not None and task.permission_set else (resources.Role(context),)
        return (
            store_of(context),
            *role,
            resources.SecurityGroup(context),
            resources.KeyPair(context),
            *placement,
            *in_store,
            LaunchTemplate(context),
            AwsScaler(context),
        )

    def scaler(self, id: TaskId) -> Scaler:
        from sojourn.clouds.aws.scaler import AwsScaler

        return AwsScaler(self._context_of(id, None))

    def images(self) -> Images:
        from sojourn.clouds.aws.images import AwsImages

        return AwsImages(self, self._account, self._locations, self._offers)

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        from sojourn.clouds.aws.listing import states

        return states(ctx, self._account, self._locations, ids)

    def _context_of(self, id: TaskId, task: Task | None) -> AwsContext:
        from sojourn.clouds.aws.task_context import AwsContext

        return AwsContext(self._account, self._locations, self._offers, id, task)

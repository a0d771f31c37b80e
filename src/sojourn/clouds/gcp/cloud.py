"""Google Cloud as a list of resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.gcp import tags
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.locations import Locations, parse_container
from sojourn.clouds.gcp.machines import Offers, check_offer
from sojourn.clouds.gcp.profile import check_profile, check_rights, notes_on, parse_profile
from sojourn.clouds.vm.cloud import VmCloud, check_limits
from sojourn.clouds.vm.containers import check_plain
from sojourn.clouds.vm.options import check_options
from sojourn.core.errors import AuthError, InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.gcp.task_context import GoogleContext
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Images, Resource, Scaler
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["GoogleCloud"]

_HOUR = 3600
# Google's own limits. A machine runs for 120 days at most, an hour of which is to store its work.
_MOST = {"disk_size": 65536, "timeout": 120 * 86400 - _HOUR, "parallelism": 1000}


def _check_limits(task: Task) -> None:
    check_limits(task, _MOST)
    if task.spot > 0:
        raise InvalidInput(
            "spot",
            f"must be 0 or -1 on Google Cloud, which takes no maximum price, got {task.spot:g}",
        )


class GoogleCloud(VmCloud[Account, Locations, Offers]):
    """Tasks in the user's project."""

    def __init__(self, account: Account, name: str = "gcp") -> None:
        super().__init__(account, Locations(account), Offers(account), name)

    def check_form(self, task: Task) -> None:
        _check_limits(task)
        check_options(task, "Google Cloud")
        tags.check(task)
        if task.permission_set:
            check_profile(task.permission_set)
        check_plain(task, "Google Cloud", parse_container)
        check_offer(task)

    def _check_permission_set(self, task: Task) -> list[str]:
        given = task.permission_set
        if not given:
            return []
        profile = parse_profile(given, self._account.project)
        path = f"v1/projects/-/serviceAccounts/{profile.email}"
        try:
            self._account.call("permission_set", "iam", "GET", path)
        except NotFound as error:
            raise InvalidInput(
                "permission_set", f"service account {profile.email} not found"
            ) from error
        except AuthError:
            pass
        told = notes_on(given, self._account.project)
        return [*told, *check_rights(self._account, profile.email)]

    def resources(self, id: TaskId, task: Task | None) -> Sequence[Resource]:
        from sojourn.clouds.gcp import resources
        from sojourn.clouds.gcp.scaler import GoogleScaler
        from sojourn.clouds.gcp.store import store_of
        from sojourn.clouds.gcp.template import InstanceTemplate
        from sojourn.clouds.vm.agent_files import AgentFiles

        context = self._context_of(id, task)
        # What is in the store goes with it: only who creates a task has to do with it.
        in_store: list[Resource] = [AgentFiles(context.store, context.luggage)] if task else []
        given = task is not None and task.permission_set
        account = () if given else (resources.ServiceAccount(context),)
        return (
            store_of(context),
            *account,
            resources.Firewall(context),
            *in_store,
            InstanceTemplate(context),
            GoogleScaler(context),
        )

    def scaler(self, id: TaskId) -> Scaler:
        from sojourn.clouds.gcp.scaler import GoogleScaler

        return GoogleScaler(self._context_of(id, None))

    def images(self) -> Images:
        from sojourn.clouds.gcp.images import GoogleImages

        return GoogleImages(self, self._account, self._locations, self._offers)

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        from sojourn.clouds.gcp.listing import states

        return states(ctx, self._account, self._locations, ids)

    def _context_of(self, id: TaskId, task: Task | None) -> GoogleContext:
        from sojourn.clouds.gcp.task_context import GoogleContext

        return GoogleContext(self._account, self._locations, self._offers, id, task)

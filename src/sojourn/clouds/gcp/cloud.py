"""Google Cloud as a list of resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.gcp import tags
from sojourn.clouds.gcp.locations import Locations, check_container
from sojourn.clouds.gcp.machines import Offers, check_offer
from sojourn.clouds.gcp.profile import check_profile, check_rights, notes_on, parse_profile
from sojourn.clouds.vm.options import check_options
from sojourn.core.errors import AuthError, InvalidInput, NotFound
from sojourn.core.interfaces import Data, Features, Images, Reach, Resource, Scaler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sojourn.clouds.gcp.account import Account
    from sojourn.clouds.gcp.deployment import Deployment
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["GoogleCloud"]

_HOUR = 3600
# Google's own limits. A machine runs for 120 days at most, an hour of which is to store its work.
_MOST = {"disk_size": 65536, "timeout": 120 * 86400 - _HOUR, "parallelism": 1000}


def _check_limits(task: Task) -> None:
    for field, most in _MOST.items():
        if getattr(task, field) > most:
            raise InvalidInput(field, f"must be at most {most}, got {getattr(task, field)}")
    if task.spot > 0:
        raise InvalidInput(
            "spot",
            f"must be 0 or -1 on Google Cloud, which takes no maximum price, got {task.spot:g}",
        )


class GoogleCloud:
    """Tasks in the user's project."""

    features = Features(
        warm=True,
        private_machines=True,
        shared_identity=True,
        interrupt=True,
        reach=True,
        images=True,
        poll=2.0,
    )

    def __init__(self, account: Account, name: str = "gcp") -> None:
        self.name = name
        self._account = account
        self._locations = Locations(account)
        self._offers = Offers(account)

    def address(self) -> str:
        return self._account.address()

    def check_form(self, task: Task) -> None:
        _check_limits(task)
        check_options(task, "Google Cloud")
        tags.check(task)
        if task.permission_set:
            check_profile(task.permission_set)
        check_container(task)
        check_offer(task)

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        self.check_form(task)
        for told in self._check_profile(task.permission_set):
            ctx.warn(told)
        self._locations.check(task)
        return self._offers.check(task)

    def _check_profile(self, given: str) -> list[str]:
        """Refuse an account that is not there, if we may know; returns what there is to say."""
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
        from sojourn.clouds.gcp.store import store_of
        from sojourn.clouds.gcp.template import InstanceTemplate
        from sojourn.clouds.vm.agent_files import AgentFiles

        deployment = self._deployed(id, task)
        # What is in the store goes with it: only who creates a task has to do with it.
        in_store: list[Resource] = (
            [AgentFiles(deployment.store, deployment.luggage)] if task else []
        )
        given = task is not None and task.permission_set
        account = () if given else (resources.ServiceAccount(deployment),)
        return (
            store_of(deployment),
            *account,
            resources.Firewall(deployment),
            *in_store,
            InstanceTemplate(deployment),
            self._scaler(deployment),
        )

    def scaler(self, id: TaskId) -> Scaler:
        return self._scaler(self._deployed(id, None))

    def _scaler(self, deployment: Deployment) -> Scaler:
        from sojourn.clouds.gcp.scaler import GoogleScaler

        return GoogleScaler(deployment)

    def data(self, id: TaskId) -> Data:
        from sojourn.storage.data import StoreData

        return StoreData(self._deployed(id, None).store)

    def reach(self, id: TaskId, machine: str) -> Reach:
        from sojourn.clouds.vm.reach import SshReach

        deployment = self._deployed(id, None)
        return SshReach(self._scaler(deployment), deployment.store, machine, self._offers.user_of)

    def images(self) -> Images:
        from sojourn.clouds.gcp.images import GoogleImages

        return GoogleImages(self, self._account, self._locations, self._offers)

    def tasks(self, ctx: Context) -> Iterator[TaskId]:
        yield from sorted(self._locations.tasks())

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        from sojourn.clouds.gcp.listing import states

        return states(ctx, self._account, self._locations, ids)

    def _deployed(self, id: TaskId, task: Task | None) -> Deployment:
        from sojourn.clouds.gcp.deployment import Deployment

        return Deployment(self._account, self._locations, self._offers, id, task)

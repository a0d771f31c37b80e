"""Where a task is. Its id does not tell; its firewall rule does, or the labels of its bucket."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp import tags
from sojourn.clouds.gcp.errors import is_denied
from sojourn.clouds.gcp.regions import region_of, zone
from sojourn.clouds.vm.containers import PATH, looking_at, parsed
from sojourn.clouds.vm.known import Known
from sojourn.core import untrusted
from sojourn.core.errors import AuthError, Conflict, InvalidInput, NotFound
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.gcp.account import Account
    from sojourn.core.task import Task

__all__ = ["Location", "Locations", "note_of", "parse_container"]

_LONGEST = 512  # characters of a container, which has to fit into a description
_CONTAINER = re.compile(r"(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])" + PATH, re.ASCII)
_OURS = "name eq tpi-.*"


@dataclass(frozen=True)
class Location:
    """The zone of a task, and where its store is: a bucket, and a folder in it or all of it.

    `contained`: the bucket is the user's.
    """

    zone: str
    bucket: str
    folder: str = ""
    contained: bool = False

    @property
    def region(self) -> str:
        return region_of(self.zone)


def parse_container(text: str) -> tuple[str, str | None]:
    """Bucket and folder, as `clouds.vm.containers` has them."""
    return parsed(text, _CONTAINER, _LONGEST)


def note_of(where: str, container: str) -> str:
    """What a firewall rule tells of a task: it has no labels, but a description."""
    return json.dumps({"sojourn": {"zone": where, "container": container}})


class Locations(Known[Location]):
    """Finds tasks, and remembers them for the length of a command."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self._account = account
        self._checked: set[str] = set()

    def _planned(self, id: TaskId, task: Task) -> Location:
        return _location(id, zone(task.region), task.storage.container)

    def check(self, task: Task) -> None:
        if not task.storage.container:
            return
        bucket = parse_container(task.storage.container)[0]
        if bucket not in self._checked:
            self._check_bucket(bucket)
            self._checked.add(bucket)

    def _check_bucket(self, bucket: str) -> None:
        with looking_at(bucket, is_denied):
            found = self._bucket(bucket)
        access = found.get("iamConfiguration", {}).get("uniformBucketLevelAccess", {})
        if not access.get("enabled"):
            raise InvalidInput(
                "storage.container",
                f"bucket {bucket} has no uniform access, so the rights of machines cannot be "
                "limited; run `gcloud storage buckets update "
                f"gs://{bucket} --uniform-bucket-level-access`, or choose another",
            )

    def _found(self, id: TaskId) -> Location:
        with suppress(NotFound):
            rule = self._account.compute("firewall rule", "GET", f"global/firewalls/{id}")
            told = _told(rule)
            if told:
                return _location(id, told["zone"], told["container"])
        found = self._in_bucket(str(id))
        if found:
            return found
        why = ""
        try:
            self.ensure_ours(str(id))
        except Conflict:
            why = "; the bucket of this name belongs to another project"
        raise NotFound.task(id, why)

    def _in_bucket(self, name: str) -> Location | None:
        """Names are global: only one of this project counts."""
        found = next((each for each in self._buckets(name) if each["name"] == name), None)
        if found is None:
            return None
        self._ours.add(name)
        return self._of_bucket(found)

    def ensure_ours(self, name: str) -> None:
        """Refuse the bucket of a task that belongs to somebody else: names are global, and can be
        known beforehand. Absent: raises nothing."""
        if name in self._ours or self._is_listed(name):
            return
        try:
            self._bucket(name)
        except NotFound:
            return
        except AuthError as error:
            if not is_denied(error):
                raise
        if self._is_listed(name):  # another command made it since the first look
            return
        raise Conflict(
            f"Bucket {name} belongs to another project; it was not touched",
            hint="Choose another name.",
        )

    def _is_listed(self, name: str) -> bool:
        """Whether this project has a bucket of the name."""
        if any(each["name"] == name for each in self._buckets(name)):
            self._ours.add(name)
        return name in self._ours

    def tasks(self) -> dict[TaskId, Location]:
        """All tasks: those with a bucket of their own, and those with a firewall rule."""
        found: dict[TaskId, Location] = {}
        for bucket in self._buckets():
            with suppress(InvalidInput):  # it is no task's
                id, location = TaskId.parse(bucket["name"]), self._of_bucket(bucket)  # noqa: A001
                if location:
                    found[id] = location
                    self._ours.add(bucket["name"])
        for rule in self._rules():
            told = _told(rule)
            with suppress(InvalidInput):
                if told:
                    id = TaskId.parse(rule["name"])  # noqa: A001
                    found[id] = _location(id, told["zone"], told["container"])
        self.remember(found)
        return found

    def _bucket(self, name: str) -> Any:
        return self._account.call(f"bucket {name}", "storage", "GET", f"storage/v1/b/{name}")

    def _buckets(self, prefix: str = "tpi-") -> Iterator[Any]:
        for page in self._account.pages(
            "buckets", "storage", "storage/v1/b", project=self._account.project, prefix=prefix
        ):
            yield from page.get("items", ())

    def _rules(self) -> Iterator[Any]:
        path = f"compute/v1/projects/{self._account.project}/global/firewalls"
        for page in self._account.pages("firewall rules", "compute", path, filter=_OURS):
            yield from page.get("items", ())

    def _of_bucket(self, bucket: Any) -> Location | None:
        where = bucket.get("labels", {}).get(tags.ZONE)
        return Location(where, bucket["name"]) if where else None


def _location(id: TaskId, where: str, container: str) -> Location:
    if not container:
        return Location(where, str(id))
    bucket, folder = parse_container(container)
    return Location(where, bucket, str(id) if folder is None else folder, contained=True)


def _told(rule: Any) -> dict[str, str] | None:
    """What a firewall rule tells; None: it is not ours."""
    try:
        told = untrusted.parsed(rule.get("description", ""))["sojourn"]
        return {name: str(told[name]) for name in ("zone", "container")}
    except untrusted.UNREADABLE:
        return None

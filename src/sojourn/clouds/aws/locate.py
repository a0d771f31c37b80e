"""Where a task is. Its id does not tell; the name of its bucket does, or a tag."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import tags
from sojourn.clouds.aws.places import HOME_REGIONS, region
from sojourn.core.errors import InvalidInput, NotFound
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.aws.account import Account
    from sojourn.core.task import Task

__all__ = ["Place", "Places"]

_ANYWHERE = "us-east-1"  # whose S3 knows all buckets
_PAGE = 1000  # buckets


@dataclass(frozen=True)
class Place:
    """The region of a task, and where its store is: a bucket, and a folder in it or all of it."""

    region: str
    bucket: str
    folder: str = ""
    bucket_region: str = ""

    @property
    def own_bucket(self) -> bool:
        return not self.folder


class Places:
    """Finds tasks, and remembers them for the length of a command."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: dict[TaskId, Place] = {}

    def of(self, id: TaskId, task: Task | None) -> Place:
        """Where a task is or will be. Nowhere: raises NotFound."""
        if id not in self._known:
            self._known[id] = self._planned(id, task) if task else self._found(id)
        return self._known[id]

    def forget(self, id: TaskId) -> None:
        """It is gone, or going."""
        self._known.pop(id, None)

    def _planned(self, id: TaskId, task: Task) -> Place:
        where = region(task.region)
        if not task.storage.container:
            return Place(where, str(id), "", where)
        return self._in_container(id, where, task.storage.container)

    def _in_container(self, id: TaskId, where: str, container: str) -> Place:
        bucket, slash, folder = container.partition("/")
        folder = folder.strip("/") if slash else str(id)
        return Place(where, bucket, folder, self._bucket_region(bucket))

    def _found(self, id: TaskId) -> Place:
        try:
            where = self._bucket_region(str(id))
            return Place(where, str(id), "", where)
        except NotFound:
            pass
        for where in self.regions():
            for found in self._tagged(where, [{"Name": f"tag:{tags.ID}", "Values": [str(id)]}]):
                container = _tag(found, tags.CONTAINER)
                if container:
                    return self._in_container(id, where, container)
                return Place(where, str(id), "", where)
        raise NotFound(f"There is no task {id}", hint="`sojourn list` shows all there are.")

    def regions(self) -> list[str]:
        """Where to look for tasks without a bucket of their own."""
        own = self._account.session.region_name
        return list(dict.fromkeys([*([own] if own else []), *HOME_REGIONS]))

    def tasks(self) -> dict[TaskId, Place]:
        """All tasks: those with a bucket of their own in all regions, and tagged ones."""
        found: dict[TaskId, Place] = {}
        for bucket in self._buckets():
            with suppress(InvalidInput):  # it is no task's
                where = bucket["BucketRegion"]
                found[TaskId.parse(bucket["Name"])] = Place(where, bucket["Name"], "", where)
        self._known.update(found)
        return found

    def _buckets(self) -> Iterator[Any]:
        """Those that may be tasks. S3 tells their regions only to those who ask for pages."""
        paging = {"PageSize": _PAGE}
        for page in self._account.pages(
            "buckets", "s3", _ANYWHERE, "list_buckets", Prefix="tpi-", PaginationConfig=paging
        ):
            yield from page.get("Buckets", ())

    def _tagged(self, where: str, filters: list[dict[str, Any]]) -> list[Any]:
        answer = self._account.call(
            "security groups", "ec2", where, "describe_security_groups", Filters=filters
        )
        return list(answer["SecurityGroups"])

    def _bucket_region(self, bucket: str) -> str:
        answer = self._account.call(
            f"bucket {bucket}", "s3", _ANYWHERE, "head_bucket", Bucket=bucket
        )
        headers = answer["ResponseMetadata"]["HTTPHeaders"]
        return str(answer.get("BucketRegion") or headers.get("x-amz-bucket-region", _ANYWHERE))


def _tag(found: Any, key: str) -> str:
    return next((str(t["Value"]) for t in found.get("Tags", ()) if t["Key"] == key), "")

"""Where a task is. Its id does not tell; the name of its bucket does, or a tag."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import tags
from sojourn.clouds.aws.errors import code_of
from sojourn.clouds.aws.regions import HOME_REGIONS, region
from sojourn.clouds.vm.containers import PATH, looking_at, parsed
from sojourn.clouds.vm.known import Known
from sojourn.core.errors import AuthError, Conflict, InvalidInput, NotFound, SojournError
from sojourn.core.ids import TaskId
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.clouds.aws.account import Account
    from sojourn.core.task import Task

__all__ = ["Location", "Locations", "parse_container"]

_ANYWHERE = "us-east-1"  # whose S3 knows all buckets
_AT_ONCE = 8  # regions
_LONGEST = 256  # characters, as many as a tag takes
_CONTAINER = re.compile(r"(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])" + PATH, re.ASCII)
_PAGE = 1000  # buckets, or roles


@dataclass(frozen=True)
class Location:
    """The region of a task, and where its store is: a bucket, and a folder in it or all of it.

    `contained`: the bucket is the user's.
    """

    region: str
    bucket: str
    folder: str = ""
    bucket_region: str = ""
    contained: bool = False


def parse_container(text: str) -> tuple[str, str | None]:
    """Bucket and folder, as `clouds.vm.containers` has them."""
    return parsed(text, _CONTAINER, _LONGEST)


class Locations(Known[Location]):
    """Finds tasks, and remembers them for the length of a command."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self._account = account
        self._of_users: dict[str, str] = {}  # regions of the user's buckets

    def _planned(self, id: TaskId, task: Task) -> Location:
        where = region(task.region)
        if not task.storage.container:
            return Location(where, str(id), "", where)
        return self._in_container(id, where, task.storage.container)

    def planned(self, id: TaskId, task: Task) -> Location:
        """Where a task would be, whether or not it is there."""
        return self._planned(id, task)

    def check(self, task: Task) -> None:
        if task.storage.container:
            self._bucket_of_user(parse_container(task.storage.container)[0])

    def _in_container(self, id: TaskId, where: str, container: str) -> Location:
        bucket, folder = parse_container(container)
        inside = str(id) if folder is None else folder
        return Location(where, bucket, inside, self._bucket_of_user(bucket), contained=True)

    def _bucket_of_user(self, bucket: str) -> str:
        """The region of it."""
        if bucket not in self._of_users:
            with looking_at(bucket, lambda error: code_of(error) == "403"):
                self._of_users[bucket] = self._bucket_region(bucket)
        return self._of_users[bucket]

    def _found(self, id: TaskId) -> Location:
        stranger = False
        try:
            where = self._own_region(str(id))
            return Location(where, str(id), "", where)
        except NotFound:
            pass
        except Conflict:
            stranger = True
        wanted = [{"Name": f"tag:{tags.ID}", "Values": [str(id)]}]
        for regions in (self.regions, self.other_regions):
            for where, found in self._tagged(regions(), wanted):
                container = tags.tag_of(found, tags.CONTAINER)
                if container:
                    return self._in_container(id, where, container)
                return Location(where, str(id), "", where)
        why = "; the bucket of this name belongs to another account" if stranger else ""
        raise NotFound.task(id, why)

    def ensure_ours(self, bucket: str) -> None:
        """Refuse the bucket of a task that belongs to somebody else: names are global, and can be
        known beforehand. Absent: raises nothing."""
        if bucket not in self._ours:
            with suppress(NotFound):
                self._own_region(bucket)

    def _own_region(self, bucket: str) -> str:
        try:
            where = self._bucket_region(bucket, ExpectedBucketOwner=self._account.number)
        except SojournError as error:
            if code_of(error) != "403" or self._is_listed(bucket):
                raise
            raise Conflict(
                f"Bucket {bucket} belongs to another account; it was not touched",
                hint="Choose another name. If it is yours, allow s3:ListBucket; "
                "see docs/aws.md for the full policy.",
            ) from error
        self._ours.add(bucket)
        return where

    def _is_listed(self, bucket: str) -> bool:
        """Whether it is this account's; unknown: no."""
        with suppress(AuthError):
            return any(each["Name"] == bucket for each in self._buckets(bucket))
        return False

    def regions(self) -> list[str]:
        """Where to look first for tasks without a bucket of their own."""
        own = self._account.session.region_name
        return list(dict.fromkeys([*([own] if own else []), *HOME_REGIONS]))

    def other_regions(self) -> list[str]:
        """The others that the account uses, as far as we may know."""
        first = self.regions()
        try:
            answer = self._account.call("regions", "ec2", first[0], "describe_regions")
        except AuthError:
            return []
        found = [str(region["RegionName"]) for region in answer["Regions"]]
        return [region for region in found if region not in first]

    def tasks(self) -> dict[TaskId, Location]:
        """All tasks: those with a bucket of their own in all regions, and tagged ones."""
        found: dict[TaskId, Location] = {}
        for bucket in self._buckets():
            with suppress(InvalidInput):  # it is no task's
                where = bucket["BucketRegion"]
                found[TaskId.parse(bucket["Name"])] = Location(where, bucket["Name"], "", where)
                self._ours.add(bucket["Name"])
        self._add_contained(found)
        self.remember(found)
        return found

    def _buckets(self, prefix: str = "tpi-") -> Iterator[Any]:
        """Those that may be tasks. S3 tells their regions only to those who ask for pages."""
        paging = {"PageSize": _PAGE}
        for page in self._account.pages(
            "buckets", "s3", _ANYWHERE, "list_buckets", Prefix=prefix, PaginationConfig=paging
        ):
            yield from page.get("Buckets", ())

    def _add_contained(self, found: dict[TaskId, Location]) -> None:
        """Add tasks in buckets of the user's, which have a role, or a group in the user's region.

        Only one with a role of the user, in a bucket of the user, in another region has neither.
        """
        named = self._with_roles()
        others = None if named is None else named - found.keys()
        own = self._account.session.region_name
        regions = [own] if own else []
        if others is None or others:
            regions = self.regions()
        for where, group in self._tagged(
            regions, [{"Name": "tag-key", "Values": [tags.CONTAINER]}]
        ):
            with suppress(InvalidInput):  # it is no task's, or its bucket is gone
                id = TaskId.parse(tags.tag_of(group, tags.ID))  # noqa: A001
                if id not in found:
                    found[id] = self._in_container(id, where, tags.tag_of(group, tags.CONTAINER))
        for id in sorted((others or set()) - found.keys()):  # noqa: A001
            with suppress(InvalidInput, NotFound):  # its bucket is gone, or it is
                found[id] = self._found(id)

    def _with_roles(self) -> set[TaskId] | None:
        """All that have a role of ours, wherever they are; None: we may not know."""
        paging = {"PageSize": _PAGE}
        found = set()
        try:
            for page in self._account.pages(
                "roles",
                "iam",
                _ANYWHERE,
                "list_roles",
                PathPrefix=tags.ROLE_PATH,
                PaginationConfig=paging,
            ):
                for role in page["Roles"]:
                    with suppress(InvalidInput):  # it is no task's
                        found.add(TaskId.parse(role["RoleName"]))
        except AuthError:
            return None
        return found

    def _tagged(
        self, regions: Sequence[str], filters: list[dict[str, Any]]
    ) -> list[tuple[str, Any]]:
        """Security groups, with their regions. One that we may not look at is left out."""

        def look(where: str) -> list[tuple[str, Any]]:
            try:
                answer = self._account.call(
                    "security groups", "ec2", where, "describe_security_groups", Filters=filters
                )
            except AuthError:
                return []
            return [(where, group) for group in answer["SecurityGroups"]]

        looks = [partial(look, region) for region in regions]
        return [group for groups in together(looks, at_once=_AT_ONCE) for group in groups]

    def _bucket_region(self, bucket: str, **more: str) -> str:
        answer = self._account.call(
            f"bucket {bucket}", "s3", _ANYWHERE, "head_bucket", Bucket=bucket, **more
        )
        headers = answer["ResponseMetadata"]["HTTPHeaders"]
        return str(answer.get("BucketRegion") or headers.get("x-amz-bucket-region", _ANYWHERE))

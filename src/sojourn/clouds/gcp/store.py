"""The store of a task: a bucket of its own, or a folder in one of the user's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sojourn.clouds.gcp import tags
from sojourn.clouds.gcp.resources import Firewall, ServiceAccount
from sojourn.clouds.gcp.task_context import GoogleContext
from sojourn.clouds.vm.store import Folder, OwnBucket, StoreOf
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Resource

__all__ = ["store_of"]

_AT_ONCE = 16


class Bucket(OwnBucket[GoogleContext]):
    """A bucket of the task's own."""

    def find(self) -> bool:
        if self._is_strange():
            return False
        self._look()
        return True

    def _look(self) -> object:
        return self._call("GET", self._path)

    def _make(self, ctx: Context) -> None:
        location = self._context.location
        body = {
            "name": self._name,
            "location": location.region,
            "labels": {**self._context.labels, tags.ZONE: location.zone},
            "iamConfiguration": {
                "uniformBucketLevelAccess": {"enabled": True},
                "publicAccessPrevention": "enforced",
            },
            # Google keeps, and charges for, what was deleted for a week, unless it is told.
            "softDeletePolicy": {"retentionDurationSeconds": "0"},
        }
        try:
            project = self._context.account.project
            self._call("POST", "storage/v1/b", body, project=project)
        except Conflict:
            if not self._is_ours():
                raise

    def _is_ours(self) -> bool:
        """Names are global: it may be of another project."""
        project = self._context.account.project
        found = self._call("GET", "storage/v1/b", project=project, prefix=self._name)
        return any(bucket["name"] == self._name for bucket in found.get("items", ()))

    def _remove(self, ctx: Context) -> None:
        _empty(ctx, self._context, "")
        self._call("DELETE", self._path)

    @property
    def _path(self) -> str:
        return f"storage/v1/b/{self._name}"

    def _call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return self._context.account.call(self.title, "storage", method, path, body, **query)


class BucketFolder(Folder[GoogleContext]):
    """The firewall rule tells those who look where it is."""

    def _sign(self, ctx: Context) -> None:
        Firewall(self._context).make(ctx)

    def _is_signed(self) -> bool:
        return Firewall(self._context).find()

    def _unsign(self, ctx: Context) -> None:
        ServiceAccount(self._context).remove(ctx)
        Firewall(self._context).remove(ctx)

    def _empty(self, ctx: Context, path: str) -> None:
        _empty(ctx, self._context, path)

    def _top(self) -> set[str]:
        found: set[str] = set()
        for page in _pages(self._context, self._prefix, delimiter="/"):
            found |= set(page.get("prefixes", ()))
            found |= {item["name"] for item in page.get("items", ())}
        return found


def store_of(context: GoogleContext) -> Resource:
    """Whichever of the two a task has."""
    return StoreOf(context, Bucket, BucketFolder)


def _pages(context: GoogleContext, prefix: str, **query: Any) -> Iterator[Any]:
    path = f"storage/v1/b/{context.location.bucket}/o"
    yield from context.account.pages(
        "objects", "storage", path, prefix=prefix, versions="true", **query
    )


def _empty(ctx: Context, context: GoogleContext, path: str) -> None:
    """Remove an object, or all of a folder, whose path ends with a slash, or of the bucket.

    That is, in all versions.
    """
    is_folder = not path or path.endswith("/")
    bucket = context.location.bucket

    def remove(item: Any) -> None:
        ctx.check()
        target = f"storage/v1/b/{bucket}/o/{quote(item['name'], safe='')}"
        try:
            context.account.call(
                "objects", "storage", "DELETE", target, generation=item["generation"]
            )
        except NotFound:
            return

    for page in _pages(context, path):
        ctx.check()
        found = [
            item
            for item in page.get("items", ())
            if is_folder or item["name"] == path  # other names may begin like it
        ]
        together([partial(remove, item) for item in found], at_once=_AT_ONCE)

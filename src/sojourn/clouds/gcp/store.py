"""The store of a task: a bucket of its own, or a folder in one of the user's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sojourn.clouds.gcp import tags
from sojourn.clouds.gcp.resources import Firewall, ServiceAccount
from sojourn.clouds.gcp.task_context import GoogleContext
from sojourn.clouds.vm.resource import TaskResource
from sojourn.clouds.vm.store import Folder, StoreOf
from sojourn.clouds.vm.waiting import PATIENCE, until_known
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Resource
    from sojourn.storage.store import Store

__all__ = ["store_of"]

_AT_ONCE = 16


class Bucket(TaskResource[GoogleContext]):
    """A bucket of the task's own."""

    stage = 0
    kind = "bucket"
    _unknown = False  # made just now, and not known everywhere yet

    def _find(self) -> bool:
        try:
            self._context.locations.ensure_ours(self._name)
        except Conflict:
            if self._context.task is None:
                return False  # what is somebody else's is nothing of the task
            raise
        self._call("GET", self._path)
        return True

    def create(self, ctx: Context) -> None:
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
        self._context.locations.claim(self._name)
        self._unknown = True
        until_known(ctx, lambda: self._call("GET", self._path))
        self._unknown = False

    def _is_ours(self) -> bool:
        """Names are global: it may be of another project."""
        project = self._context.account.project
        found = self._call("GET", "storage/v1/b", project=project, prefix=self._name)
        return any(bucket["name"] == self._name for bucket in found.get("items", ()))

    def delete(self, ctx: Context) -> None:
        try:
            self._context.locations.ensure_ours(self._name)
        except Conflict as error:
            ctx.warn(error.message)
            return
        if not self._deleted(ctx):
            patience = ctx.within(PATIENCE)  # emptying alone may take as long as it takes
            patience.sleep(1)
            while not self._deleted(ctx):
                patience.sleep(1)
        self._context.locations.forget(self._context.id)

    def _deleted(self, ctx: Context) -> bool:
        try:
            _empty(ctx, self._context, "")
            self._call("DELETE", self._path)
        except Conflict:
            return False  # somebody wrote to it meanwhile
        except NotFound:
            return not self._unknown
        return True

    @property
    def _path(self) -> str:
        return f"storage/v1/b/{self._name}"

    def _call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return self._context.account.call(self.title, "storage", method, path, body, **query)


class _Container:
    """A folder in a bucket of the user's. The firewall rule tells those who look where it is."""

    def __init__(self, context: GoogleContext) -> None:
        self._context = context
        self._rule = Firewall(context)
        self._machines = ServiceAccount(context)

    def store(self) -> Store:
        return self._context.store()

    def folder(self) -> str:
        return self._context.location.folder

    def store_in(self, folder: str) -> Store:
        return self._context.store_in(folder)

    def neighbours(self) -> Mapping[TaskId, str]:
        return self._context.locations.beside(self._context.location)

    def sign(self, ctx: Context) -> None:
        self._rule.make(ctx)

    def is_signed(self) -> bool:
        return self._rule.find()

    def unsign(self, ctx: Context) -> None:
        self._machines.remove(ctx)
        self._rule.remove(ctx)

    def forget(self) -> None:
        self._context.locations.forget(self._context.id)

    def empty(self, ctx: Context, path: str) -> None:
        _empty(ctx, self._context, path)

    def name(self, path: str) -> str:
        return path.removeprefix(self._prefix)

    def top(self) -> list[str]:
        found: set[str] = set()
        for page in _pages(self._context, self._prefix, delimiter="/"):
            found |= set(page.get("prefixes", ()))
            found |= {item["name"] for item in page.get("items", ())}
        return sorted(found)

    @property
    def _prefix(self) -> str:
        folder = self._context.location.folder
        return f"{folder}/" if folder else ""


def store_of(context: GoogleContext) -> Resource:
    """Whichever of the two a task has."""

    def choose() -> Resource:
        if context.location.contained:
            return Folder(context.id, _Container(context))
        return Bucket(context)

    return StoreOf(context.id, choose)


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

"""The store of a task: a bucket of its own, or a folder in one of the user's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import tags
from sojourn.clouds.aws.errors import code_of, ignoring
from sojourn.clouds.aws.resources import Role, SecurityGroup
from sojourn.clouds.aws.task_context import AwsContext, AwsResource
from sojourn.clouds.vm.store import Folder, StoreOf
from sojourn.clouds.vm.waiting import PATIENCE, until_known
from sojourn.core.errors import AuthError, Conflict, NotFound, Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Resource
    from sojourn.storage.store import Store

__all__ = ["BucketTags", "store_of"]

_PATIENCE = PATIENCE


class Bucket(AwsResource):
    """A bucket of the task's own."""

    stage = 0
    kind = "bucket"
    _unknown = False  # made just now, and not known everywhere yet

    def _find(self) -> bool:
        try:
            self._call("head_bucket")
        except AuthError:
            try:
                self._context.locations.ensure_ours(self._name)
            except Conflict:
                if self._context.task is None:
                    return False  # what is somebody else's is nothing of the task
                raise
            raise
        return True

    def create(self, ctx: Context) -> None:
        region = self._context.location.region
        arguments: dict[str, Any] = {}
        if region != "us-east-1":
            arguments["CreateBucketConfiguration"] = {"LocationConstraint": region}
        with ignoring("BucketAlreadyOwnedByYou"):
            _unhindered(ctx, self.title, lambda: self._call("create_bucket", **arguments))
        self._context.locations.claim(self._name)
        self._unknown = True
        until_known(ctx, lambda: self._call("head_bucket"))
        self._unknown = False

    def delete(self, ctx: Context) -> None:
        try:
            self._context.locations.ensure_ours(self._name)
        except Conflict as error:
            ctx.warn(error.message)
            return
        if not self._deleted(ctx):
            patience = ctx.within(_PATIENCE)  # emptying alone may take as long as it takes
            patience.sleep(1)
            while not self._deleted(ctx):
                patience.sleep(1)
        self._context.locations.forget(self._context.id)

    def _deleted(self, ctx: Context) -> bool:
        try:
            _empty(ctx, self._context, "")
            self._call("delete_bucket")
        except Conflict:
            return False  # somebody wrote to it meanwhile
        except NotFound:
            return not self._unknown
        return True

    def _call(self, operation: str, **arguments: Any) -> Any:
        if operation != "create_bucket":
            arguments["ExpectedBucketOwner"] = self._context.account.number
        return self._context.call(self.title, "s3", operation, Bucket=self._name, **arguments)


def _unhindered(ctx: Context, title: str, do: Callable[[], object]) -> None:
    """Wait while S3 is still at work on the deletion of an earlier bucket of this name."""
    deadline = ctx.within(_PATIENCE).deadline
    while True:
        try:
            do()
            return
        except Transient as error:
            if code_of(error.__cause__ or error) != "OperationAborted":
                raise
            if time.monotonic() >= deadline:
                raise Transient(
                    f"AWS is still deleting an earlier {title}",
                    hint="Try again in an hour, or choose another name.",
                ) from error
        ctx.sleep(2)


class BucketTags(AwsResource):
    """The tags of a task's own bucket, which come when it is certain that it is this task's."""

    kind = "tags of bucket"

    def _find(self) -> bool:
        return False  # never the last thing that is left

    def create(self, ctx: Context) -> None:
        marks = {"TagSet": tags.to_list(self._context.tags)}
        owner = self._context.account.number
        given = {"Bucket": self._name, "Tagging": marks, "ExpectedBucketOwner": owner}

        def put() -> None:
            self._context.call(self.title, "s3", "put_bucket_tagging", **given)

        _unhindered(ctx, f"bucket {self._name}", lambda: until_known(ctx, put))

    def delete(self, ctx: Context) -> None:
        """They go with the bucket."""


class _Container:
    """A folder in a bucket of the user's.

    The role tells those who list tasks that it is there, and a tag of the security group where.
    """

    def __init__(self, context: AwsContext) -> None:
        self._context = context
        self._role = Role(context)
        self._group = SecurityGroup(context)

    def store(self) -> Store:
        return self._context.store()

    def folder(self) -> str:
        return self._context.location.folder

    def store_in(self, folder: str) -> Store:
        return self._context.store_in(folder)

    def neighbours(self) -> Mapping[TaskId, str]:
        return self._context.locations.beside(self._context.location)

    def sign(self, ctx: Context) -> None:
        if not self._context.require_task().permission_set:
            self._role.make(ctx)
        self._group.create(ctx)

    def is_signed(self) -> bool:
        return self._group.find()

    def unsign(self, ctx: Context) -> None:
        self._role.remove()
        self._group.remove(ctx)

    def forget(self) -> None:
        self._context.locations.forget(self._context.id)

    def empty(self, ctx: Context, path: str) -> None:
        _empty(ctx, self._context, path)

    def name(self, path: str) -> str:
        return path.removeprefix(self._prefix)

    def top(self) -> list[str]:
        location = self._context.location
        found = set()
        for page in self._context.account.pages(
            f"folder of {self._context.name}",
            "s3",
            location.bucket_region,
            "list_object_versions",
            Bucket=location.bucket,
            Prefix=self._prefix,
            Delimiter="/",
        ):
            found |= {item["Prefix"] for item in page.get("CommonPrefixes", ())}
            for kind in ("Versions", "DeleteMarkers"):
                found |= {item["Key"] for item in page.get(kind, ())}
        return sorted(found)

    @property
    def _prefix(self) -> str:
        folder = self._context.location.folder
        return f"{folder}/" if folder else ""


def store_of(context: AwsContext) -> Resource:
    """Whichever of the two a task has."""

    def choose() -> Resource:
        if context.location.contained:
            return Folder(context.id, _Container(context))
        return Bucket(context)

    return StoreOf(context.id, choose)


def _empty(ctx: Context, context: AwsContext, path: str) -> None:
    """Remove an object, or all of a folder, whose path ends with a slash, or of the bucket.

    That is, in all versions, and with unfinished uploads. Each page is the first of what is left:
    nothing depends on marks that have been removed.
    """
    location = context.location
    is_folder = not path or path.endswith("/")

    # One of the user's may be another account's.
    owner = {} if location.contained else {"ExpectedBucketOwner": context.account.number}

    def call(operation: str, **arguments: Any) -> Any:
        arguments |= owner
        return context.account.call(
            "objects", "s3", location.bucket_region, operation, Bucket=location.bucket, **arguments
        )

    def pages(operation: str, *kinds: str) -> Iterator[list[Any]]:
        while True:
            ctx.check()
            page = call(operation, Prefix=path)
            found = [item for kind in kinds for item in page.get(kind, ())]
            if not is_folder:  # other names may begin like it
                found = [item for item in found if item["Key"] == path]
            yield found
            if not found or not page.get("IsTruncated"):
                return

    for found in pages("list_object_versions", "Versions", "DeleteMarkers"):
        objects = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in found]
        if objects:
            _all_removed(call("delete_objects", Delete={"Objects": objects, "Quiet": True}))
    for found in pages("list_multipart_uploads", "Uploads"):
        for upload in found:
            with ignoring("NoSuchUpload"):
                call("abort_multipart_upload", Key=upload["Key"], UploadId=upload["UploadId"])


def _all_removed(answer: Any) -> None:
    """Each object may be refused for itself, in an answer that is none."""
    for refused in answer.get("Errors", ()):
        message = f"Could not delete {refused['Key']}: {refused['Message']} ({refused['Code']})"
        if refused["Code"] == "AccessDenied":
            raise AuthError(message, hint="Allow s3:DeleteObject and s3:DeleteObjectVersion.")
        raise Transient(message, hint="Try again to continue where it stopped.")

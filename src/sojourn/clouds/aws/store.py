"""The store of a task: a bucket of its own, or a folder in one of the user's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import tags
from sojourn.clouds.aws.errors import code_of, ignoring
from sojourn.clouds.aws.resources import Role, SecurityGroup
from sojourn.clouds.aws.task_context import AwsContext, AwsResource
from sojourn.clouds.vm.store import Folder, OwnBucket, StoreOf
from sojourn.clouds.vm.waiting import PATIENCE, until_known
from sojourn.core.errors import AuthError, Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Resource

__all__ = ["BucketTags", "store_of"]

_PATIENCE = PATIENCE


class Bucket(OwnBucket[AwsContext]):
    """A bucket of the task's own."""

    def find(self) -> bool:
        try:
            self._look()
        except AuthError:
            if self._is_strange():
                return False
            raise
        return True

    def _look(self) -> object:
        return self._call("head_bucket")

    def _make(self, ctx: Context) -> None:
        region = self._context.location.region
        arguments: dict[str, Any] = {}
        if region != "us-east-1":
            arguments["CreateBucketConfiguration"] = {"LocationConstraint": region}
        with ignoring("BucketAlreadyOwnedByYou"):
            _unhindered(ctx, self.title, lambda: self._call("create_bucket", **arguments))

    def _remove(self, ctx: Context) -> None:
        _empty(ctx, self._context, "")
        self._call("delete_bucket")

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
            if code_of(error) != "OperationAborted":
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

    def find(self) -> bool:
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


class BucketFolder(Folder[AwsContext]):
    """The role tells those who list tasks that it is there, and a tag of the security group
    where."""

    def _sign(self, ctx: Context) -> None:
        if not self._context.require_task().permission_set:
            Role(self._context).make(ctx)
        SecurityGroup(self._context).create(ctx)

    def _is_signed(self) -> bool:
        return SecurityGroup(self._context).find()

    def _unsign(self, ctx: Context) -> None:
        Role(self._context).remove()
        SecurityGroup(self._context).remove(ctx)

    def _empty(self, ctx: Context, path: str) -> None:
        _empty(ctx, self._context, path)

    def _top(self) -> set[str]:
        location = self._context.location
        found: set[str] = set()
        for page in self._context.account.pages(
            self.title,
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
        return found


def store_of(context: AwsContext) -> Resource:
    """Whichever of the two a task has."""
    return StoreOf(context, Bucket, BucketFolder)


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

"""The store of a task: a bucket of its own, or a folder in one of the user's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import tags
from sojourn.clouds.aws.deployment import Deployment, TaskResource
from sojourn.clouds.aws.errors import code_of, ignoring
from sojourn.clouds.aws.resources import Role, SecurityGroup
from sojourn.clouds.vm.paths import NAMES, OWNER, OWNERS
from sojourn.clouds.vm.waiting import PATIENCE, until_known
from sojourn.core.errors import AuthError, Conflict, NotFound, SojournError, Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.core.context import Context

__all__ = ["BucketTags", "StoreOf"]

_PATIENCE = PATIENCE


class Bucket(TaskResource):
    """A bucket of the task's own."""

    stage = 0
    kind = "bucket"
    _unknown = False  # made just now, and not known everywhere yet

    def _find(self) -> bool:
        try:
            self._call("head_bucket")
        except AuthError as error:
            if self._deployment.task is None:
                raise
            raise Conflict(
                f"Access to existing {self.title} denied",
                hint="If it belongs to another account, choose another name; "
                "if it is yours, allow s3:ListBucket; see docs/aws.md for the full policy.",
            ) from error
        return True

    def create(self, ctx: Context) -> None:
        region = self._deployment.location.region
        arguments: dict[str, Any] = {}
        if region != "us-east-1":
            arguments["CreateBucketConfiguration"] = {"LocationConstraint": region}
        with ignoring("BucketAlreadyOwnedByYou"):
            _unhindered(ctx, self.title, lambda: self._call("create_bucket", **arguments))
        self._unknown = True
        until_known(ctx, lambda: self._call("head_bucket"))
        self._unknown = False

    def delete(self, ctx: Context) -> None:
        if not self._deleted(ctx):
            patience = ctx.within(_PATIENCE)  # emptying alone may take as long as it takes
            patience.sleep(1)
            while not self._deleted(ctx):
                patience.sleep(1)
        self._deployment.locations.forget(self._deployment.id)

    def _deleted(self, ctx: Context) -> bool:
        try:
            _empty(ctx, self._deployment, "")
            self._call("delete_bucket")
        except Conflict:
            return False  # somebody wrote to it meanwhile
        except NotFound:
            return not self._unknown
        return True

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._deployment.call(self.title, "s3", operation, Bucket=self._name, **arguments)


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


class BucketTags(TaskResource):
    """The tags of a task's own bucket, which come when it is certain that it is this task's."""

    kind = "tags of bucket"

    def _find(self) -> bool:
        return False  # never the last thing that is left

    def create(self, ctx: Context) -> None:
        marks = {"TagSet": tags.to_list(self._deployment.tags)}
        given = {"Bucket": self._name, "Tagging": marks}

        def put() -> None:
            self._deployment.call(self.title, "s3", "put_bucket_tagging", **given)

        _unhindered(ctx, f"bucket {self._name}", lambda: until_known(ctx, put))

    def delete(self, ctx: Context) -> None:
        """They go with the bucket."""


class Folder(TaskResource):
    """Our things in a bucket that the user has. Beside them may be others: these are left alone.

    The role tells those who list tasks that it is there, and a tag of the security group tells
    where: both come first and go last.
    """

    stage = 0
    kind = "folder"

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(deployment)
        self._role = Role(deployment)
        self._sign = SecurityGroup(deployment)

    @property
    def title(self) -> str:
        return f"folder of {self._name}"

    def _find(self) -> bool:
        return self._sign.find() or self._owner() == self._name

    def create(self, ctx: Context) -> None:
        self._refuse_others()
        if not self._deployment.wanted.permission_set:
            self._role.make(ctx)
        self._sign.create(ctx)
        if not self._deployment.store().put_new(OWNER, self._name.encode()):
            self._remove_signs(ctx)
            self._refuse_others()

    def _remove_signs(self, ctx: Context) -> None:
        self._role.remove()
        self._sign.remove(ctx)

    def _refuse_others(self) -> None:
        ours, owner = self._ours(), self._owner()
        if (ours and not owner) or owner not in ("", self._name):
            there = f"the task {owner}" if owner else ", ".join(ours)
            raise Conflict(
                f"The container already holds {there}",
                hint="Set storage.container to another path.",
            )

    def delete(self, ctx: Context) -> None:
        try:
            if self._owner() == self._name:
                # What tells that it is ours goes last.
                for path in sorted(self._ours(), key=lambda path: path.endswith(OWNERS)):
                    _empty(ctx, self._deployment, path)
            self._remove_signs(ctx)
        except NotFound:
            pass
        self._deployment.locations.forget(self._deployment.id)

    def _owner(self) -> str:
        """The id of the task that is there; none: empty."""
        try:
            return bytes(self._deployment.store().get(OWNER)).decode()
        except NotFound:
            return ""

    def _ours(self) -> list[str]:
        """What is there by names that we use, files and folders, in any version."""
        location = self._deployment.location
        prefix = f"{location.folder}/" if location.folder else ""
        found = set()
        for page in self._deployment.account.pages(
            self.title,
            "s3",
            location.bucket_region,
            "list_object_versions",
            Bucket=location.bucket,
            Prefix=prefix,
            Delimiter="/",
        ):
            found |= {item["Prefix"] for item in page.get("CommonPrefixes", ())}
            for kind in ("Versions", "DeleteMarkers"):
                found |= {item["Key"] for item in page.get(kind, ())}
        return sorted(path for path in found if path.removeprefix(prefix).rstrip("/") in NAMES)


class StoreOf:
    """Whichever of the two a task has."""

    stage = 0

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    @property
    def title(self) -> str:
        try:
            return self._chosen.title
        except SojournError:
            return f"store of {self._deployment.name}"

    def read(self, ctx: Context) -> bool:
        try:
            return self._chosen.read(ctx)
        except NotFound:
            return False

    def create(self, ctx: Context) -> None:
        self._chosen.create(ctx)

    def delete(self, ctx: Context) -> None:
        try:
            self._chosen.delete(ctx)
        except NotFound:
            return  # nothing tells of it any more

    @property
    def _chosen(self) -> Bucket | Folder:
        return (
            Folder(self._deployment)
            if self._deployment.location.contained
            else Bucket(self._deployment)
        )


def _empty(ctx: Context, deployment: Deployment, path: str) -> None:
    """Remove an object, or all of a folder, whose path ends with a slash, or of the bucket.

    That is, in all versions, and with unfinished uploads. Each page is the first of what is left:
    nothing depends on marks that have been removed.
    """
    location = deployment.location
    is_folder = not path or path.endswith("/")

    def call(operation: str, **arguments: Any) -> Any:
        return deployment.account.call(
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

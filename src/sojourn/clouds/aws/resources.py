"""What is made in AWS for a task beside the group of its machines."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sojourn.agent.bundle import bundle
from sojourn.clouds.aws import keys, policy, store, tags
from sojourn.clouds.aws.errors import ignoring
from sojourn.core.errors import AuthError, Conflict, NotFound, SojournError, Transient
from sojourn.storage.layout import ATTEMPTS, ENVIRONMENT, FOLLOW, REPORTS, TASK, WORKDIR
from sojourn.storage.store import open_store

if TYPE_CHECKING:
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.locate import Place, Places
    from sojourn.clouds.aws.machines import Offer, Offers
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.storage.store import Store

__all__ = ["BOOT", "AgentFiles", "KeyPair", "Role", "SecurityGroup", "Site", "StoreOf"]

_PATIENCE = 120.0  # seconds until what was made is known everywhere
_POLICY = "task"
_SSH = 22
BOOT = "boot/"
_OWNERS = "laptop/"  # beside the key's seed
_OWNER = f"{_OWNERS}owner"
# All that a store has at its top: what `storage.layout` names, and what is of this cloud.
_NAMES = frozenset(
    {
        *(TASK, ENVIRONMENT, WORKDIR, ATTEMPTS, REPORTS, FOLLOW),
        *("logs", "ranks", "machines", BOOT.rstrip("/"), _OWNERS.rstrip("/")),
    }
)


@dataclass(frozen=True)
class Site:
    """A task and where it is; what all its resources share. `task` is None when it is unknown."""

    account: Account
    places: Places
    offers: Offers
    id: TaskId
    task: Task | None

    @property
    def name(self) -> str:
        return str(self.id)

    @property
    def place(self) -> Place:
        """Where it is. Nowhere: raises NotFound."""
        return self.places.of(self.id, self.task)

    @property
    def wanted(self) -> Task:
        """The task, where it has to be known."""
        if self.task is None:
            raise ValueError("this verb needs the task")
        return self.task

    @property
    def offer(self) -> Offer:
        return self.offers.find(self.wanted)

    @property
    def tags(self) -> dict[str, str]:
        return tags.tags_of(self.id, self.wanted)

    def call(self, what: str, service: str, operation: str, **arguments: Any) -> Any:
        """An operation in the task's region."""
        return self.account.call(what, service, self.place.region, operation, **arguments)

    def store(self) -> Store:
        """The task's store, with the user's own credentials."""
        return open_store(store.address(self.account, self.place))


class _Made:
    """What resources have in common: `_find` looks for one, and what is nowhere is absent."""

    stage = 1
    kind = ""

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def title(self) -> str:
        return f"{self.kind} {self._site.name}"

    def read(self, ctx: Context) -> bool:
        try:
            return self._find()
        except NotFound:
            return False

    def _find(self) -> bool:
        raise NotImplementedError

    def _tagged(self, kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": tags.to_list(self._site.tags)}]


class Bucket(_Made):
    """A bucket of the task's own."""

    stage = 0
    kind = "bucket"
    _unknown = False  # made just now, and not known everywhere yet

    def _find(self) -> bool:
        try:
            self._call("head_bucket")
        except AuthError as error:
            if self._site.task is None:
                raise
            raise Conflict(
                f"There is a {self.title} that you may not look into",
                hint="If it is somebody else's, choose another name; "
                "if it is yours, allow s3:ListBucket: docs/aws.md has the whole policy.",
            ) from error
        return True

    def create(self, ctx: Context) -> None:
        region = self._site.place.region
        arguments: dict[str, Any] = {}
        if region != "us-east-1":
            arguments["CreateBucketConfiguration"] = {"LocationConstraint": region}
        with ignoring("BucketAlreadyOwnedByYou"):
            self._call("create_bucket", **arguments)
        self._unknown = True
        _until_known(ctx, lambda: self._call("head_bucket"))
        self._unknown = False
        marks = {"TagSet": tags.to_list(self._site.tags)}
        _until_known(ctx, lambda: self._call("put_bucket_tagging", Tagging=marks))

    def delete(self, ctx: Context) -> None:
        patience = ctx.within(_PATIENCE)
        while not self._deleted(ctx):
            patience.sleep(1)
        self._site.places.forget(self._site.id)

    def _deleted(self, ctx: Context) -> bool:
        try:
            _empty(ctx, self._site, "")
            self._call("delete_bucket")
        except Conflict:
            return False  # somebody wrote to it meanwhile
        except NotFound:
            return not self._unknown
        return True

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._site.call(self.title, "s3", operation, Bucket=self._site.name, **arguments)


class Folder(_Made):
    """Our things in a bucket that the user has. Beside them may be others: these are left alone.

    A tag of the security group tells where they are, and the role, which is in no region, that they
    are anywhere. So both come first and go last.
    """

    stage = 0
    kind = "folder"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._sign = SecurityGroup(site)
        self._role = Role(site)

    @property
    def title(self) -> str:
        return f"folder of {self._site.name}"

    def _find(self) -> bool:
        return self._sign.find() or self._owner() == self._site.name

    def create(self, ctx: Context) -> None:
        self._refuse_others()
        self._sign.create(ctx)
        if not self._site.wanted.permission_set:
            self._role.begin()
        if not self._site.store().put_new(_OWNER, self._site.name.encode()):
            self._role.end()
            self._sign.remove(ctx)
            self._refuse_others()

    def _refuse_others(self) -> None:
        ours, owner = self._ours(), self._owner()
        if (ours and not owner) or owner not in ("", self._site.name):
            there = f"the task {owner}" if owner else ", ".join(ours)
            raise Conflict(
                f"There is something else in the container already: {there}",
                hint="Give another path in it as storage.container.",
            )

    def delete(self, ctx: Context) -> None:
        try:
            if self._owner() == self._site.name:
                # What tells that it is ours goes last.
                for path in sorted(self._ours(), key=lambda path: path.endswith(_OWNERS)):
                    _empty(ctx, self._site, path)
            self._role.end()
            self._sign.remove(ctx)
        except NotFound:
            pass
        self._site.places.forget(self._site.id)

    def _owner(self) -> str:
        """The id of the task that is there; none: empty."""
        try:
            return bytes(self._site.store().get(_OWNER)).decode()
        except NotFound:
            return ""

    def _ours(self) -> list[str]:
        """What is there by names that we use, files and folders, in any version."""
        place = self._site.place
        prefix = f"{place.folder}/" if place.folder else ""
        found = set()
        for page in self._site.account.pages(
            self.title,
            "s3",
            place.bucket_region,
            "list_object_versions",
            Bucket=place.bucket,
            Prefix=prefix,
            Delimiter="/",
        ):
            found |= {item["Prefix"] for item in page.get("CommonPrefixes", ())}
            for kind in ("Versions", "DeleteMarkers"):
                found |= {item["Key"] for item in page.get(kind, ())}
        return sorted(path for path in found if path.removeprefix(prefix).rstrip("/") in _NAMES)


class StoreOf:
    """Whichever of the two a task has."""

    stage = 0

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def title(self) -> str:
        try:
            return self._chosen.title
        except SojournError:
            return f"store of {self._site.name}"

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
        return Folder(self._site) if self._site.place.contained else Bucket(self._site)


def _empty(ctx: Context, site: Site, prefix: str) -> None:
    """Remove all objects, in all versions, and unfinished uploads, page by page."""
    place = site.place
    where = {"Bucket": place.bucket, "Prefix": prefix}

    def pages(operation: str) -> Any:
        return site.account.pages("objects", "s3", place.bucket_region, operation, **where)

    def call(operation: str, **arguments: Any) -> Any:
        return site.account.call(
            "objects", "s3", place.bucket_region, operation, Bucket=place.bucket, **arguments
        )

    for page in pages("list_object_versions"):
        ctx.check()
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        objects = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in found]
        if objects:
            _all_removed(call("delete_objects", Delete={"Objects": objects, "Quiet": True}))
    for page in pages("list_multipart_uploads"):
        for upload in page.get("Uploads", ()):
            with ignoring("NoSuchUpload"):
                call("abort_multipart_upload", Key=upload["Key"], UploadId=upload["UploadId"])


def _all_removed(answer: Any) -> None:
    """Each object may be refused for itself, in an answer that is none."""
    for refused in answer.get("Errors", ()):
        message = f"{refused['Key']} cannot be removed: {refused['Message']} ({refused['Code']})"
        if refused["Code"] == "AccessDenied":
            raise AuthError(message, hint="Allow s3:DeleteObject and s3:DeleteObjectVersion.")
        raise Transient(message, hint="Try again; it continues where it was.")


def _until_known(ctx: Context, look: Any) -> None:
    """What was just made may be unknown elsewhere for a moment."""
    patience = ctx.within(_PATIENCE)
    while True:
        try:
            look()
            return
        except NotFound:
            patience.sleep(0.5)


class Role(_Made):
    """What machines may do, and the profile by which they get it."""

    kind = "role"

    def _find(self) -> bool:
        found = False
        for operation, name in (
            ("get_role", "RoleName"),
            ("get_instance_profile", "InstanceProfileName"),
        ):
            try:
                self._call(operation, **{name: self._site.name})
                found = True
            except NotFound:
                continue
        return found

    def begin(self) -> None:
        """Make the role alone, which allows nothing yet."""
        self._unless_there(
            "create_role",
            RoleName=self._site.name,
            Path=tags.ROLE_PATH,
            AssumeRolePolicyDocument=json.dumps(policy.FOR_MACHINES),
            Description="Machines of a Sojourn task",
            Tags=tags.to_list(self._site.tags),
        )

    def end(self) -> None:
        """Remove the role, once it is alone; absent: nothing."""
        with suppress(NotFound):
            self._call("delete_role", RoleName=self._site.name)

    def create(self, ctx: Context) -> None:
        name, marks = self._site.name, tags.to_list(self._site.tags)
        self.begin()
        allowed = json.dumps(policy.machine_policy(self._site.id, self._site.place))
        given = {"RoleName": name, "PolicyName": _POLICY, "PolicyDocument": allowed}
        _until_known(ctx, lambda: self._call("put_role_policy", **given))
        self._unless_there(
            "create_instance_profile", InstanceProfileName=name, Path=tags.ROLE_PATH, Tags=marks
        )
        _until_known(ctx, self._join)

    def _join(self) -> None:
        name = self._site.name
        profile = self._call("get_instance_profile", InstanceProfileName=name)["InstanceProfile"]
        if not profile["Roles"]:
            with ignoring("LimitExceeded"):  # somebody did meanwhile: it takes one role
                self._call("add_role_to_instance_profile", InstanceProfileName=name, RoleName=name)

    def delete(self, ctx: Context) -> None:
        name = self._site.name
        for operation, arguments in (
            (
                "remove_role_from_instance_profile",
                {"InstanceProfileName": name, "RoleName": name},
            ),
            ("delete_instance_profile", {"InstanceProfileName": name}),
            ("delete_role_policy", {"RoleName": name, "PolicyName": _POLICY}),
        ):
            with suppress(NotFound):
                self._call(operation, **arguments)
        if not self._is_sign():
            self.end()

    def _is_sign(self) -> bool:
        """Whether it tells that there is a task in a bucket of the user's; then it goes with it."""
        try:
            return self._site.place.contained
        except NotFound:
            return False

    def _unless_there(self, operation: str, **arguments: Any) -> None:
        with ignoring("EntityAlreadyExists"):
            self._call(operation, **arguments)

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._site.account.call(self.title, "iam", "us-east-1", operation, **arguments)


class SecurityGroup(_Made):
    """Lets SSH in and everything out."""

    kind = "security group"

    def _find(self) -> bool:
        return self.find()

    def find(self) -> bool:
        return bool(self._groups())

    def _groups(self) -> list[str]:
        """The ids of ours; others may have one of the same name, in this network or another."""
        ours = [
            {"Name": "group-name", "Values": [self._site.name]},
            {"Name": f"tag:{tags.ID}", "Values": [self._site.name]},
        ]
        found = self._call("describe_security_groups", Filters=ours)["SecurityGroups"]
        return [str(group["GroupId"]) for group in found]

    def group(self) -> str:
        """Its id. Absent: raises NotFound."""
        for group in self._groups():
            return group
        raise NotFound(f"There is no {self.title}")

    def create(self, ctx: Context) -> None:
        rule = {
            "IpProtocol": "tcp",
            "FromPort": _SSH,
            "ToPort": _SSH,
            "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
        }
        group = self._made()
        with ignoring("InvalidPermission.Duplicate"):
            self._call("authorize_security_group_ingress", GroupId=group, IpPermissions=[rule])

    def _made(self) -> str:
        for group in self._groups():
            return group
        try:
            made = self._call(
                "create_security_group",
                GroupName=self._site.name,
                Description="Sojourn",
                VpcId=self._site.offer.vpc,
                TagSpecifications=self._tagged("security-group"),
            )
            return str(made["GroupId"])
        except Conflict:
            for group in self._groups():
                return group  # somebody made it meanwhile
            raise

    def delete(self, ctx: Context) -> None:
        try:
            if self._site.place.contained:
                return  # it goes with the folder
        except NotFound:
            return
        self.remove(ctx)

    def remove(self, ctx: Context) -> None:
        patience = ctx.within(_PATIENCE * 5)
        try:
            for group in self._groups():
                while True:
                    try:
                        self._call("delete_security_group", GroupId=group)
                        break
                    except Conflict:
                        patience.sleep(2)  # the last machine has not gone yet
        except NotFound:
            return

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._site.call(self.title, "ec2", operation, **arguments)


class KeyPair(_Made):
    """Opens the machines to whoever can read the store's seed."""

    kind = "key pair"

    def _find(self) -> bool:
        named = [{"Name": "key-name", "Values": [self._site.name]}]
        return bool(self._call("describe_key_pairs", Filters=named)["KeyPairs"])

    def create(self, ctx: Context) -> None:
        if self._find():
            return
        opened = self._site.store()
        keys.make_seed(opened)
        pair = keys.key_pair(opened, self._site.id)
        if pair is None:
            raise Transient("The key's seed cannot be read yet", hint="Try again.")
        with ignoring("InvalidKeyPair.Duplicate"):  # somebody made it meanwhile, of the same seed
            self._call(
                "import_key_pair",
                KeyName=self._site.name,
                PublicKeyMaterial=pair.public.encode(),
                TagSpecifications=self._tagged("key-pair"),
            )

    def delete(self, ctx: Context) -> None:
        try:
            self._call("delete_key_pair", KeyName=self._site.name)
        except NotFound:
            return

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._site.call(self.title, "ec2", operation, **arguments)


class AgentFiles(_Made):
    """The agent in the store, for each Python that an image may have; goes with the store."""

    @property
    def title(self) -> str:
        return "agent in the store"

    def _find(self) -> bool:
        return False  # never the last thing that is left

    def create(self, ctx: Context) -> None:
        opened = self._site.store()
        for python in self._site.offer.image.pythons:
            ctx.check()
            path = f"{BOOT}{self._name(python)}"
            if not opened.head(path):
                opened.put(path, bundle(python, self._architecture))

    def delete(self, ctx: Context) -> None:
        """The store goes last, and this with it."""

    @cached_property
    def _architecture(self) -> str:
        return {"arm64": "aarch64"}.get(self._site.offer.image.architecture, "x86_64")

    def _name(self, python: str) -> str:
        return f"agent-{self._architecture}-{python}.zip"

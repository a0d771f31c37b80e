"""Where a task is. Its resource group has its name, and tells the rest by its tags."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import tags
from sojourn.clouds.az.regions import region
from sojourn.clouds.vm.containers import PATH, parsed
from sojourn.clouds.vm.known import Known
from sojourn.core.errors import AuthError, InvalidInput, NotFound, Problem
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from sojourn.clouds.az.account import Account
    from sojourn.core.task import Task

__all__ = ["CONTAINER", "Location", "Locations", "account_name", "parse_container"]

CONTAINER = "task"  # in a storage account of the task's own
_LONGEST = 256  # characters, as many as a tag takes
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"(?P<container>(?=.{3,63}(/|$))[a-z0-9]+(-[a-z0-9]+)*)" + PATH, re.ASCII)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Location:
    """The region of a task, and where its store is: a container, and a folder in it or all of it.

    `contained`: the container is the user's. `key`: of its account, if the user gave one; it is
    kept in this process alone.
    """

    region: str
    account: str
    container: str
    folder: str = ""
    contained: bool = False
    key: str = field(default="", compare=False, repr=False)

    @property
    def bucket(self) -> str:
        return f"{self.account}/{self.container}"


def parse_container(text: str) -> tuple[str, str | None]:
    """Container and folder, as `clouds.vm.containers` has them."""
    return parsed(text, _CONTAINER, _LONGEST, "container")


def account_name(subscription: str, id: TaskId) -> str:
    """Of the task's own storage account. No two of the world can have the same name, but two
    subscriptions can have tasks of the same name."""
    number = int.from_bytes(hashlib.sha256(f"{subscription}/{id}".encode()).digest(), "big")
    digits = ""
    for _ in range(21):
        number, digit = divmod(number, len(_DIGITS))
        digits += _DIGITS[digit]
    return f"tpi{digits}"


def check_container(task: Task) -> None:
    """Refuse a container that cannot be one."""
    given = task.storage
    unknown = sorted(given.container_opts.keys() - {"account", "key"})
    problems = [
        Problem(f"storage.container_opts.{name}", "not supported by Azure") for name in unknown
    ]
    if problems:
        raise InvalidInput.of(problems)
    if not given.container:
        return
    name, _ = parse_container(given.container)
    account = given.container_opts.get("account", "")
    if not _ACCOUNT.fullmatch(account):
        raise InvalidInput(
            "storage.container_opts.account",
            f"must be the name of the storage account that has container {name}, got {account!r}",
        )


class Locations(Known[Location]):
    """Finds tasks, and remembers them for the length of a command."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self._account = account
        self._of_users: dict[str, str] = {}  # ids of the user's storage accounts

    def _planned(self, id: TaskId, task: Task) -> Location:
        where = region(task.region)
        given = task.storage
        options = given.container_opts
        placed = self._placed(id, where, options.get("account", ""), given.container)
        return replace(placed, key=options.get("key", ""))

    def _placed(self, id: TaskId, where: str, account: str, container: str) -> Location:
        if not container:
            return Location(where, account_name(self._account.subscription, id), CONTAINER)
        name, folder = parse_container(container)
        return Location(where, account, name, str(id) if folder is None else folder, contained=True)

    def _found(self, id: TaskId) -> Location:
        return self.told_by(id, self.look(id))

    def look(self, id: TaskId) -> Any:
        """The group of a task as it is now. Not there: raises NotFound."""
        try:
            group = self._account.call(f"task {id}", "GET", f"resourceGroups/{id}")
        except NotFound as error:
            raise _missing(id) from error
        if (group.get("tags") or {}).get(tags.ID) != str(id):
            raise _missing(id)
        return group

    def told_by(self, id: TaskId, group: Any) -> Location:
        """What the group of a task tells."""
        marks = group.get("tags") or {}
        where = str(group["location"])
        return self._placed(id, where, marks.get(tags.ACCOUNT, ""), marks.get(tags.CONTAINER, ""))

    def tasks(self) -> dict[TaskId, Location]:
        """All tasks of the subscription."""
        found: dict[TaskId, Location] = {}
        query = {"$filter": f"tagName eq '{tags.ID}'"}
        for group in self._account.pages("tasks", "resourceGroups", query):
            with suppress(InvalidInput):  # it is no task's
                id = TaskId.parse(group["name"].lower())  # noqa: A001
                if (group.get("tags") or {}).get(tags.ID) == str(id):
                    found[id] = self.told_by(id, group)
        self.remember(found)
        return found

    def ensure_ours(self, id: TaskId, account: str, *, again: bool = False) -> None:
        """Refuse a storage account that is not in the group of its task: another subscription may
        have one of the name, which is global. `account` is its id; not there: raises NotFound."""
        if account in self._ours and not again:
            return
        with suppress(AuthError):  # who may not look takes what answers
            self._account.call(f"storage account of {id}", "GET", account)
            self._ours.add(account)

    # Containers of the user's

    def check(self, task: Task) -> None:
        given = task.storage
        if not given.container:
            return
        name, account = parse_container(given.container)[0], given.container_opts["account"]
        try:
            path = f"{self.account_id(account)}/blobServices/default/containers/{name}"
            self._account.call(f"container {name}", "GET", path)
        except NotFound as error:
            raise InvalidInput(
                "storage.container",
                f"container {name} not found in storage account {account}; create it first",
            ) from error

    def account_id(self, account: str) -> str:
        """The id of a storage account of the user's. Unknown: raises InvalidInput."""
        if account not in self._of_users:
            path = "providers/Microsoft.Storage/storageAccounts"
            found = self._account.pages("storage accounts", path)
            self._of_users |= {str(each["name"]): str(each["id"]) for each in found}
        if account not in self._of_users:
            raise InvalidInput(
                "storage.container_opts.account",
                f"storage account {account} not found in this subscription",
            )
        return self._of_users[account]


def _missing(id: TaskId) -> NotFound:
    return NotFound.task(id)

"""Remove what tests left in a real Google Cloud project: only what is marked with `sojourn-test`.

python -m tests.contract.clouds.sweep_gcp [--yes] [--mark MARK]

Without --yes it only shows what there is. Of the product it uses the login and its calls alone: it
has to look in the project that the tests used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

from sojourn.clouds.gcp.account import Account
from sojourn.core.errors import SojournError
from tests.contract.clouds import sweeping
from tests.contract.clouds.gcp_marks import MARK, told_by
from tests.contract.clouds.sweeping import Found, Sweeper

_OURS = "name eq tpi-.*"
_OUR_IMAGES = "name eq sojourn-.*"
_ENDED = ("STOPPED", "SUSPENDED", "TERMINATED")
_POLICY = "cloudresourcemanager"


class Sweep(Sweeper):
    """What is in the project, in all zones."""

    refusal = SojournError

    def __init__(self, mark: str = "") -> None:
        super().__init__(mark)
        self._account = Account()

    def found(self) -> Iterator[Found]:
        yield from self._compute("group", "instanceGroupManagers", self._described)
        yield from self._compute("machine", "instances", self._labelled)
        yield from self._compute("disk", "disks", self._labelled)
        yield from self._compute("image", "images", self._labelled)
        yield from self._compute("template", "instanceTemplates", self._described)
        yield from self._compute("firewall rule", "firewalls", self._described)
        yield from self._bindings()
        yield from self._accounts()
        yield from self._buckets()

    def machines(self) -> Iterator[Any]:
        """Those that are there, and have not ended."""
        for item in self._listed("instances"):
            if self._labelled(item) and item["status"] not in _ENDED:
                yield item

    def _labelled(self, item: Any) -> bool:
        return self.is_ours(item.get("labels", {}).get(MARK))

    def _described(self, item: Any) -> bool:
        return self.is_ours(told_by(item.get("description")))

    def _compute(
        self, kind: str, collection: str, is_ours: Callable[[Any], bool]
    ) -> Iterator[Found]:
        for item in self._listed(collection):
            if is_ours(item):
                path = item["selfLink"].partition(f"/projects/{self._account.project}/")[2]
                remove = partial(self._account.compute, kind, "DELETE", path)
                yield Found(f"{kind} {item['name']}", remove)

    def _listed(self, collection: str) -> Iterator[Any]:
        everywhere = collection in ("instanceGroupManagers", "instances", "disks")
        place = "aggregated" if everywhere else "global"
        path = f"compute/v1/projects/{self._account.project}/{place}/{collection}"
        ours = _OUR_IMAGES if collection == "images" else _OURS
        for page in self._account.pages(collection, "compute", path, filter=ours):
            scopes = (
                page.get("items", {}).values()
                if everywhere
                else [{collection: page.get("items", ())}]
            )
            for scope in scopes:
                yield from scope.get(collection, ())

    def _bindings(self) -> Iterator[Found]:
        for binding in self._policy().get("bindings", ()):
            if self._described(binding.get("condition", {})):
                title = f"binding {binding['role']} of {', '.join(binding['members'])}"
                yield Found(title, partial(self._unbind, binding))

    def _unbind(self, binding: Any) -> None:
        """What others changed meanwhile stays: the policy's etag tells."""
        policy = self._policy()
        kept = [each for each in policy["bindings"] if each != binding]
        body = {"policy": {**policy, "version": 3, "bindings": kept}}
        path = f"v1/projects/{self._account.project}:setIamPolicy"
        self._account.call("policy", _POLICY, "POST", path, body)

    def _policy(self) -> Any:
        path = f"v1/projects/{self._account.project}:getIamPolicy"
        body = {"options": {"requestedPolicyVersion": 3}}
        return self._account.call("policy", _POLICY, "POST", path, body)

    def _accounts(self) -> Iterator[Found]:
        path = f"v1/projects/{self._account.project}/serviceAccounts"
        for page in self._account.pages("service accounts", "iam", path):
            for item in page.get("accounts", ()):
                if self._described(item):
                    one = f"{path}/{item['email']}"
                    remove = partial(self._account.call, "service account", "iam", "DELETE", one)
                    yield Found(f"service account {item['email']}", remove)

    def _buckets(self) -> Iterator[Found]:
        query = {"project": self._account.project, "prefix": "tpi-"}
        for page in self._account.pages("buckets", "storage", "storage/v1/b", **query):
            for item in page.get("items", ()):
                if self._labelled(item):
                    yield Found(f"bucket {item['name']}", partial(self._remove, item["name"]))

    def _remove(self, bucket: str) -> None:
        path = f"storage/v1/b/{bucket}"
        for page in self._account.pages("objects", "storage", f"{path}/o", versions="true"):
            for item in page.get("items", ()):
                one = f"{path}/o/{quote(item['name'], safe='')}"
                generation = item["generation"]
                self._account.call("object", "storage", "DELETE", one, generation=generation)
        self._account.call("bucket", "storage", "DELETE", path)


def main(arguments: list[str]) -> int:
    return sweeping.run(__doc__, arguments, lambda _, mark: Sweep(mark))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

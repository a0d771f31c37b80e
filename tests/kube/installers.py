"""An account with the ClusterRole of docs/kubernetes.md that installs mpi-operator."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.kube.api import Api
from tests.kube.namespaces import Namespace

__all__ = ["Installer", "installer"]

_PAGE = Path(__file__).parents[2] / "docs" / "kubernetes.md"
_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def _page_rules() -> list[dict[str, Any]]:
    section = _PAGE.read_text().split("## mpi-operator", 1)[1]
    block = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert block
    rules: list[dict[str, Any]] = yaml.safe_load(block[1])["rules"]
    return rules


@dataclass(frozen=True)
class Installer:
    """Its `file` is a kubeconfig."""

    api: Api
    name: str
    file: Path

    def rules(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api.get(f"{_ROLES}/{self.name}")["rules"]
        return found

    def set_rules(self, rules: list[dict[str, Any]]) -> None:
        self.api.patch(f"{_ROLES}/{self.name}", {"rules": rules})


@contextmanager
def installer(namespace: Namespace, kubeconfig: Path, folder: Path) -> Iterator[Installer]:
    """Made for a test, and removed after it."""
    api, name = namespace.api, f"sojourn-test-{uuid.uuid4().hex[:8]}"
    named = {"metadata": {"name": name}}
    accounts = f"{namespace.path}/serviceaccounts"
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace.name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    try:
        api.create(accounts, named)
        api.create(_ROLES, {**named, "rules": _page_rules()})
        api.create(_BINDINGS, {**named, "roleRef": role, "subjects": [account]})
        asked = {"spec": {"expirationSeconds": 3600}}
        token = api.create(f"{accounts}/{name}/token", asked)["status"]["token"]
        config = yaml.safe_load(kubeconfig.read_text())
        config["users"] = [{"name": "limited", "user": {"token": token}}]
        for context in config["contexts"]:
            context["context"]["user"] = "limited"
        file = folder / "installer.kubeconfig"
        file.write_text(json.dumps(config))
        yield Installer(api, name, file)
    finally:
        for path in (_BINDINGS, _ROLES, accounts):
            api.delete(f"{path}/{name}")

"""An account with the role of docs/kubernetes.md, in the namespace of a test."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.contract.clouds.k8s_kit import KubernetesKit

__all__ = ["Account", "call"]

_PAGE = Path(__file__).parents[2] / "docs" / "kubernetes.md"
_NAME = "sojourn"


def _documents() -> list[dict[str, Any]]:
    """The YAML of the page's section on permissions."""
    section = _PAGE.read_text().split("## Permissions", 1)[1]
    block = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert block
    return list(yaml.safe_load_all(block[1]))


def _paths(kit: KubernetesKit, kind: str) -> str:
    plural = {"ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings"}
    group = "api/v1" if kind == "ServiceAccount" else "apis/rbac.authorization.k8s.io/v1"
    return f"/{group}/namespaces/{kit.api.namespace}/{plural[kind]}"


def call(kit: KubernetesKit, method: str, path: str, body: Any = None) -> Any:
    return kit.api._call(path, method, path, {}, body, "application/json")


class Account:
    """An account with the page's role, in the namespace of a test."""

    def __init__(self, kit: KubernetesKit, kubeconfig: Path, folder: Path) -> None:
        self._kit = kit
        self._file = folder / "kubeconfig"
        self._admin = kubeconfig
        namespace = kit.api.namespace
        for document in _documents():
            if document["kind"] == "Namespace":
                continue
            text = json.dumps(document).replace(
                f'"namespace": "{_NAME}"', f'"namespace": "{namespace}"'
            )
            call(kit, "POST", _paths(kit, document["kind"]), json.loads(text))
        self.log_in()

    def log_in(self, seconds: int = 3600) -> None:
        """With a new token."""
        path = f"{_paths(self._kit, 'ServiceAccount')}/{_NAME}/token"
        asked = {"spec": {"expirationSeconds": seconds}}
        token = call(self._kit, "POST", path, asked)["status"]["token"]
        config = yaml.safe_load(self._admin.read_text())
        config["users"] = [{"name": "limited", "user": {"token": token}}]
        for context in config["contexts"]:
            context["context"]["user"] = "limited"
        self._file.write_text(json.dumps(config))

    @property
    def file(self) -> Path:
        return self._file

    def rules(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = call(
            self._kit, "GET", f"{_paths(self._kit, 'Role')}/{_NAME}"
        )["rules"]
        return found

    def set_rules(self, rules: list[dict[str, Any]]) -> None:
        path = f"{_paths(self._kit, 'Role')}/{_NAME}"
        role = call(self._kit, "GET", path)
        call(self._kit, "PUT", path, {**role, "rules": rules})

"""An account with the role of docs/kubernetes.md, in the namespace of a test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.contract.clouds.k8s_kit import KubernetesKit

__all__ = ["Account", "allowed", "call", "single", "without"]

_PAGE = Path(__file__).parents[2] / "docs" / "kubernetes.md"
_NAME = "sojourn"


def _documents(*, gangs: bool) -> list[dict[str, Any]]:
    """The YAML of the page's section on permissions, with or without what gangs need."""
    section = _PAGE.read_text().split("\n## Permissions\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 2
    return [item for block in blocks[: 1 + gangs] for item in yaml.safe_load_all(block)]


def _paths(kit: KubernetesKit, kind: str) -> str:
    plural = {"ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings"}
    group = "api/v1" if kind == "ServiceAccount" else "apis/rbac.authorization.k8s.io/v1"
    return f"/{group}/namespaces/{kit.api.namespace}/{plural[kind]}"


def call(kit: KubernetesKit, method: str, path: str, body: Any = None) -> Any:
    return kit.api._call(path, method, path, {}, body, "application/json")


class Account:
    """An account with the page's role, in the namespace of a test."""

    def __init__(
        self, kit: KubernetesKit, kubeconfig: Path, folder: Path, *, gangs: bool = False
    ) -> None:
        self._kit = kit
        self._file = folder / "kubeconfig"
        self._admin = kubeconfig
        namespace = kit.api.namespace
        for document in _documents(gangs=gangs):
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

    def rules(self, name: str = _NAME) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = call(self._kit, "GET", f"{_paths(self._kit, 'Role')}/{name}")[
            "rules"
        ]
        return found

    def set_rules(self, rules: list[dict[str, Any]], name: str = _NAME) -> None:
        path = f"{_paths(self._kit, 'Role')}/{name}"
        role = call(self._kit, "GET", path)
        call(self._kit, "PUT", path, {**role, "rules": rules})


def allowed(verb: str, group: str, resource: str) -> bool:
    """Whether whoever is logged in may do this, as the cluster has it just now."""
    from sojourn.clouds.k8s import rights
    from sojourn.kube.api import Api
    from sojourn.kube.kubeconfig import load

    return rights.allowed(Api(load), verb, group, resource)


def single(rules: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Each verb of each resource, with the rule that it is from."""
    for rule in rules:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield rule, resource, verb


def without(
    rules: list[dict[str, Any]], rule: dict[str, Any], resource: str, verb: str
) -> list[dict[str, Any]]:
    """The rules without one verb of one resource."""
    others = [each for each in rules if each is not rule]
    beside = [each for each in rule["resources"] if each != resource]
    verbs = [each for each in rule["verbs"] if each != verb]
    rest = [(beside, rule["verbs"]), ([resource], verbs)]
    return others + [{**rule, "resources": r, "verbs": v} for r, v in rest if r and v]

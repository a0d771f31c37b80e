"""The role of docs/kubernetes.md is enough, and all of it is needed."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import sojourn
from sojourn.core.errors import AuthError, SojournError
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until

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


def _call(kit: KubernetesKit, method: str, path: str, body: Any = None) -> Any:
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
            _call(kit, "POST", _paths(kit, document["kind"]), json.loads(text))
        self.log_in()

    def log_in(self, seconds: int = 3600) -> None:
        """With a new token."""
        path = f"{_paths(self._kit, 'ServiceAccount')}/{_NAME}/token"
        asked = {"spec": {"expirationSeconds": seconds}}
        token = _call(self._kit, "POST", path, asked)["status"]["token"]
        config = yaml.safe_load(self._admin.read_text())
        config["users"] = [{"name": "limited", "user": {"token": token}}]
        for context in config["contexts"]:
            context["context"]["user"] = "limited"
        self._file.write_text(json.dumps(config))

    @property
    def file(self) -> Path:
        return self._file

    def rules(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = _call(
            self._kit, "GET", f"{_paths(self._kit, 'Role')}/{_NAME}"
        )["rules"]
        return found

    def set_rules(self, rules: list[dict[str, Any]]) -> None:
        path = f"{_paths(self._kit, 'Role')}/{_NAME}"
        role = _call(self._kit, "GET", path)
        _call(self._kit, "PUT", path, {**role, "rules": rules})


@pytest.fixture
def account(
    kit: KubernetesKit,
    kube_cluster: KubeCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Account:
    made = Account(kit, kube_cluster.kubeconfig, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(made.file))
    return made


def _allowed(verb: str, group: str, resource: str) -> bool:
    from sojourn.clouds.k8s.api import Api
    from sojourn.clouds.k8s.checkup import _allowed as allowed
    from sojourn.clouds.k8s.kubeconfig import load

    return allowed(Api(load), verb, group, resource)


def test_the_role_is_enough(lab: Lab, account: Account) -> None:
    (lab.workdir / "data").write_text("mine")
    handle = lab.create("mkdir output; cat data > output/x; sleep 300")
    until(lambda: handle.status().state is sojourn.State.RUNNING)
    done = handle.exec(["cat", "/sojourn/workdir/data"])
    assert done.stdout == b"mine"
    handle.stop()
    handle.start()
    until(lambda: handle.status().ranks[0].attempt == 2)
    assert [item.id for item in sojourn.list_tasks()] == [handle.id]
    handle.events()
    handle.delete()
    assert lab.output() == {"x": "mine"}


def test_every_verb_of_every_rule_is_needed(lab: Lab, account: Account) -> None:
    """Without it, something that a task does is refused, and the error names the verb."""
    rules = account.rules()
    for number, rule in enumerate(rules):
        for resource in rule["resources"]:
            if resource == "events":  # said to be optional
                continue
            for verb in rule["verbs"]:
                less = copy.deepcopy(rules)
                less[number]["resources"] = [r for r in rule["resources"] if r != resource]
                kept = [v for v in rule["verbs"] if v != verb]
                less.append({**rule, "resources": [resource], "verbs": kept or ["none"]})
                account.set_rules([item for item in less if item["resources"]])
                group = rule["apiGroups"][0]
                until(lambda v=verb, g=group, r=resource: not _allowed(v, g, r))  # type: ignore[misc]
                with pytest.raises(SojournError) as caught:
                    _whole_life(lab)
                named = resource.split("/")[0]
                assert isinstance(caught.value, AuthError), (verb, resource, caught.value)
                assert re.search(rf"\b{verb} {named}", str(caught.value)), (verb, resource)
                account.set_rules(rules)
                until(lambda v=verb, g=group, r=resource: _allowed(v, g, r))  # type: ignore[misc]
                for item in sojourn.list_tasks():
                    sojourn.get(item.id).delete(force=True, fetch=False)


def _whole_life(lab: Lab) -> None:
    """All that a task needs, as quickly as possible."""
    handle = lab.create("mkdir -p output; echo x > output/x")
    handle.wait()
    handle.stop()
    handle.delete()
    sojourn.list_tasks()

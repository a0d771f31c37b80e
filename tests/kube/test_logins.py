"""A token that is not good any more while somebody follows a task."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

import sojourn
from sojourn.core.errors import AuthError
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab, log_of
from tests.kube.accounts import Account, call
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until

_SCRIPT = "echo up; until [ -e /dev/shm/go ]; do sleep 0.1; done; mkdir output; echo x > output/x"
_PLUGIN = """\
import json, sys
token = open(sys.argv[1]).read()
print(json.dumps({
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {"token": token},
}))
"""


class Tokens:
    """Tokens that end with a Secret: those that end with the time last for ten minutes."""

    def __init__(self, kit: KubernetesKit) -> None:
        self._kit = kit
        self._secrets = f"/api/v1/namespaces/{kit.api.namespace}/secrets"
        self._count = 0

    def make(self) -> tuple[str, str]:
        """The name of a Secret, and a token."""
        self._count += 1
        name = f"token-{self._count}"
        made = call(self._kit, "POST", self._secrets, {"metadata": {"name": name}})
        bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": made["metadata"]["uid"]}
        path = f"/api/v1/namespaces/{self._kit.api.namespace}/serviceaccounts/sojourn/token"
        asked = {"spec": {"boundObjectRef": bound}}
        return name, call(self._kit, "POST", path, asked)["status"]["token"]

    def is_good(self, token: str) -> bool:
        """Whether the API server takes it."""
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        review = call(self._kit, "POST", path, {"spec": {"token": token}})
        return bool(review["status"].get("authenticated"))

    def end(self, name: str) -> None:
        call(self._kit, "DELETE", f"{self._secrets}/{name}")


@pytest.fixture
def tokens(kit: KubernetesKit, kube_cluster: KubeCluster, tmp_path: Path) -> Tokens:
    Account(kit, kube_cluster.kubeconfig, tmp_path)
    return Tokens(kit)


def _log_in(monkeypatch: pytest.MonkeyPatch, admin: Path, file: Path, user: dict[str, Any]) -> None:
    config = yaml.safe_load(admin.read_text())
    config["users"] = [{"name": "limited", "user": user}]
    for context in config["contexts"]:
        context["context"]["user"] = "limited"
    file.write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(file))


def test_a_plugin_is_asked_again(
    lab: Lab,
    kit: KubernetesKit,
    tokens: Tokens,
    kube_cluster: KubeCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret, token = tokens.make()
    file, plugin = tmp_path / "token", tmp_path / "plugin.py"
    file.write_text(token)
    plugin.write_text(_PLUGIN)
    told = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(plugin), str(file)],
        "interactiveMode": "Never",
    }
    _log_in(monkeypatch, kube_cluster.kubeconfig, tmp_path / "config", {"exec": told})
    handle = lab.create(_SCRIPT)
    found: list[sojourn.Result] = []
    follower = threading.Thread(target=lambda: found.append(handle.wait()), daemon=True)
    follower.start()
    until(lambda: "up" in log_of(handle))
    another, renewed = tokens.make()
    file.write_text(renewed)
    tokens.end(secret)
    until(lambda: not tokens.is_good(token))
    kit.appear("go")
    follower.join(120)
    assert [result.status for result in found] == [sojourn.State.SUCCEEDED]
    handle.delete()
    assert lab.output() == {"x": "x\n"}
    tokens.end(another)


def test_a_token_that_nobody_renews_is_told(
    lab: Lab,
    tokens: Tokens,
    kube_cluster: KubeCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret, token = tokens.make()
    _log_in(monkeypatch, kube_cluster.kubeconfig, tmp_path / "config", {"token": token})
    handle = lab.create(_SCRIPT)
    until(lambda: "up" in log_of(handle))
    tokens.end(secret)
    until(lambda: not tokens.is_good(token))
    refusals: list[str] = []

    def is_refused() -> bool:
        try:
            sojourn.get(handle.id).status()
        except AuthError as error:
            refusals.append(str(error))
        return bool(refusals)

    until(is_refused)
    assert "log in" in refusals[0].lower()
    monkeypatch.setenv("KUBECONFIG", str(kube_cluster.kubeconfig))
    sojourn.get(handle.id).delete(force=True, fetch=False)

"""Kubeconfig files, read as kubectl does; what is wrong with one is told without its secrets."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from sojourn.core.errors import AuthError
from sojourn.kube import kubeconfig_files
from sojourn.kube.kubeconfig import Login, load

_SECRET = "s3cr3t"


@pytest.fixture(autouse=True)
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration but the test's own."""
    for name in list(os.environ):
        if name.startswith(("KUBE", "SOJOURN_K8S")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(kubeconfig_files, "SERVICE_ACCOUNT", tmp_path / "account")


def _config(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://example.com:6443/"}}],
        "users": [{"name": "u", "user": {"token": _SECRET}}],
        **more,
    }


def _cluster(**more: Any) -> dict[str, Any]:
    cluster = {"server": "https://example.com", **more}
    return _config(clusters=[{"name": "c", "cluster": cluster}])


def _user(**more: Any) -> dict[str, Any]:
    return _config(users=[{"name": "u", "user": more}])


def _loaded(monkeypatch: pytest.MonkeyPatch, config: Any) -> Login:
    text = config if isinstance(config, str) else yaml.safe_dump(config)
    monkeypatch.setenv("KUBECONFIG_DATA", text)
    return load()


@pytest.mark.parametrize("name", ["KUBECONFIG_DATA", "KUBERNETES_CONFIGURATION"])
def test_contents(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, yaml.safe_dump(_config()))
    assert kubeconfig_files.configured()
    login = load()
    assert login.cluster.server == "https://example.com:6443"
    assert login.user.token == _SECRET
    assert (login.namespace, login.context, login.source) == ("default", "here", name)


def test_the_default_file(tmp_path: Path) -> None:
    assert not kubeconfig_files.configured()
    with pytest.raises(AuthError, match="No kubeconfig found"):
        load()
    file = tmp_path / "home" / ".kube" / "config"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump(_config()))
    assert kubeconfig_files.configured()
    assert load().source == str(file)


def test_nobodys_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert not kubeconfig_files.configured()


def test_several_files_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that names a thing counts, and paths are relative to the file that has them."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "ca.pem").write_bytes(b"the authority")
    first = {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "first"}}
        ],
        "users": [{"name": "u", "user": {"token": "first"}}],
    }
    second = _config(
        **{"current-context": "other"},
        users=[{"name": "u", "user": {"token": "second"}}],
        clusters=[
            {"name": "c", "cluster": {"server": "https://b", "certificate-authority": "ca.pem"}}
        ],
    )
    second["contexts"].append({"name": "other", "context": {"cluster": "c", "user": "u"}})
    (tmp_path / "a" / "config").write_text(yaml.safe_dump(first))
    (tmp_path / "b" / "config").write_text(yaml.safe_dump(second))
    (tmp_path / "empty").write_text("")
    files = [tmp_path / "empty", tmp_path / "absent", tmp_path / "a/config", tmp_path / "b/config"]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(str(file) for file in files) + os.pathsep)
    login = load()
    assert (login.context, login.namespace) == ("here", "first")
    assert login.user.token == "first"
    assert login.cluster.server == "https://b"
    assert login.cluster.ca == b"the authority"
    monkeypatch.setenv("SOJOURN_K8S_CONTEXT", "other")
    assert load().namespace == "default"
    monkeypatch.setenv("SOJOURN_K8S_NAMESPACE", "mine")
    assert load().namespace == "mine"


def test_a_pipe_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `KUBECONFIG=<(decrypt)` makes one."""
    reading, writing = os.pipe()
    os.write(writing, yaml.safe_dump(_config()).encode())
    os.close(writing)
    monkeypatch.setenv("KUBECONFIG", f"/dev/fd/{reading}")
    assert load().context == "here"
    os.close(reading)


def test_the_account_of_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    assert not kubeconfig_files.configured()
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text(_SECRET)
    with pytest.raises(AuthError, match=r"ca\.crt"):
        load()
    (folder / "ca.crt").write_bytes(b"ca")
    assert kubeconfig_files.configured()
    assert load().namespace == "default"
    (folder / "namespace").write_text("own\n")
    login = load()
    assert login.cluster.server == "https://[fd00::1]:6443"
    assert login.namespace == "own"
    assert login.user.token_file == str(folder / "token")


def test_files_and_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cert", "key"):
        (tmp_path / name).write_text(name)
    user = {"client-certificate": "cert", "client-key": str(tmp_path / "key"), "tokenFile": "tok"}
    config = tmp_path / "config"
    config.write_text(yaml.safe_dump(_user(**user)))
    monkeypatch.setenv("KUBECONFIG", str(config))
    found = load().user
    assert (found.certificate, found.key) == (b"cert", b"key")
    assert found.token_file == str(tmp_path / "tok")
    folded = base64.encodebytes(b"x" * 100).decode()  # with line ends, as some tools write it
    key = base64.b64encode(b"key").decode()
    login = _loaded(
        monkeypatch, _user(**{"client-certificate-data": folded, "client-key-data": key})
    )
    assert login.user.certificate == b"x" * 100


def test_all_that_a_cluster_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    more = {
        "server": "10.0.0.1:6443",
        "insecure-skip-tls-verify": True,
        "proxy-url": f"http://user:{_SECRET}@proxy:3128",
        "tls-server-name": "name",
        "extensions": [
            {"name": "x", "extension": 1},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}},
        ],
    }
    cluster = _loaded(monkeypatch, _cluster(**more)).cluster
    assert cluster.server == "https://10.0.0.1:6443"
    assert cluster.insecure
    assert cluster.server_name == "name"
    assert cluster.exec_config == {"audience": "a"}
    assert cluster.proxy.endswith("@proxy:3128")
    assert _SECRET not in repr(cluster)


def test_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    assert _loaded(monkeypatch, _cluster()).cluster.proxy == "http://proxy:1"
    monkeypatch.setenv("NO_PROXY", "example.com")
    assert _loaded(monkeypatch, _cluster()).cluster.proxy == ""


def test_programs_that_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(config))
    for command, full in (("aws", "aws"), ("bin/login", str(tmp_path / "bin/login")), ("/x", "/x")):
        config.write_text(yaml.safe_dump(_user(exec={"command": command})))
        plugin = load().user.plugin
        assert plugin is not None
        assert plugin["command"] == full


def test_being_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"as": "jane", "as-uid": "7", "as-groups": ["g"], "as-user-extra": {"scope": ["v"]}}
    assert _loaded(monkeypatch, _user(token="x", **more)).user.impersonated == {
        "Impersonate-User": "jane",
        "Impersonate-Uid": "7",
        "Impersonate-Group": "g",
        "Impersonate-Extra-scope": "v",
    }
    with pytest.raises(AuthError, match="several groups"):
        _loaded(monkeypatch, _user(**{"as": "x", "as-groups": ["a", "b"]}))


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (f"token: [{_SECRET}", r"not valid YAML \(line 1, column"),
        (f"users:\n- name: u\n  user: {{token: {_SECRET}: :", "not valid YAML"),
        (f"{_SECRET}\x01", "not valid YAML"),
        (f"- {_SECRET}", "is not a kubeconfig"),
        (_SECRET, "is not a kubeconfig"),
        ({}, "has no current context"),
        (_config(**{"current-context": "gone"}), "Context 'gone' not found"),
        (_config(contexts=[{"name": "here", "context": {}}]), "'here' .* has no cluster"),
        (_config(contexts=[_SECRET]), "Invalid contexts"),
        (_config(contexts={"here": _SECRET}), "Invalid contexts"),
        (_config(contexts=[{"name": "here", "context": _SECRET}]), "Invalid context here"),
        (_config(clusters=[]), "Cluster 'c' not found"),
        (_config(users=None), "User 'u' not found"),
        (_cluster(server=""), "has no server"),
        (_cluster(server="ftp://x"), "Invalid server"),
        (_cluster(server="https://x:port"), "Invalid server"),
        (_cluster(**{"certificate-authority": "/nowhere/ca"}), "certificate-authority /nowhere/ca"),
        (_cluster(**{"certificate-authority-data": f"{_SECRET}!"}), "not valid base64"),
        (_user(**{"client-key-data": f"{_SECRET}é"}), "client-key-data .* not valid base64"),
        (_user(**{"client-certificate-data": "eA=="}), "no client-key"),
        (_user(**{"client-key-data": "eA=="}), "no client-certificate"),
        (_user(exec={"args": [_SECRET]}), "has no command"),
        (_user(exec=_SECRET), "has no command"),
        (_user(exec={"command": "x", "env": [_SECRET]}), "Invalid env"),
        (_user(exec={"command": "x", "env": [{"value": _SECRET}]}), "Invalid env"),
        (_user(exec={"command": "x", "args": _SECRET}), "Invalid args"),
        (_user(**{"auth-provider": {"name": "gcp", "x": _SECRET}}), "auth-provider"),
    ],
)
def test_what_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, config: Any, told: str) -> None:
    with pytest.raises(AuthError, match=told) as caught:
        _loaded(monkeypatch, config)
    assert "KUBECONFIG_DATA" in caught.value.message
    assert caught.value.hint
    error: BaseException | None = caught.value
    while error is not None:  # a log shows what it was raised from, too
        assert _SECRET not in f"{error} {error!r}"
        error = error.__cause__


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(AuthError, match=r"no existing file: .*absent"):
        load()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path))
    with pytest.raises(AuthError, match=r"Could not read .*: Is a directory"):
        load()
    (tmp_path / "binary").write_bytes(b"\xff\xfe" + _SECRET.encode())
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "binary"))
    with pytest.raises(AuthError, match="binary is not a text file"):
        load()


def test_a_representation_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    data = base64.b64encode(_SECRET.encode()).decode()
    user = {
        "token": _SECRET,
        "username": "u",
        "password": _SECRET,
        "client-certificate-data": data,
        "client-key-data": data,
        "exec": {"command": "x", "args": [_SECRET], "env": [{"name": "A", "value": _SECRET}]},
    }
    login = _loaded(monkeypatch, _user(**user))
    assert login.user.password == ("u", _SECRET)
    assert _SECRET not in f"{login} {login!r}"
    assert data not in repr(login)

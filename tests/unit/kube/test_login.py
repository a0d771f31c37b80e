"""Credentials: tokens in files, and programs that log in."""

from __future__ import annotations

import base64
import json
import ssl
import stat
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.errors import AuthError
from sojourn.kube import login as login_module
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import Cluster, Login, User
from sojourn.kube.login import Credentials
from tests.unit.clouds.k8s.server import Authority, Server

_V1 = "client.authentication.k8s.io/v1"
_SECRET = "s3cr3t"


class Program:
    """A program that logs in: prints what it is told to, and counts how often it was asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "login"
        self.path.write_text(
            f"#!{sys.executable} -IS\n"
            "import os, sys\n"
            f"folder = {str(folder)!r}\n"
            "open(folder + '/asked', 'a').write('x')\n"
            "open(folder + '/info', 'w').write(os.environ['KUBERNETES_EXEC_INFO'])\n"
            "open(folder + '/seen', 'w').write(repr((sys.argv[1:], os.environ.get('MORE'))))\n"
            "sys.stdout.write(open(folder + '/says').read())\n"
        )
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def says(self, expires: timedelta | None = None, **status: str) -> None:
        if expires is not None:
            when = datetime.now(timezone.utc) + expires
            status["expirationTimestamp"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.prints(json.dumps({"apiVersion": _V1, "kind": "ExecCredential", "status": status}))

    def prints(self, text: str) -> None:
        (self._folder / "says").write_text(text)

    @property
    def times(self) -> int:
        file = self._folder / "asked"
        return len(file.read_text()) if file.exists() else 0

    @property
    def info(self) -> Any:
        return json.loads((self._folder / "info").read_text())

    @property
    def seen(self) -> str:
        return (self._folder / "seen").read_text()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def _login(user: User, **cluster: Any) -> Login:
    return Login(Cluster(**{"server": "https://x", **cluster}), user, "default", "here", "a file")


def _asking(program: Program, cluster: Any = None, /, **plugin: Any) -> Credentials:
    whole = {"apiVersion": _V1, "command": str(program.path), **plugin}
    return Credentials(_login(User(plugin=whole), **(cluster or {})))


def test_a_program_is_asked_once(program: Program) -> None:
    program.says(token="one")
    more = {"args": ["get", 7], "env": [{"name": "MORE", "value": "yes"}]}
    credentials = _asking(program, **more)
    assert credentials.headers() == {"Authorization": "Bearer one"}
    assert credentials.headers() == {"Authorization": "Bearer one"}
    assert program.times == 1
    assert program.seen == "(['get', '7'], 'yes')"
    assert program.info == {
        "apiVersion": _V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


@pytest.mark.parametrize("version", [_V1, "client.authentication.k8s.io/v1beta1"])
def test_versions_and_the_cluster(program: Program, version: str) -> None:
    program.says(token="x")
    cluster = {
        "ca": b"authority",
        "server_name": "name",
        "proxy": "http://proxy",
        "exec_config": {"audience": "a"},
    }
    _asking(program, cluster, apiVersion=version, provideClusterInfo=True).headers()
    assert program.info["apiVersion"] == version
    assert program.info["spec"]["cluster"] == {
        "server": "https://x",
        "certificate-authority-data": base64.b64encode(b"authority").decode(),
        "tls-server-name": "name",
        "proxy-url": "http://proxy",
        "config": {"audience": "a"},
    }


def test_other_versions_are_refused(program: Program) -> None:
    for more, told in (
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "v1alpha1 are not supported"),
        ({"interactiveMode": "Always"}, "at a terminal"),
    ):
        with pytest.raises(AuthError, match=told):
            _asking(program, **more).headers()
    assert program.times == 0


def test_a_token_is_renewed_before_it_ends(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.says(timedelta(hours=1), token="one")
    credentials = _asking(program)
    credentials.headers()
    program.says(timedelta(hours=2), token="two")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600 - 60)
    assert credentials.headers()["Authorization"] == "Bearer one"
    monkeypatch.setattr(time, "time", lambda: now + 3600 - 20)
    assert credentials.headers()["Authorization"] == "Bearer two"


def test_a_short_token_is_not_asked_for_at_each_call(program: Program) -> None:
    program.says(timedelta(seconds=20), token="one")
    credentials = _asking(program)
    credentials.headers()
    credentials.headers()
    assert program.times == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2030-01-01T00:00:00Z", True),
        ("2030-01-01T00:00:00.123456789Z", True),
        ("2030-01-01T02:00:00+02:00", True),
        ("2030-01-01T00:00:00", True),
        ("soon", False),
        ("", False),
    ],
)
def test_times(text: str, seconds: bool) -> None:
    found = login_module._until({"expirationTimestamp": text})
    expected = datetime(2030, 1, 1, tzinfo=timezone.utc).timestamp() - 30
    assert found == (pytest.approx(expected, abs=2) if seconds else float("inf"))


def test_of_many_that_were_turned_away_one_asks(program: Program) -> None:
    program.says(token="one")
    credentials = _asking(program)
    refused = credentials.headers()
    program.says(token="two")
    found: list[str] = []

    def again() -> None:
        found.append(credentials.headers(refused=refused)["Authorization"])

    threads = [threading.Thread(target=again) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["Bearer two"] * 4
    assert program.times == 2


def test_certificates_of_a_program_are_renewed(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    server = Server(tmp_path, authority)

    def issue(name: str) -> None:
        certificate, key = authority.issue(name)
        pair = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
        program.says(timedelta(hours=1), **pair)

    issue("one")
    plugin = {"apiVersion": _V1, "command": str(program.path)}
    login = _login(User(plugin=plugin), server=server.url, ca=authority.pem)
    api = Api(lambda: login)
    api.get("Pod", "x")
    api.get("Pod", "x")
    assert program.times == 1
    first = api._client
    issue("two")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    api.get("Pod", "x")
    assert [item.subject for item in server.asked] == ["one", "one", "two"]
    first.close()
    api._client.close()
    server.close()


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "{}",
        "[]",
        "nonsense " + _SECRET,
        '{"status": null}',
        '{"status": "s3cr3t"}',
        '{"status": {"expirationTimestamp": "2030-01-01T00:00:00Z"}}',
        '"s3cr3t"',
    ],
)
def test_programs_that_give_nothing(program: Program, printed: str) -> None:
    program.prints(printed)
    with pytest.raises(AuthError, match="login returned no credentials") as caught:
        _asking(program).headers()
    assert caught.value.hint
    assert caught.value.__cause__ is None
    assert _SECRET not in str(caught.value)


def _running(*command: str, **plugin: Any) -> Credentials:
    whole = {"command": command[0], "args": [*command[1:], _SECRET], **plugin}
    return Credentials(_login(User(plugin=whole)))


def test_programs_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AuthError) as caught:
        _running("sh", "-c", "echo token >&2; echo has expired >&2; exit 3").headers()
    assert "sh failed with exit code 3: token has expired" in caught.value.message
    with pytest.raises(AuthError, match=r"exit code 1\n"):
        _running("false").headers()
    with pytest.raises(AuthError, match="no-such-login, required to log in, not found") as caught:
        _running("no-such-login", installHint=" Install it from there. ").headers()
    assert caught.value.hint == "Install it from there."
    (tmp_path / "plain").touch()
    with pytest.raises(AuthError, match=r"could not run .*plain: Permission denied"):
        _running(str(tmp_path / "plain")).headers()
    monkeypatch.setattr(login_module, "_PLUGIN_WITHIN", 0.05)
    with pytest.raises(AuthError, match="sh did not end within") as caught:
        _running("sh", "-c", "exec sleep 60").headers()
    assert _SECRET not in f"{caught.value} {caught.value.__cause__}"


def test_tokens_in_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    credentials = Credentials(_login(User(token="given", token_file=str(file))))
    assert credentials.can_renew
    assert credentials.headers()["Authorization"] == "Bearer given"
    file.write_text("one\n")
    refused = {"Authorization": "Bearer given"}
    assert credentials.headers(refused=refused)["Authorization"] == "Bearer one"
    file.write_text("two\n")
    assert credentials.headers()["Authorization"] == "Bearer one"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert credentials.headers()["Authorization"] == "Bearer two"
    file.write_text("")  # just being written
    monkeypatch.setattr(time, "time", lambda: now + 200)
    assert credentials.headers()["Authorization"] == "Bearer two"


def test_a_token_that_is_nowhere(tmp_path: Path) -> None:
    credentials = Credentials(_login(User(token_file=str(tmp_path / "token"))))
    with pytest.raises(AuthError, match="token: No such file"):
        credentials.headers()


def test_nobody_in_particular() -> None:
    credentials = Credentials(_login(User()))
    assert credentials.headers() == {}
    assert not credentials.can_renew


def test_no_tls_without_https() -> None:
    assert Credentials(_login(User(), server="http://x")).tls() is None


def test_certificates_that_are_none(tmp_path: Path) -> None:
    certificate, _ = Authority().issue("x")
    _, another = Authority().issue("x")
    for user, cluster in (
        (User(), {"ca": b"nonsense"}),
        (User(), {"ca": b"-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n"}),
        (User(certificate=b"x", key=b"y"), {}),
        (User(certificate=certificate, key=another), {}),
    ):
        with pytest.raises(AuthError, match="The certificates in a file are not valid"):
            Credentials(_login(user, **cluster)).tls()


def test_the_name_of_the_server_is_in_the_context() -> None:
    """Whoever wraps a socket with it, websockets too, asks for that name."""
    context = Credentials(_login(User(), server_name="name.example")).tls()
    assert context is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    assert made.server_hostname == "name.example"

"""Calls on an API server, over real connections."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.errors import AuthError, Conflict, InvalidInput, NotFound, QuotaError, Transient
from sojourn.kube import api as api_module
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import Cluster, Login, User
from tests.support.waiting import patience
from tests.unit.clouds.k8s.server import Answer, Asked, Authority, Proxy, Server


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def server(tmp_path: Path, authority: Authority) -> Iterator[Server]:
    made = Server(tmp_path, authority)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "_PAUSES", (0.01,))
    monkeypatch.setattr(api_module, "_AFTER_WATCH", 0.01)


def _api(
    server: Server,
    authority: Authority,
    user: User | None = None,
    /,
    *,
    patience: float = 20.0,
    **cluster: Any,
) -> Api:
    made = Cluster(**{"server": server.url, "ca": authority.pem, **cluster})
    login = Login(made, user or User(token="the-token"), "team", "here", "a file")
    return Api(lambda: login, patience=patience)


@pytest.fixture
def api(server: Server, authority: Authority) -> Iterator[Api]:
    made = _api(server, authority)
    yield made
    made._client.close()


def _in_turn(server: Server, *answers: Answer | None) -> None:
    """The last one again and again."""
    left = list(answers)
    server.answer = lambda _: left.pop(0) if len(left) > 1 else left[0]


def _status(code: int, message: str, reason: str = "") -> Answer:
    return Answer(code, {"kind": "Status", "message": message, "reason": reason})


def test_each_call(api: Api, server: Server) -> None:
    body = {"metadata": {"name": "x"}}
    api.get("Pod", "x")
    api.create("Job", body, dry_run=True)
    api.replace("Secret", body)
    api.merge("Job", "x", {"spec": {"suspend": True}})
    api.delete("Pod", "x", grace=0, uid="u")
    api.list("StorageClass")
    seen = [(item.method, item.path) for item in server.asked]
    assert seen == [
        ("GET", "/api/v1/namespaces/team/pods/x"),
        ("POST", "/apis/batch/v1/namespaces/team/jobs?dryRun=All"),
        ("PUT", "/api/v1/namespaces/team/secrets/x"),
        ("PATCH", "/apis/batch/v1/namespaces/team/jobs/x"),
        ("DELETE", "/api/v1/namespaces/team/pods/x"),
        ("GET", "/apis/storage.k8s.io/v1/storageclasses?limit=500"),
    ]
    assert {item.headers["authorization"] for item in server.asked} == {"Bearer the-token"}
    assert server.asked[3].headers["content-type"] == "application/merge-patch+json"
    assert server.asked[4].body == {
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
    }


def test_applying(api: Api, server: Server) -> None:
    body = {"metadata": {"name": "x"}}
    api.inside("other").apply("Deployment", body)
    api.apply("ClusterRole", body, dry_run=True)
    api.inside("").list("MPIJob")
    assert [(item.method, item.path) for item in server.asked] == [
        ("PATCH", "/apis/apps/v1/namespaces/other/deployments/x?fieldManager=sojourn"),
        (
            "PATCH",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/x?fieldManager=sojourn&dryRun=All",
        ),
        ("GET", "/apis/kubeflow.org/v2beta1/mpijobs?limit=500"),
    ]
    assert server.asked[0].headers["content-type"] == "application/apply-patch+yaml"


def test_which_kinds_there_are(api: Api, server: Server) -> None:
    _in_turn(server, Answer(200, {"resources": [{"name": "mpijobs/status"}, {"name": "mpijobs"}]}))
    assert api.serves("MPIJob")
    _in_turn(server, Answer(200, {"resources": [{"name": "others"}]}))
    assert not api.serves("MPIJob")
    _in_turn(server, _status(404, "the server could not find the requested resource"))
    assert not api.serves("MPIJob")
    assert server.asked[-1].path == "/apis/kubeflow.org/v2beta1"


def test_a_server_below_a_path_and_names_that_are_none(
    server: Server, authority: Authority
) -> None:
    api = _api(server, authority, server=f"{server.url}/k8s/clusters/c-1")
    api.find("Pod", "../../../nodes?x")
    expected = "/k8s/clusters/c-1/api/v1/namespaces/team/pods/..%2F..%2F..%2Fnodes%3Fx"
    assert server.asked[0].path == expected
    api._client.close()


def test_trouble_that_passes_is_not_told(api: Api, server: Server) -> None:
    _in_turn(
        server,
        None,
        Answer(429, {}, {"Retry-After": "0"}),
        Answer(503, b"<html>"),
        Answer(500, {}, {"Retry-After": "-1"}),
        Answer(502, {}, {"Retry-After": "soon"}),
        Answer(504, {}),
        Answer(200, {"kind": "Pod"}),
    )
    assert api.get("Pod", "x") == {"kind": "Pod"}
    assert len(server.asked) == 7


def test_the_server_says_when_to_come_back(api: Api, server: Server) -> None:
    _in_turn(server, Answer(429, {}, {"Retry-After": "0.3"}), Answer())
    began = time.monotonic()
    api.get("Pod", "x")
    assert time.monotonic() - began >= 0.3


def test_patience_ends(server: Server, authority: Authority) -> None:
    api = _api(server, authority, patience=0.05)
    _in_turn(server, Answer(503, {"message": "etcd is away"}, {"Retry-After": "9"}))
    began = time.monotonic()
    with pytest.raises(Transient, match="etcd is away"):
        api.get("Pod", "x")
    assert time.monotonic() - began < patience(5)
    _in_turn(server, None)
    with pytest.raises(Transient, match=f"Could not reach .* at {server.url}") as caught:
        api.get("Pod", "x")
    assert caught.value.hint
    api._client.close()


def test_nobody_is_there(server: Server, authority: Authority) -> None:
    api = _api(server, authority, patience=0.05, server="https://127.0.0.1:1")
    with pytest.raises(Transient, match="Could not reach"):
        api.version()
    api._client.close()


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (403, "exceeded quota: q", QuotaError),
        (403, 'cannot get resource "pods" in API group ""', AuthError),
        (404, "not found", NotFound),
        (409, "already exists", Conflict),
        (422, "invalid", InvalidInput),
        (401, "no", AuthError),
        (302, "elsewhere", Transient),
    ],
)
def test_refusals(api: Api, server: Server, code: int, message: str, kind: type[Exception]) -> None:
    server.answer = lambda _: _status(code, message)
    with pytest.raises(kind):
        api.get("Pod", "x")
    assert len(server.asked) == 1


def test_absent_objects(api: Api, server: Server) -> None:
    server.answer = lambda _: _status(404, "not found")
    assert api.find("Pod", "x") is None
    api.delete("Pod", "x")
    server.answer = lambda _: _status(409, "the UID in the precondition does not match")
    api.delete("Pod", "x", uid="former")
    with pytest.raises(Conflict):
        api.delete("Pod", "x")


def test_a_quota_that_many_count_in_is_no_object_of_this_name(api: Api, server: Server) -> None:
    busy = 'Operation cannot be fulfilled on resourcequotas "q": the object has been modified'
    _in_turn(server, _status(409, busy, "Conflict"), Answer(201, {"kind": "Job"}))
    assert api.create("Job", {"metadata": {"name": "x"}}) == {"kind": "Job"}
    _in_turn(server, _status(409, "jobs x already exists", "AlreadyExists"))
    with pytest.raises(Conflict):
        api.create("Job", {"metadata": {"name": "x"}})


@pytest.mark.parametrize("body", [b"<html>please log in</html>", b"", b"[1]", b"7", b"{}"])
def test_somebody_else_answers(api: Api, server: Server, body: bytes) -> None:
    server.answer = lambda _: Answer(200, body)
    with pytest.raises(AuthError, match="did not answer as a Kubernetes API server does"):
        api.version()


def test_versions(api: Api, server: Server) -> None:
    server.answer = lambda _: Answer(200, {"major": "1", "minor": "31+"})
    assert api.version() == (1, 31)


def _pages(asked: Asked) -> Answer:
    token = asked.path.partition("continue=")[2]
    metadata = {"resourceVersion": "77", "continue": {"": "a", "a": "b"}.get(token, "")}
    return Answer(200, {"items": [{"page": token}], "metadata": metadata})


def test_lists_come_in_pages(api: Api, server: Server) -> None:
    server.answer = _pages
    found, version = api.list_at("Pod", "a=b", "c=d")
    assert [item["page"] for item in found] == ["", "a", "b"]
    assert version == "77"
    assert all("labelSelector=a%3Db" in item.path for item in server.asked)
    assert all("fieldSelector=c%3Dd" in item.path for item in server.asked)


def test_a_list_that_expires_is_asked_for_at_once(api: Api, server: Server) -> None:
    def answer(asked: Asked) -> Answer:
        if "continue=" in asked.path:
            return _status(410, "the provided continue parameter is too old", "Expired")
        more = {"continue": "a"} if "limit=" in asked.path else {}
        return Answer(200, {"items": [{"x": 1}], "metadata": more})

    server.answer = answer
    assert api.list("Pod") == [{"x": 1}]
    assert len(server.asked) == 3


def test_large_answers(api: Api, server: Server) -> None:
    items = [{"data": "x" * 100_000} for _ in range(100)]
    server.answer = lambda _: Answer(200, {"items": items, "metadata": None})
    assert api.list("ConfigMap") == items


def _event(kind: str, name: str) -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": {"name": name}}}).encode() + b"\n"


def test_watching(api: Api, server: Server) -> None:
    events = _event("ADDED", "a") + _event("BOOKMARK", "") + _event("MODIFIED", "b")
    parts = [events[:20], events[20:60], events[60:], _event("DELETED", "c")]
    server.answer = lambda _: Answer(parts=parts)
    found = [(item["type"], item["metadata"]["name"]) for item in api.watch("Pod", "x=y", 3, "5")]
    assert found == [("ADDED", "a"), ("MODIFIED", "b"), ("DELETED", "c")]
    assert "resourceVersion=5" in server.asked[0].path
    assert "timeoutSeconds=3" in server.asked[0].path


@pytest.mark.parametrize(
    "answer",
    [
        Answer(403, {}),
        None,
        Answer(parts=[b"nonsense\n"]),
        Answer(parts=[b"[]\n", b"{}\n"]),
        Answer(parts=[_event("ERROR", "x"), _event("ADDED", "never")]),
    ],
)
def test_watching_ends_whatever_happens(api: Api, server: Server, answer: Answer | None) -> None:
    server.answer = lambda _: answer
    assert list(api.watch("Pod", "", 1)) == []


def test_a_token_that_expires_is_renewed_once(
    tmp_path: Path, server: Server, authority: Authority
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    api = _api(server, authority, User(token_file=str(token)))

    def answer(asked: Asked) -> Answer:
        token.write_text("new")
        return Answer(200 if asked.headers["authorization"] == "Bearer new" else 401)

    server.answer = answer
    api.get("Pod", "x")
    assert [item.headers["authorization"] for item in server.asked] == ["Bearer old", "Bearer new"]
    server.answer = lambda _: Answer(401)
    with pytest.raises(AuthError, match="rejected the credentials"):
        api.get("Pod", "x")
    assert len(server.asked) == 4
    api._client.close()


def test_a_login_that_cannot_change_is_not_repeated(api: Api, server: Server) -> None:
    server.answer = lambda _: Answer(401)
    with pytest.raises(AuthError):
        api.get("Pod", "x")
    assert len(server.asked) == 1


def test_basic_passwords_and_impersonation(server: Server, authority: Authority) -> None:
    user = User(password=("jane", "pässword"), impersonated={"Impersonate-User": "joe"})
    api = _api(server, authority, user)
    api.get("Pod", "x")
    assert server.asked[0].headers["authorization"] == "Basic amFuZTpww6Rzc3dvcmQ="
    assert server.asked[0].headers["impersonate-user"] == "joe"
    api._client.close()


def test_client_certificates(server: Server, authority: Authority) -> None:
    certificate, key = authority.issue("jane")
    api = _api(server, authority, User(certificate=certificate, key=key))
    api.get("Pod", "x")
    assert server.asked[0].subject == "jane"
    assert "authorization" not in server.asked[0].headers
    api._client.close()


def test_servers_that_are_not_trusted(server: Server, authority: Authority) -> None:
    for more in ({"ca": Authority().pem}, {"ca": b""}, {"server_name": "another.example"}):
        api = _api(server, authority, **more)
        began = time.monotonic()
        with pytest.raises(AuthError, match="Could not verify the certificate") as caught:
            api.get("Pod", "x")
        assert "certificate-authority" in caught.value.hint
        assert time.monotonic() - began < patience(5)  # no repetition helps
        api._client.close()
    assert server.asked == []
    api = _api(server, authority, ca=b"", insecure=True)
    api.get("Pod", "x")
    api._client.close()


def test_an_authority_with_remarks_of_people(server: Server, authority: Authority) -> None:
    api = _api(server, authority, ca="# Zertifizierungsstelle für uns\n".encode() + authority.pem)
    api.get("Pod", "x")
    api._client.close()


@pytest.mark.parametrize("proxied", [False, True])
def test_a_server_by_another_name(tmp_path: Path, authority: Authority, proxied: bool) -> None:
    server, proxy = Server(tmp_path, authority, "kube.example"), Proxy()
    api = _api(server, authority, patience=0.05)
    with pytest.raises(AuthError, match="Could not verify"):
        api.get("Pod", "x")
    api._client.close()
    more: dict[str, Any] = {"proxy": proxy.url} if proxied else {}
    api = _api(server, authority, server_name="kube.example", **more)
    api.get("Pod", "x")
    assert proxy.asked == ([f"127.0.0.1:{server.port}"] if proxied else [])
    assert len(server.asked) == 1
    api._client.close()
    proxy.close()
    server.close()


def test_proxies_that_cannot_be(server: Server, authority: Authority) -> None:
    for proxy in ("socks9://user:s3cr3t@x", "s3cr3t", "https://user:s3cr3t@x"):
        with pytest.raises(AuthError, match="proxy") as caught:
            _api(server, authority, proxy=proxy).get("Pod", "x")
        assert "s3cr3t" not in str(caught.value)


def test_the_environment_of_the_process_adds_no_proxy(
    monkeypatch: pytest.MonkeyPatch, api: Api, server: Server
) -> None:
    """It was looked at before, by the rules of kubectl."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    api.get("Pod", "x")


def test_tokens_that_no_token_is(server: Server, authority: Authority) -> None:
    for token in ("s3cr3t\nX-Other: y", "s3cr3té", "s3cr3t x"):
        with pytest.raises(AuthError) as caught:
            _api(server, authority, User(token=token)).get("Pod", "x")
        assert "s3cr3t" not in str(caught.value)


def test_many_threads(api: Api, server: Server) -> None:
    server.answer = lambda asked: Answer(200, {"path": asked.path})
    wrong: list[str] = []

    def ask(number: int) -> None:
        for _ in range(5):
            if not api.get("Pod", f"x{number}")["path"].endswith(f"x{number}"):
                wrong.append(str(number))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(server.asked) == 40

"""What the API server answers, as an error that says what to do."""

from __future__ import annotations

import pytest

from sojourn.core.errors import (
    AuthError,
    Conflict,
    InvalidInput,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)
from sojourn.kube.errors import Expired, Rejected, refusal


def _ours(code: int, message: str = "") -> SojournError:
    return refusal("Pod x", code, {"message": message} if message else {}, "team")


def test_forbidden_names_verb_resource_and_namespace() -> None:
    error = _ours(
        403,
        'jobs.batch is forbidden: User "jane" cannot create resource "jobs" in API group "batch" '
        'in the namespace "team"',
    )
    assert isinstance(error, AuthError)
    assert "not allowed to create jobs.batch in namespace team" in error.message
    assert "create jobs.batch" in error.hint
    error = _ours(
        403,
        'pods "x" is forbidden: User "j" cannot create resource "pods/exec" in API group "" in the '
        'namespace "team"',
    )
    assert "create pods/exec in namespace team" in error.message
    error = _ours(
        403,
        'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the '
        "cluster scope",
    )
    assert "list nodes in the whole cluster" in error.message


def test_rights_that_nobody_can_give() -> None:
    error = _ours(
        403,
        'clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "j" (groups=["g"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}\n'
        '{APIGroups:["batch"], Resources:["jobs"], ResourceNames:["a"], Verbs:["create"]}',
    )
    assert isinstance(error, AuthError)
    assert error.message.endswith("do not have: list pods, watch pods, create jobs.batch")


def test_fields_that_somebody_else_set() -> None:
    cause = {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "kubectl"',
        "field": ".spec.replicas",
    }
    told = {"message": "Apply failed with 1 conflict", "details": {"causes": [cause]}}
    error = refusal("Deployment x", 409, told, "team")
    assert isinstance(error, Conflict)
    assert '.spec.replicas (conflict with "kubectl")' in error.message
    assert "Undo that change" in error.hint


@pytest.mark.parametrize(
    ("code", "message", "kind", "hint"),
    [
        (401, "Unauthorized", AuthError, "Log in again"),
        (403, 'pods "x" is forbidden: exceeded quota: q, requested: pods=1', QuotaError, "larger"),
        (403, "maximum cpu usage per Container is 1, but limit is 8", QuotaError, "smaller"),
        (403, "minimum memory usage per Container is 1Gi", QuotaError, ""),
        (403, "cpu max limit to request ratio per Container is 2", QuotaError, ""),
        (403, "failed quota: q: must specify limits.cpu for: agent", QuotaError, "options.pod"),
        (403, "unable to create because it is being terminated", Transient, "Wait"),
        (403, "something else", AuthError, "docs/kubernetes.md"),
        (403, 'admission webhook "x.y" denied the request: no', Rejected, ""),
        (400, 'admission webhook "x.y" denied the request: no', Rejected, ""),
        (422, "ValidatingAdmissionPolicy 'x' denied request: no", Rejected, ""),
        (404, 'pods "x" not found', NotFound, "sojourn list"),
        (404, 'namespaces "team" not found', NotFound, "kubectl create namespace team"),
        (409, 'pods "x" already exists', Conflict, ""),
        (410, "too old", Expired, ""),
        (422, 'Pod "x" is invalid: spec', InvalidInput, ""),
        (400, "bad", InvalidInput, ""),
        (500, "etcdserver: timeout", Transient, "Try again"),
        (503, "", Transient, "Try again"),
        (302, "", Transient, ""),
    ],
)
def test_kinds(code: int, message: str, kind: type[SojournError], hint: str) -> None:
    error = _ours(code, message)
    assert type(error) is kind
    assert hint in error.hint
    assert error.message


def test_pod_security_tells_its_level() -> None:
    error = _ours(403, 'pods "x" is forbidden: violates PodSecurity "restricted:latest": root')
    assert isinstance(error, Rejected)
    assert error.level == "restricted"


def test_endless_messages_are_cut() -> None:
    assert len(str(_ours(422, "x" * 9000))) < 600

"""`iterative_mpi_operator`, with an operator that only seems to be there."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sojourn import clouds
from sojourn.core.context import Context
from sojourn.core.errors import NotFound, Transient
from sojourn.core.operators import IMAGE, NAMESPACE, Operator
from sojourn.terraform.operator import OPERATOR, OperatorResource
from sojourn.terraform.plugin.diagnostics import Failure
from sojourn.terraform.plugin.log import Log
from sojourn.terraform.plugin.plan import plan
from sojourn.terraform.plugin.resource import Call
from sojourn.terraform.plugin.values import UNKNOWN

_OURS = Operator(NAMESPACE, IMAGE, "0.8.2", ready=True, ours=True)
_NOTHING: dict[str, Any] = dict.fromkeys(("id", "namespace", "image", "version"))


class _Fake:
    def __init__(self) -> None:
        self.found: Operator | None = None
        self.becomes = _OURS
        self.error: Exception | None = None

    def look(self, ctx: Context) -> Operator | None:
        return self.found

    def install(self, ctx: Context, namespace: str = "", image: str = "") -> Operator:
        self.found = self.becomes
        if self.error:
            raise self.error
        return self.found

    def uninstall(self, ctx: Context, *, force: bool = False) -> bool:
        there, self.found = self.found is not None, None
        return there


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> _Fake:
    made = _Fake()
    monkeypatch.setattr(clouds, "mpi_operator", lambda cloud: made)
    return made


def _call() -> Call:
    return Call(Log("test"), threading.Event(), 60)


def _planned(prior: dict[str, Any] | None = None, **config: Any) -> dict[str, Any]:
    given = {**_NOTHING, **config}
    state = plan(OPERATOR.block, prior, {**(prior or {}), **given}, given).state
    assert list(OperatorResource().plan(_call(), prior, state)) == []
    return state


def test_a_whole_life(fake: _Fake) -> None:
    resource = OperatorResource()
    state = resource.create(_call(), _planned())
    assert state == {"id": NAMESPACE, "namespace": NAMESPACE, "image": IMAGE, "version": "0.8.2"}
    assert resource.read(_call(), state) == state
    assert resource.find(_call(), NAMESPACE) == state
    resource.delete(_call(), state)
    resource.delete(_call(), state)
    assert resource.read(_call(), state) is None
    with pytest.raises(Failure, match="not found in namespace other"):
        resource.find(_call(), "other")


def test_another_image_is_another_version() -> None:
    prior = {"id": NAMESPACE, "namespace": NAMESPACE, "image": IMAGE, "version": "0.8.2"}
    assert _planned(prior) == prior
    planned = _planned(prior, image="example.com/mpi-operator:1")
    assert planned["version"] == UNKNOWN
    moved = plan(OPERATOR.block, prior, {**prior, "namespace": "x"}, {**_NOTHING, "namespace": "x"})
    assert moved.replace == (("namespace",),)


def test_what_is_installed_but_not_ready_is_known(fake: _Fake) -> None:
    """So that it can be destroyed."""
    fake.error = Transient("installed but not ready")
    with pytest.raises(Failure, match="not ready") as caught:
        OperatorResource().create(_call(), _planned())
    assert caught.value.state == {
        "id": NAMESPACE,
        "namespace": NAMESPACE,
        "image": IMAGE,
        "version": "",
    }


def test_one_of_others(fake: _Fake) -> None:
    fake.becomes = Operator("theirs", "x:1", "1")
    with pytest.raises(Failure, match="already installed by another tool") as caught:
        OperatorResource().create(_call(), _planned())
    assert caught.value.state is None
    with pytest.raises(Failure, match="already installed by another tool"):
        OperatorResource().find(_call(), "theirs")


def test_what_cannot_be(fake: _Fake) -> None:
    told = list(OperatorResource().validate({**_NOTHING, "namespace": "", "image": ""}))
    assert [each.path for each in told] == [("namespace",), ("image",)]
    fake.error = NotFound("gone")
    fake.becomes = Operator("elsewhere", ours=True)
    with pytest.raises(Failure) as caught:
        OperatorResource().create(_call(), _planned())
    assert caught.value.state is None

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from sojourn.terraform.plugin import wire
from sojourn.terraform.plugin.diagnostics import Diagnostic, Failure
from sojourn.terraform.plugin.log import Log
from sojourn.terraform.plugin.resource import Call, DataSource, Resource
from sojourn.terraform.plugin.schema import STRING, Attribute, Block, Schema
from sojourn.terraform.plugin.service import Service
from sojourn.terraform.plugin.values import Object, decode, encode

_SCHEMA = Schema(
    Block(
        (
            Attribute("id", STRING, "", computed=True),
            Attribute("kind", STRING, "", optional=True, replace=True),
            Attribute("size", STRING, "", optional=True),
            Attribute("secret", STRING, "", optional=True, write_only=True),
        )
    )
)
_NOT_UTF_8 = b"a\xff".decode("utf-8", "surrogateescape")


class Thing:
    """A resource of which a creation makes, warns of and raises what a test says."""

    schema = _SCHEMA

    def __init__(self) -> None:
        self.made: Any = "made"
        self.warning = ""
        self.error: Exception | None = None
        self.planned: list[tuple[Object | None, Object]] = []
        self.secret: Any = None

    def create(self, call: Call, planned: Object) -> Object:
        self.secret = call.config.get("secret")
        if self.warning:
            call.warn(Diagnostic(self.warning, warning=True))
        if self.error:
            raise self.error
        return {**planned, "id": self.made}

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        return ()

    def plan(self, call: Call, prior: Object | None, planned: Object) -> Iterable[Diagnostic]:
        self.planned.append((prior, planned))
        return ()

    def plan_removal(self, call: Call, prior: Object) -> Iterable[Diagnostic]:
        return [Diagnostic(f"{prior['id']} is busy", warning=True)]

    def read(self, call: Call, state: Object) -> Object | None:
        return state

    def update(self, call: Call, prior: Object, planned: Object) -> Object:
        return planned

    def delete(self, call: Call, state: Object) -> None:
        return None

    def find(self, call: Call, id: str) -> Object:
        return {"id": id}

    def upgrade(self, version: int, state: Object) -> Object:
        return state


class Provider:
    schema = Schema(Block())
    data_sources: Mapping[str, DataSource] = {}

    def __init__(self, thing: Thing) -> None:
        self.resources: Mapping[str, Resource] = {"thing": thing}

    def configure(self, call: Call) -> Iterable[Diagnostic]:
        return ()


class Served:
    """A creation of the thing, through the protocol."""

    def __init__(self) -> None:
        self.thing = Thing()
        self.service = Service(Provider(self.thing), Log("test"))

    def create(self) -> wire.ApplyResponse:
        method, _ = self.service.methods()["ApplyResourceChange"]
        request = wire.ApplyRequest(
            type_name="thing",
            prior_state=_value(None),
            planned_state=_value(_object()),
            config=_value(_object(secret="hidden")),
        )
        response: wire.ApplyResponse = method(request)
        return response

    def plan(self, prior: Object | None, proposed: Object) -> tuple[Object | None, Object]:
        """What the resource is asked to plan."""
        method, _ = self.service.methods()["PlanResourceChange"]
        config = _value({**proposed, "id": None})
        method(
            wire.PlanRequest(
                type_name="thing",
                prior_state=_value(prior),
                proposed_state=_value(proposed),
                config=config,
            )
        )
        [asked] = self.thing.planned
        return asked


def _object(**values: str) -> Object:
    return {"id": None, "kind": None, "size": None, "secret": None, **values}


def _value(state: Object | None) -> wire.Value:
    return wire.Value(msgpack=encode(state))


@pytest.fixture
def served() -> Served:
    return Served()


def _made(response: wire.ApplyResponse) -> str | None:
    state = decode(response.state, _SCHEMA.whole)
    return state["id"] if state else None


class TestTextsThatCannotBeSent:
    """Names of files may be any bytes, and stand in what is told."""

    def test_in_a_warning_do_not_lose_the_state(self, served: Served) -> None:
        served.thing.warning = f"{_NOT_UTF_8} is not uploaded"
        response = served.create()
        assert _made(response) == "made"
        assert [told.summary for told in response.diagnostics] == [r"a\udcff is not uploaded"]

    def test_in_an_error_do_not_lose_what_is_left(self, served: Served) -> None:
        left = _object(id="left")
        served.thing.error = Failure([Diagnostic(_NOT_UTF_8, _NOT_UTF_8)], left)
        response = served.create()
        assert _made(response) == "left"
        [told] = response.diagnostics
        assert (told.summary, told.detail) == (r"a\udcff", r"a\udcff")

    def test_that_would_act_on_a_terminal_are_spelled_out_too(self, served: Served) -> None:
        evil = "a\x1b]0;x\x07\r\u202e\ud800\nb"
        served.thing.error = Failure([Diagnostic(evil, evil)])
        [told] = served.create().diagnostics
        assert told.summary == told.detail == "a\\x1b]0;x\\x07\\r\\u202e\\ud800\nb"

    def test_in_a_state_are_spelled_out(self, served: Served) -> None:
        served.thing.made = _NOT_UTF_8
        assert _made(served.create()) == r"a\udcff"


class TestPlan:
    def test_of_what_stays_as_it_is_asks_too(self, served: Served) -> None:
        now = _object(id="made", kind="a")
        assert served.plan(now, now) == (now, now)

    def test_of_a_change(self, served: Served) -> None:
        prior, planned = (_object(id="made", size=size) for size in "ab")
        assert served.plan(prior, planned) == (prior, planned)

    def test_of_a_replacement_asks_as_for_a_new_one(self, served: Served) -> None:
        prior, planned = (_object(id="made", kind=kind) for kind in "ab")
        assert served.plan(prior, planned) == (None, planned)


class TestRemoval:
    def test_a_removal_may_warn_and_leaves_nothing(self, served: Served) -> None:
        method, _ = served.service.methods()["PlanResourceChange"]
        request = wire.PlanRequest(
            type_name="thing",
            prior_state=_value(_object(id="it")),
            proposed_state=_value(None),
            config=_value(None),
        )
        response = method(request)
        assert [told.summary for told in response.diagnostics] == ["it is busy"]
        assert response.state == request.proposed_state

    def test_terraform_is_told_that_it_can_ask(self, served: Served) -> None:
        method, _ = served.service.methods()["GetProviderSchema"]
        assert method(wire.Empty()).capabilities.plan_destroy


class TestWriteOnly:
    def test_is_in_no_plan(self, served: Served) -> None:
        assert served.plan(None, _object(secret="hidden"))[1]["secret"] is None

    def test_reaches_a_creation(self, served: Served) -> None:
        state = decode(served.create().state, _SCHEMA.whole)
        assert state is not None
        assert state["secret"] is None
        assert served.thing.secret == "hidden"

    @pytest.mark.parametrize("able", [False, True])
    def test_needs_a_terraform_that_knows_of_it(self, served: Served, able: bool) -> None:
        method, _ = served.service.methods()["ValidateResourceConfig"]
        request = wire.ValidateRequest(type_name="thing", config=_value(_object(secret="hidden")))
        request.abilities.write_only = able
        told = [each.summary for each in method(request).diagnostics]
        assert told == ([] if able else ["secret: requires a version with write-only arguments"])


class TestInOrder:
    def test_after_a_creation(self, served: Served) -> None:
        served.create()
        assert served.service.in_order()

    def test_after_a_failure(self, served: Served) -> None:
        served.thing.error = Failure([Diagnostic("It is full")])
        assert _made(served.create()) is None
        assert served.service.in_order()

    def test_not_if_what_was_made_could_not_be_answered(self, served: Served) -> None:
        served.thing.made = object()
        response = served.create()
        assert _made(response) is None
        assert "Unexpected error" in response.diagnostics[0].summary
        assert not served.service.in_order()


def test_a_defect_is_told_without_the_value_it_is_about(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    served.thing.error = UnicodeEncodeError("utf-8", "s3cret", 0, 1, "why")
    [told] = served.create().diagnostics
    assert told.summary.startswith("Unexpected error: UnicodeEncodeError: 'utf-8' codec")
    assert "bug in Sojourn" in told.detail
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    [unexpected] = [line for line in lines if line["@message"] == "Unexpected"]
    assert "in create" in unexpected["trace"]
    assert "s3cret" not in told.summary + json.dumps(lines)

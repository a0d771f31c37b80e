"""What every call to Azure goes through: who is it, may it, is it right, what is the answer.

How the providers answer does not belong here, nor how bytes come and go, see `server`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from tests.simcloud.az import calls, rights, roles, shapes
from tests.simcloud.az.calls import Call
from tests.simcloud.az.entra import ARM_AUDIENCES, EntraError, Principal
from tests.simcloud.az.parts import Context, Handlers, Parts
from tests.simcloud.az.wire import ArmError
from tests.simcloud.common.faults import Fault
from tests.simcloud.common.gate import Gate
from tests.simcloud.common.wire import CUT, Answer, Request


class FaultError(Exception):
    """What a test wants to be answered, whatever the service."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class BlobError(Exception):
    """A refusal as the blob service puts it."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message

    def answer(self) -> Answer:
        text = f"<Error><Code>{self.code}</Code><Message>{self.message}</Message></Error>"
        headers = {"Content-Type": "application/xml", "x-ms-error-code": self.code}
        return Answer(
            self.status, f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode(), headers
        )


class Blobs(Protocol):
    """The blob service, as the gate sees it."""

    def name(self, request: Request) -> str: ...

    def caller(self, request: Request) -> str: ...

    def answer(self, name: str, request: Request) -> Answer: ...


_REFUSALS = (ArmError, BlobError, EntraError, FaultError)


class Refused(Exception):
    """Any refusal, so that there is one kind of it."""

    def __init__(self, inner: Exception) -> None:
        super().__init__(str(inner))
        self.inner = inner
        self.code = str(getattr(inner, "code", ""))


class AzureGate(Gate[Call]):
    """Answers requests, one at a time but for the time that they are told to take."""

    refused = Refused

    def __init__(
        self, parts: Parts, handlers: Handlers, blobs: Blobs, defects: list[BaseException]
    ) -> None:
        super().__init__(parts.changed)
        self.defects = defects
        self._parts = parts
        self._handlers = handlers
        self._blobs = blobs

    def identify(self, request: Request) -> Call:
        call = calls.identify(request)
        if call.name == "blobs.":
            call.name += self._blobs.name(request)
        return call

    def answer_call(self, call: Call, request: Request) -> Answer:
        try:
            with self._changed:
                return self._answer(call, request)
        except _REFUSALS as error:
            raise Refused(error) from error

    def refusal(self, call: Call | None, request: Request, error: Exception) -> Answer:
        inner = error.inner if isinstance(error, Refused) else error
        service = call.name.partition(".")[0] if call else ""
        if isinstance(inner, FaultError):
            inner = _as_service(service, inner.status, inner.code)
        assert isinstance(inner, (ArmError, BlobError, EntraError))
        return Answer(CUT) if inner.status == CUT else inner.answer()

    def gap(self, error: Exception) -> Exception:
        return ArmError(400, "NotImplemented", f"The simulation cannot do this: {error!r}")

    def code(self, answer: Answer) -> str:
        return answer.headers.get("x-ms-error-code", str(answer.status))

    def _answer(self, call: Call, request: Request) -> Answer:
        service = call.name.partition(".")[0]
        caller = self._caller(service, request)
        call.who = caller.name if isinstance(caller, Principal) else caller
        fault = self.faults.strike(call)
        if fault and not fault.after:
            raise _raised(service, fault)
        if service == "entra":
            answer = self._parts.directory.answer(call.name, request)
        elif service == "diagnostics":
            answer = self._diagnosis(request)
        elif service == "blobs":
            answer = self._blobs.answer(call.name, request)
        else:
            assert isinstance(caller, Principal)
            answer = self._manage(call, request, caller)
        self._changed.notify_all()
        if fault:
            raise _raised(service, fault)
        return answer

    def _diagnosis(self, request: Request) -> Answer:
        """Whoever knows the address may read it; a token of somebody's has no business there."""
        assert "authorization" not in request.headers
        known = self._parts.diagnostics.get(f"{request.path}?{request.query}")
        if known is None or request.method != "GET":
            raise BlobError(403, "AuthenticationFailed", "The signature does not fit.")
        return Answer(200, known().encode(), {"Content-Type": "text/plain"})

    def _caller(self, service: str, request: Request) -> Principal | str:
        if service == "diagnostics":
            return ""
        if service == "entra":
            return request.form.get("client_id", "") if request.method == "POST" else ""
        if service == "blobs":
            return self._blobs.caller(request)
        given = request.headers.get("authorization", "")
        return self._parts.directory.verify(given, ARM_AUDIENCES)

    def _manage(self, call: Call, request: Request, caller: Principal) -> Answer:
        self._check_subscription(call)
        body = _body(request)
        rights.check(call, body, caller, self._parts.roles)
        calls.check_query(call, request)
        self._check_registered(call)
        self._check_locks(call)
        _check_body(call, request, body)
        handler = self._handlers.get(call.name)
        if handler is None:
            raise NotImplementedError(f"{call.name} is not known here")
        answer = handler(Context(call, request, caller, body))
        _check_answer(call, answer)
        said = {"x-ms-request-id": str(uuid.uuid4()), **answer.headers}
        return Answer(answer.status, answer.body, said)

    def _check_subscription(self, call: Call) -> None:
        parts = call.path.split("/")
        named = parts[2] if len(parts) > 2 and parts[1].lower() == "subscriptions" else ""
        if named.lower() != self._parts.subscription:
            text = f"The subscription '{named}' could not be found."
            raise ArmError(404, "SubscriptionNotFound", text)

    def _check_locks(self, call: Call) -> None:
        """A lock on something keeps what holds it from being deleted, too."""
        locked = [
            each
            for each in self._parts.locks
            if roles.covers(each, call.scope) or roles.covers(call.scope, each)
        ]
        if call.method == "DELETE" and locked:
            raise ArmError(
                409,
                "ScopeLocked",
                f"The scope '{call.scope}' cannot perform delete operation because following "
                f"scope(s) are locked: '{locked[0]}'. Please remove the lock and try again.",
            )

    def _check_registered(self, call: Call) -> None:
        """Only what is made needs its provider; what cannot be there is just not found."""
        known = call.operation["path"].split("/providers/")
        namespace = known[-1].partition("/")[0] if len(known) > 1 else ""
        if call.method != "PUT" or namespace.startswith("{") or not namespace:
            return
        always = ("microsoft.authorization", "microsoft.resources", "microsoft.marketplaceordering")
        if namespace.lower() in (*always, *self._parts.registered):
            return
        raise ArmError(
            409,
            "MissingSubscriptionRegistration",
            f"The subscription is not registered to use namespace '{namespace}'. See "
            f"https://aka.ms/rps-not-found for how to register subscriptions.",
            details=(
                {
                    "code": "MissingSubscriptionRegistration",
                    "target": namespace,
                    "message": f"The subscription is not registered to use namespace "
                    f"'{namespace}'. See https://aka.ms/rps-not-found for how to register "
                    f"subscriptions.",
                },
            ),
        )


def _body(request: Request) -> dict[str, Any]:
    if not request.body:
        return {}
    if not request.headers.get("content-type", "").startswith("application/json"):
        text = "The content media type is not supported. Only 'application/json' is supported."
        raise ArmError(415, "UnsupportedMediaType", text)
    try:
        loaded = json.loads(request.body)
    except ValueError as error:
        text = f"The request content was invalid and could not be deserialized: '{error}'."
        raise ArmError(400, "InvalidRequestContent", text) from error
    if not isinstance(loaded, dict):
        raise ArmError(400, "InvalidRequestContent", "The request content was not an object.")
    return loaded


def _check_body(call: Call, request: Request, body: Mapping[str, Any]) -> None:
    kind = call.operation.get("body")
    if not kind:
        if body:
            text = "The request content was invalid: this operation takes none."
            raise ArmError(400, "InvalidRequestContent", text)
        return
    if not request.body and not call.operation.get("bodyRequired"):
        return
    problems = shapes.problems(kind, body, sent=True)
    if problems:
        text = " ".join(problems)
        raise ArmError(
            400,
            "InvalidRequestContent",
            f"The request content was invalid and could not be deserialized: '{text}'.",
        )


def _check_answer(call: Call, answer: Answer) -> None:
    """What we say has to be what Azure could say."""
    known = call.operation.get("answers")
    if known is None or answer.status >= 400:
        return
    assert str(answer.status) in known, f"{call.name} does not answer {answer.status}"
    kind = known[str(answer.status)]
    if kind and answer.body:
        problems = shapes.problems(kind, json.loads(answer.body), sent=False)
        assert not problems, f"{call.name}: {problems}"


def _raised(service: str, fault: Fault) -> Exception:
    if fault.error:
        return fault.error
    if service == "blobs":
        return BlobError(503, "ServerBusy", "The server is currently unable to receive requests.")
    if service == "entra":
        return EntraError(429, "temporarily_unavailable", 90055, "There are too many requests.")
    text = "Number of requests for the subscription exceeded the limit. Please try again."
    return ArmError(429, "SubscriptionRequestsThrottled", text, retry_after=1)


def _as_service(service: str, status: int, code: str) -> Exception:
    text = "A test made this call fail."
    if service == "blobs":
        return BlobError(status, code, text)
    if service == "entra":
        return EntraError(status, code, 90000, text)
    return ArmError(status, code, text)

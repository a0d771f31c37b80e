"""What every call goes through: who is it, may it, is it well formed, does it fail, the answer.

How the services answer does not belong here.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.simcloud.common import gate as common
from tests.simcloud.common.faults import Fault
from tests.simcloud.common.wire import Answer, Request
from tests.simcloud.gcp import calls, masks, oracle, rights, storage_rights
from tests.simcloud.gcp.accounts import CLOUD_PLATFORM, Token, member_of
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.compute import Compute
from tests.simcloud.gcp.iam import IAM
from tests.simcloud.gcp.project import NUMBER, PROJECT, SERVICES, Project
from tests.simcloud.gcp.storage_json import StorageJSON, as_answer
from tests.simcloud.gcp.storage_model import Buckets
from tests.simcloud.gcp.storage_xml import StorageXML
from tests.simcloud.gcp.store import Store
from tests.simcloud.gcp.wire import GCPError, answered, error_info, refusal

_RATE = {
    "compute": GCPError("rateLimitExceeded", "Rate Limit Exceeded", 403),
    "storage": GCPError("rateLimitExceeded", "The rate limit was exceeded, slow down.", 429),
}
_OTHER_RATE = GCPError("RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Requests'.", 429)
_STORAGE_SCOPES = {
    CLOUD_PLATFORM,
    "https://www.googleapis.com/auth/devstorage.full_control",
    "https://www.googleapis.com/auth/devstorage.read_write",
}


class Gate(common.Gate[Call]):
    """With what Google checks of every call."""

    refused = GCPError

    def __init__(
        self,
        project: Project,
        store: Store,
        buckets: Buckets,
        compute: Compute,
        iam: IAM,
        token_uri: Callable[[], str],
    ) -> None:
        super().__init__(project.changed)
        self._project = project
        self._store = store
        self._buckets = buckets
        self._compute = compute
        self._iam = iam
        self._json = StorageJSON(project, buckets)
        self._xml = StorageXML(project.clock, buckets)
        self._token_uri = token_uri

    def identify(self, request: Request) -> Call:
        call = calls.identify(request)
        if call.places.get("project") == NUMBER:
            call.places["project"] = PROJECT
        if call.operation == "objects.copy":
            call.query["copy-source"] = [request.headers["x-goog-copy-source"]]
        return call

    def refusal(self, call: Call | None, request: Request, error: Exception) -> Answer:
        assert isinstance(error, GCPError)
        service = call.service if call else "compute"
        return refusal(service, request.method, error, bool(call and call.xml))

    def gap(self, error: Exception) -> GCPError:
        return GCPError("notImplemented", f"The simulation cannot do this: {error!r}", 400)

    def code(self, answer: Answer) -> str:
        if not answer.body.startswith(b"{"):
            return str(answer.status)
        error = json.loads(answer.body).get("error", {})
        return str(error.get("status", answer.status)) if isinstance(error, dict) else str(error)

    def answer_call(self, call: Call, request: Request) -> Answer:
        with self._changed:
            if call.service in ("oauth2", "sts"):
                return self._exchange(call, request)
            token = self._project.accounts.caller(request)
            call.who = token.account.email
            fault = self.faults.strike(call)
            if fault and not fault.after:
                raise _raised(call, fault)
            self._check(call, token)
            answer = self._serve(call, request)
            self._changed.notify_all()  # the scaler may have something to do
            if fault:
                raise _raised(call, fault)
            return answer

    def _exchange(self, call: Call, request: Request) -> Answer:
        fault = self.faults.strike(call)
        if fault:
            raise _raised(call, fault)
        if call.service == "sts":
            return self._project.accounts.federation.exchange(request)
        return self._project.accounts.exchange(request, self._token_uri())

    def _check(self, call: Call, token: Token) -> None:
        """In Google's order: scopes, whether the API is enabled, form, permissions."""
        allowed = set(call.method.spec.get("scopes", ())) if call.method else _STORAGE_SCOPES
        if call.service == "iamcredentials":
            allowed.add("https://www.googleapis.com/auth/iam")  # not in its document, and enough
        if not allowed & set(token.scopes):
            info = error_info("ACCESS_TOKEN_SCOPE_INSUFFICIENT", "googleapis.com")
            message = "Request had insufficient authentication scopes."
            raise GCPError("insufficientPermissions", message, 403, details=[info])
        if not self._project.enabled(call.service):
            raise _disabled(call.service)
        if call.method:
            oracle.check_path(call.method, call.places)
            oracle.check_query(call.method, call.query)
            if call.operation != "objects.insert":
                oracle.check_body(call.method, call.body)
        self._authorize(call, token)

    def _authorize(self, call: Call, token: Token) -> None:
        may = self._project.policies.may
        for need in rights.needed(call, self._project, self._store, self._buckets):
            if not may(token.account.member, need.permission, need.resource):
                raise rights.denied(call, need)

    def _serve(self, call: Call, request: Request) -> Answer:
        try:
            value = self._value(call, request)
        except GCPError as error:
            if call.service == "storage" and error.status == 404 and "object" in call.places:
                who = member_of(call.who)
                policies = self._project.policies
                hidden = storage_rights.hidden(call, who, policies, self._buckets)
                if hidden and call.places["object"]:
                    raise hidden from None
            raise
        if isinstance(value, Answer):
            return value
        assert call.method
        oracle.check_answer(call.method, value)
        return answered(masks.masked(value, call.asked("fields")))

    def _value(self, call: Call, request: Request) -> object:
        if call.xml:
            return self._xml.answer(call, request)
        if call.service == "storage":
            found = self._json.answer(call, request)
            return as_answer(found) if isinstance(found, Answer) else found
        if call.service == "compute":
            return self._compute.answer(call)
        return self._iam.answer(call)


def _raised(call: Call, fault: Fault) -> Exception:
    return fault.error or _RATE.get(call.service, _OTHER_RATE)


def _disabled(service: str) -> GCPError:
    title, host = SERVICES[service], f"{service}.googleapis.com"
    url = f"https://console.developers.google.com/apis/api/{host}/overview?project={PROJECT}"
    message = (
        f"{title} has not been used in project {NUMBER} before or it is disabled. Enable it by "
        f"visiting {url} then retry. If you enabled this API recently, wait a few minutes for the "
        f"action to propagate to our systems and retry."
    )
    info = error_info(
        "SERVICE_DISABLED", "googleapis.com", service=host, consumer=f"projects/{NUMBER}",
        serviceTitle=title, activationUrl=url,
    )  # fmt: skip
    return GCPError("accessNotConfigured", message, 403, rpc="PERMISSION_DENIED", details=[info])

"""Service Quotas: how many vCPUs may run at once."""

from __future__ import annotations

import json

from tests.simcloud.aws.calls import Call
from tests.simcloud.common.wire import Answer, Request

_VCPUS = {"L-1216C47A": 32.0, "L-34B43A08": 32.0, "L-DB2E81BA": 8.0, "L-417A185B": 0.0}


def answer_quotas(call: Call, request: Request) -> Answer:
    """The quota that is asked for."""
    if call.operation != "GetServiceQuota":
        raise NotImplementedError(f"{call.name} is not known here")
    asked = json.loads(request.body)
    quota = {**asked, "Value": _VCPUS[asked["QuotaCode"]]}
    body = json.dumps({"Quota": quota}).encode()
    return Answer(200, body, {"Content-Type": "application/x-amz-json-1.1"})

"""Parameters of query services, and results, by the models that botocore has of them."""

from __future__ import annotations

from typing import Any

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import XFormedAttributePicker, get_serializer_class
from moto.core.utils import get_service_model

from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.wire import Answer, Request

_PROTOCOLS = {
    "autoscaling": "query",
    "ec2": "ec2",
    "iam": "query",
    "s3": "rest-xml",
    "sts": "query",
}


def parameters(service: str, operation: str, request: Request) -> dict[str, Any]:
    """What the caller says, typed; what the model demands has to be there."""
    model: Any = get_service_model(service)
    if operation not in model.operation_names:
        raise AWSError(
            "InvalidAction", f"The action {operation} is not valid for this web service."
        )
    shape = model.operation_model(operation)
    parser: Any = PROTOCOL_PARSERS[_PROTOCOLS[service]]
    given: dict[str, Any] = parser(shape, map_type=dict).parse({"values": request.form})
    for name in shape.input_shape.required_members:
        if name not in given:
            message = (
                f"1 validation error detected: Value null at '{name}' failed to satisfy constraint"
            )
            raise AWSError("ValidationError", message)
    return given


def result(service: str, operation: str, value: dict[str, Any] | None = None) -> Answer:
    """The answer that tells this."""
    model: Any = get_service_model(service)
    protocol = _PROTOCOLS[service]
    serializer: Any = get_serializer_class(service, protocol)
    made = serializer(
        model.operation_model(operation), value_picker=XFormedAttributePicker()
    ).serialize(value or {})
    body = made["body"]
    return Answer(
        made["status_code"], body.encode() if isinstance(body, str) else body, made["headers"]
    )

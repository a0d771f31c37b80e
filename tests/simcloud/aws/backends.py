"""Where moto keeps the state of the account, and how a request is handed to moto.

All that touches moto's state does so with the account's lock held: moto has none. What moto is not
strict about does not belong here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from tests.simcloud.common.wire import Answer, Request

ACCOUNT = "123456789012"
PARTITION = "aws"


def ec2(region: str) -> Any:
    from moto.ec2.models import ec2_backends

    return ec2_backends[ACCOUNT][region]


def ec2_regions() -> Iterator[tuple[str, Any]]:
    """The regions that were used, with their state."""
    from moto.ec2.models import ec2_backends

    yield from list(ec2_backends[ACCOUNT].items())


def iam() -> Any:
    from moto.iam.models import iam_backends

    return iam_backends[ACCOUNT][PARTITION]


def s3() -> Any:
    from moto.s3.models import s3_backends

    return s3_backends[ACCOUNT][PARTITION]


def sts() -> Any:
    from moto.sts.models import sts_backends

    return sts_backends[ACCOUNT][PARTITION]


def reset() -> None:
    """Forget the account."""
    s3().reset()
    for _, backend in ec2_regions():
        _forget(backend)
    from moto.ec2.models import ec2_backends

    ec2_backends[ACCOUNT].clear()
    iam().reset()
    sts().reset()


def call(service: str, request: Request) -> Answer:
    """What moto answers to the request."""
    answered: list[Any] = []
    environ = dict(request.environ)
    chunks = _application(service)(environ, lambda *said: answered.extend(said[:2]))
    body = b"".join(chunks)
    status, headers = answered
    return Answer(int(status.split()[0]), body, dict(headers))


@functools.cache
def _application(service: Any) -> Any:
    """moto's own way to find it takes a third of the time of a call."""
    from moto.moto_server.werkzeug_app import create_backend_app

    return create_backend_app(service)


def _forget(backend: Any) -> None:
    """Instances would give their addresses back to subnets that are gone."""
    for reservation in backend.reservations.values():
        reservation.instances.clear()

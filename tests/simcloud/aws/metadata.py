"""The metadata service of an instance, version 2 only, as its machine sees it at 169.254.169.254.

What the instance is does not belong here, see `fleet`; nor whom its credentials let in, see `gate`.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from tests.simcloud.aws import backends, callers
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.fleet import Instance
from tests.simcloud.common.clock import stamp
from tests.simcloud.machines.serving import Request, Response

ADDRESS = "169.254.169.254"
PORT = 80
_TTL = "x-aws-ec2-metadata-token-ttl-seconds"
_TOKEN = "x-aws-ec2-metadata-token"
_LONGEST = 21600
_NOTHING = Response(404, b"")


class Metadata:
    """Answers of one instance."""

    def __init__(self, instance: Instance, timing: Timing, lock: threading.Condition) -> None:
        self._instance = instance
        self._timing = timing
        self._lock = lock
        self._tokens: dict[str, float] = {}
        self._credentials: callers.Credentials | None = None
        self._booted = time.time()

    def answer(self, request: Request) -> Response:
        if self._instance.record.metadata_options.http_endpoint == "disabled":
            return Response(403)
        path = request.path.partition("?")[0]
        if path == "/latest/api/token":
            return self._token(request)
        if self._tokens.get(request.headers.get(_TOKEN, ""), 0.0) <= time.monotonic():
            return Response(401)
        if request.method not in ("GET", "HEAD"):
            return Response(405)
        with self._lock:
            text = self._find(path.rstrip("/"))
        if text is None:
            return _NOTHING
        body = text if isinstance(text, bytes) else text.encode()
        return Response(200, body, {"Content-Type": "text/plain"})

    def _token(self, request: Request) -> Response:
        seconds = request.headers.get(_TTL, "")
        if request.method != "PUT":
            return Response(405)
        if "x-forwarded-for" in request.headers:
            return Response(403)
        if not seconds.isdigit() or not 1 <= int(seconds) <= _LONGEST:
            return Response(400)
        token = secrets.token_urlsafe(40)
        self._tokens[token] = time.monotonic() + int(seconds)
        return Response(200, token.encode(), {_TTL: seconds})

    def _find(self, path: str) -> str | bytes | None:
        if path == "/latest/user-data":
            return self._instance.user_data or None
        if path == "/latest/dynamic/instance-identity/document":
            return self._document()
        prefix = "/latest/meta-data"
        if path == prefix:
            return "\n".join(sorted({name.partition("/")[0] for name in self._values()}))
        find = self._values().get(path.removeprefix(f"{prefix}/"))
        return find() if find and path.startswith(prefix) else None

    def _values(self) -> dict[str, Callable[[], str | None]]:
        instance, record = self._instance, self._instance.record
        values: dict[str, Callable[[], str | None]] = {
            "ami-id": lambda: str(record.image_id),
            "autoscaling/target-lifecycle-state": lambda: instance.target,
            "events/recommendations/rebalance": self._rebalance,
            "hostname": lambda: str(record.private_dns_name),
            "instance-action": lambda: "none",
            "instance-id": lambda: instance.id,
            "instance-life-cycle": lambda: "spot" if instance.spot else "on-demand",
            "instance-type": lambda: instance.type,
            "local-hostname": lambda: str(record.private_dns_name),
            "local-ipv4": lambda: str(record.private_ip),
            "placement/availability-zone": lambda: instance.zone,
            "placement/region": lambda: instance.region,
            "public-ipv4": lambda: record.public_ip,
            "services/domain": lambda: "amazonaws.com",
            "spot/instance-action": self._action,
            "spot/termination-time": lambda: stamp(instance.notice) if instance.notice else None,
        }
        if instance.role:
            values["iam/info"] = self._info
            values["iam/security-credentials"] = lambda: instance.role
            values[f"iam/security-credentials/{instance.role}"] = self._secret
        return values

    def _document(self) -> str:
        instance = self._instance
        return json.dumps(
            {
                "accountId": backends.ACCOUNT,
                "architecture": instance.record.architecture,
                "availabilityZone": instance.zone,
                "imageId": instance.record.image_id,
                "instanceId": instance.id,
                "instanceType": instance.type,
                "privateIp": instance.record.private_ip,
                "region": instance.region,
                "version": "2017-09-30",
            }
        )

    def _action(self) -> str | None:
        notice = self._instance.notice
        return json.dumps({"action": "terminate", "time": stamp(notice)}) if notice else None

    def _rebalance(self) -> str | None:
        when = self._instance.rebalance
        return json.dumps({"noticeTime": stamp(when)}) if when else None

    def _info(self) -> str:
        profile = self._instance.record.iam_instance_profile or {}
        return json.dumps({"Code": "Success", "InstanceProfileArn": profile.get("Arn")})

    def _secret(self) -> str | None:
        """Credentials, the same ones until half of their time is over."""
        instance, now = self._instance, datetime.now(timezone.utc)
        half = timedelta(seconds=self._timing.credentials / 2)
        if instance.role not in {role.name for role in backends.iam().roles.values()}:
            return None
        if now.timestamp() < self._booted + self._timing.keys_ready:
            code = "AssumeRoleUnauthorizedAccess"
            why = f"EC2 cannot assume the role {instance.role}."
            return json.dumps({"Code": code, "Message": why, "LastUpdated": stamp(now)})
        if self._credentials is None or not callers.is_good(self._credentials, now + half):
            self._credentials = callers.make_credentials(
                instance.role, instance.id, instance.region, self._timing.credentials
            )
        return json.dumps(
            {
                "Code": "Success",
                "LastUpdated": stamp(now),
                "Type": "AWS-HMAC",
                "AccessKeyId": self._credentials.key_id,
                "SecretAccessKey": self._credentials.secret,
                "Token": self._credentials.token,
                "Expiration": stamp(self._credentials.expiration),
            }
        )

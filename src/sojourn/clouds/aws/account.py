"""The user's account: sessions, clients and calls. Nothing is asked before it is needed."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws.credentials import Used, used_by
from sojourn.clouds.aws.errors import code_of, translated
from sojourn.core.errors import AuthError, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Account"]

_CONNECT_WITHIN = 10  # seconds
_ANSWER_WITHIN = 60
_TRIES = 8  # boto waits longer before each, as AWS asks for


class Account:
    """Makes clients for services and regions, each once."""

    def __init__(self, profile: str = "", *, tries: int = 0) -> None:
        self._profile = profile  # empty: what boto3 finds
        self._tries = tries  # 0: as many as usual
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    @cached_property
    def session(self) -> Any:
        """boto3's session: profiles, SSO, roles and variables, as everybody knows them."""
        try:
            import boto3
        except ImportError as error:
            raise MissingDependency("aws", "AWS needs boto3, which is not installed") from error
        with translated("AWS"):
            return boto3.Session(profile_name=self._profile or None)

    def address(self) -> str:
        """The access key, which tells accounts apart without a call; empty if there is none."""
        try:
            found = self.session.get_credentials()
            return str(found.access_key) if found else ""
        except Exception:  # of boto3: what is wrong is said by the first call
            return ""

    def regions(self) -> dict[str, str]:
        """All that boto3 knows of, by partition: to ask one that is not there takes minutes."""
        with self._lock:
            session = self.session
            partitions = session.get_available_partitions()
            return {r: p for p in partitions for r in session.get_available_regions("ec2", p)}

    @cached_property
    def number(self) -> str:
        """The number of the account, which S3 can compare with the owner of a bucket."""
        found = self.call("identity", "sts", "us-east-1", "get_caller_identity")
        return str(found["Account"])

    def client(self, service: str, region: str) -> Any:
        """A client; threads may share it."""
        with self._lock:  # sessions are not made for many threads
            key = (service, region)
            if key not in self._clients:
                self._clients[key] = self._make_client(service, region)
            return self._clients[key]

    def _make_client(self, service: str, region: str) -> Any:
        session = self.session
        from botocore.config import Config

        config = Config(
            connect_timeout=_CONNECT_WITHIN,
            read_timeout=_ANSWER_WITHIN,
            retries={"mode": "standard", "total_max_attempts": self._tries or _TRIES},
            user_agent_extra="sojourn",
        )
        with translated(f"AWS {service}"):
            try:
                return session.client(service, region_name=region, config=config)
            except ValueError as error:
                raise AuthError(
                    f"AWS {service}: {error}", hint="Check AWS_ENDPOINT_URL and ~/.aws/config."
                ) from error

    def call(self, what: str, service: str, region: str, operation: str, **arguments: Any) -> Any:
        """Carry out an operation; `what` is what the user knows it by."""
        client = self.client(service, region)
        with translated(what, lambda text: self._decoded(text, region), self._used):
            return getattr(client, operation)(**arguments)

    def pages(
        self, what: str, service: str, region: str, operation: str, **arguments: Any
    ) -> Iterator[Any]:
        """All pages of an answer."""
        client = self.client(service, region)
        with translated(what, lambda text: self._decoded(text, region), self._used):
            yield from client.get_paginator(operation).paginate(**arguments)

    def _used(self) -> Used:
        with self._lock:
            return used_by(self.session)

    def _decoded(self, text: str, region: str) -> str:
        """What AWS encoded in a refusal, if we may know it."""
        try:
            answer = self.client("sts", region).decode_authorization_message(EncodedMessage=text)
            return str(answer["DecodedMessage"])
        except Exception as error:
            return f"[encoded; allow sts:DecodeAuthorizationMessage to see it: {code_of(error)}]"

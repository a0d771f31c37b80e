"""A real S3 server on loopback, for as long as a benchmark runs."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.store import S3Store

from tests.support.seaweed import KEY, SECRET, Seaweed

__all__ = ["S3", "find_program", "started"]


@dataclass(frozen=True)
class S3:
    """How to reach the server."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client's process needs, of any make."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": tempfile.gettempdir(),
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "S3_ENDPOINT_URL": self.endpoint,
            "RCLONE_CONFIG": os.devnull,
            "RCLONE_CONFIG_S3_TYPE": "s3",
            "RCLONE_CONFIG_S3_PROVIDER": "SeaweedFS",
            "RCLONE_CONFIG_S3_ENV_AUTH": "true",
            "RCLONE_CONFIG_S3_ENDPOINT": self.endpoint,
        }

    def make_bucket(self, bucket: str) -> None:
        """A bucket that is in use: the first object in it costs the server more than others."""
        self._send("PUT", bucket)
        obstore.put(self._store(bucket), "first", b"x")
        obstore.delete(self._store(bucket), "first")

    def remove_bucket(self, bucket: str) -> None:
        """A bucket and all that is in it, at once."""
        self._send("DELETE", bucket)

    def _store(self, bucket: str) -> S3Store:
        return S3Store(
            bucket,
            endpoint=self.endpoint,
            access_key_id=KEY,
            secret_access_key=SECRET,
            region="us-east-1",
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

    def _send(self, method: str, bucket: str) -> None:
        url = obstore.sign(self._store(bucket), method, "", timedelta(minutes=5))  # type: ignore[call-overload]
        urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60).close()


@contextmanager
def started(host: str = "127.0.0.1", within: Sequence[str] = ()) -> Iterator[S3]:
    """Start a server of our own on free ports; at the end it and its data are gone."""
    with Seaweed(host, within) as server:
        yield S3(server.url)


def find_program(name: str) -> str | None:
    """Where a program is: beside this Python, else on the PATH; None if it is not installed."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)

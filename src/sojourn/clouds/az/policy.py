"""What a machine may do: read its own store, write its part of it, and change its own scale set.

What a laptop acts on, such as the task's description, a machine can only read; the seed of the SSH
key it cannot even read. Conditions of role assignments say so.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.clouds.vm.paths import LISTED, OWNERS, READ
from sojourn.storage.layout import MACHINES_WRITE

if TYPE_CHECKING:
    from sojourn.clouds.az.locations import Location

__all__ = ["Grant", "on_scaler", "on_store"]

_READER = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"  # Storage Blob Data Reader
_WRITER = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"  # Storage Blob Data Contributor
_MACHINES = "9980e02c-c2be-4d73-94e8-173b1dc7cf3c"  # Virtual Machine Contributor
_TAGS = "4a9ae827-6dc2-4573-8ac7-8239d42aa03f"  # Tag Contributor
_ALL = "b24988ac-6180-42a0-ab88-20f7382dd24c"  # Contributor
_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_PATH = f"@Resource[{_BLOBS}:path]"
_PREFIX = f"@Request[{_BLOBS}:prefix]"
_LISTS = f"ActionMatches{{'{_BLOBS}/read'}} AND SubOperationMatches{{'Blob.List'}}"
_NAMES = uuid.UUID("7c4c2f4e-0a35-5d0f-9d6c-3f1a5f0f7a51")  # what names of assignments derive from


@dataclass(frozen=True)
class Grant:
    """A role at a scope."""

    scope: str
    role: str
    condition: str = ""

    def name(self, task: str) -> str:
        """The name of its assignment, a GUID: whoever deletes it need not know to whom it is."""
        return str(uuid.uuid5(_NAMES, f"{task}/{self.scope.lower()}/{self.role}"))


def on_store(container: str, location: Location) -> tuple[Grant, ...]:
    """What machines may do in the container of their store."""
    inside = f"{location.folder}/" if location.folder else ""
    return (
        Grant(container, _READER, _naming(inside) if location.contained else _reading()),
        Grant(container, _WRITER, _writing(inside)),
    )


def _reading() -> str:
    """All of a container of the task's own but what is the laptop's."""
    return f"(({_LISTS}) OR ({_PATH} StringNotStartsWith '{OWNERS}'))"


def _naming(inside: str) -> str:
    """What a machine needs in a container of the user's: other tasks may have folders beside its
    task's, or below."""
    listed = " OR ".join(f"{_PREFIX} StringStartsWith '{inside}{name}'" for name in LISTED)
    read = " OR ".join(
        f"{_PATH} String{'StartsWith' if name.endswith('/') else 'Equals'} '{inside}{name}'"
        for name in READ
    )
    return f"(({_LISTS} AND ({listed})) OR {read})"


def _writing(inside: str) -> str:
    """This role can read as well: so all that it does is limited, not what it writes alone."""
    paths = [f"{_PATH} StringStartsWith '{inside}{name}/'" for name in MACHINES_WRITE]
    return f"({' OR '.join(paths)})"


def on_scaler(scale_set: str, setting: str) -> tuple[Grant, ...]:
    """What machines may do with their own scale set, and with what keeps its number."""
    return (Grant(scale_set, _MACHINES), Grant(scale_set, _TAGS), Grant(setting, _ALL))

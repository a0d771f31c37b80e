"""What is in a storage account: containers with their blobs, in memory.

How they are asked for does not belong here, see `blobs`; nor who may, see `blobauth`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

_serial = itertools.count(0x8DC000000000000)


@dataclass(frozen=True)
class Blob:
    """One version of a block blob. It is replaced, never changed."""

    data: bytes
    modified: float
    headers: Mapping[str, str] = field(default_factory=dict)  # Content-Type and the like
    metadata: Mapping[str, str] = field(default_factory=dict)
    etag: str = field(default_factory=lambda: f'"0x{next(_serial):X}"')


@dataclass
class Container:
    """Blobs, and blocks that belong to none yet."""

    name: str
    blobs: dict[str, Blob] = field(default_factory=dict)
    blocks: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by blob, by block id


@dataclass
class Account:
    """What is kept of a storage account beside what callers of Resource Manager are told."""

    name: str
    id: str
    keys: list[str]
    containers: dict[str, Container] = field(default_factory=dict)
    resolves: float = 0.0  # from when on its name does
    gone: dict[str, float] = field(default_factory=dict)  # until when a name cannot be had again

"""Manifests as somebody else would write them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from sojourn.storage.digest import digest_of

__all__ = ["GOOD_OBJECT", "file_row", "folder_row", "link_row", "raw_manifest"]

CONTENT = b"content"
DIGEST = digest_of(CONTENT)
GOOD_OBJECT = f"workdir/objects/{DIGEST}"


def file_row(path: Any, **change: Any) -> list[Any]:
    """A file that holds CONTENT; `change` names what is to be wrong with it."""
    row = {
        "path": path,
        "kind": "f",
        "mode": 0o644,
        "mtime": 1,
        "size": len(CONTENT),
        "parts": [[0, 0, len(CONTENT), DIGEST]],
        "target": "",
        "ctime": 0,
        "inode": 0,
    }
    return list((row | change).values())


def folder_row(path: str, **change: Any) -> list[Any]:
    return file_row(path, **({"kind": "d", "mode": 0o755, "size": 0, "parts": []} | change))


def link_row(path: str, target: Any, **change: Any) -> list[Any]:
    return file_row(path, **({"kind": "l", "size": 0, "parts": [], "target": target} | change))


def raw_manifest(
    rows: Sequence[Any],
    objects: Sequence[Any] = ((GOOD_OBJECT, len(CONTENT)),),
    *,
    head: Any = None,
    entries: int | None = None,
) -> bytes:
    """The bytes of a manifest with these rows, whatever is in them."""
    tail = {"entries": len(rows) if entries is None else entries, "objects": objects}
    lines = [{"format": 1} if head is None else head, *rows, tail]
    return zlib.compress("".join(json.dumps(line) + "\n" for line in lines).encode())

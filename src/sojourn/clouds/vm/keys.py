"""The SSH key of a task: derived from a seed in its store, so that no key is kept anywhere.

The seed is the laptop's: machines cannot read it.
"""

from __future__ import annotations

import hashlib
import hmac
import textwrap
from base64 import b64encode
from typing import TYPE_CHECKING

from sojourn.clouds.vm.paths import SEED
from sojourn.core.errors import NotFound
from sojourn.core.interfaces import KeyPair

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.storage.store import Store

__all__ = ["key_pair", "make_key_pair"]

_KIND = b"ssh-ed25519"
_BLOCK = 8  # bytes
_LONGEST = 4096  # bytes of a seed; ours have 32


def make_key_pair(store: Store, id: TaskId) -> KeyPair:
    """The key of a task, with a new seed unless there is one."""
    import secrets

    seed = secrets.token_bytes(32)
    if not store.put_new(SEED, seed):
        seed = bytes(store.get(SEED, most=_LONGEST))
    return _derived(seed, id)


def key_pair(store: Store, id: TaskId) -> KeyPair | None:
    """The key of a task; None if it has none."""
    try:
        return _derived(bytes(store.get(SEED, most=_LONGEST)), id)
    except NotFound:
        return None


def _derived(seed: bytes, id: TaskId) -> KeyPair:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    secret = hmac.new(seed, str(id).encode(), hashlib.sha256).digest()
    key = Ed25519PrivateKey.from_private_bytes(secret).public_key()
    point = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    public = b64encode(_blob(_KIND) + _blob(point)).decode()
    return KeyPair(f"{_KIND.decode()} {public} {id}", _private(secret, point, str(id)))


def _private(secret: bytes, point: bytes, comment: str) -> str:
    """The key as OpenSSH keeps it. Others put a number of chance in it: then no two are equal."""
    check = hashlib.sha256(point).digest()[:4]
    inner = check * 2 + b"".join(map(_blob, (_KIND, point, secret + point, comment.encode())))
    inner += bytes(range(1, 1 + -len(inner) % _BLOCK))
    outer = b"openssh-key-v1\0" + b"".join(map(_blob, (b"none", b"none", b"")))
    outer += (1).to_bytes(4, "big") + _blob(_blob(_KIND) + _blob(point)) + _blob(inner)
    text = "\n".join(textwrap.wrap(b64encode(outer).decode(), 70))
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{text}\n-----END OPENSSH PRIVATE KEY-----\n"


def _blob(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data

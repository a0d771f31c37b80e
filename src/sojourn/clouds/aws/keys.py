"""The SSH key of a task: derived from a seed in its store, so that no key is kept anywhere.

The seed is the laptop's: machines cannot read it.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound
from sojourn.core.interfaces import KeyPair

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.storage.store import Store

__all__ = ["SEED", "key_pair", "make_seed"]

SEED = "laptop/seed"


def make_seed(store: Store) -> None:
    """Make a seed unless there is one."""
    import secrets

    store.put_new(SEED, secrets.token_bytes(32))


def key_pair(store: Store, id: TaskId) -> KeyPair | None:
    """The key of a task; None if it has none."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        seed = bytes(store.get(SEED))
    except NotFound:
        return None
    secret = hmac.new(seed, str(id).encode(), hashlib.sha256).digest()
    key = Ed25519PrivateKey.from_private_bytes(secret)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    return KeyPair(f"{public.decode()} {id}", private.decode())

"""SSH keys that users give."""

from __future__ import annotations

from sojourn.core.errors import InvalidInput

__all__ = ["public_key"]


def public_key(private: str) -> str:
    """The public key of a private one, in any form that OpenSSH writes or PEM has."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    text = f"{private.strip()}\n".encode()
    for read in (serialization.load_ssh_private_key, serialization.load_pem_private_key):
        try:
            key = read(text, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
        public = key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        return public.decode()
    raise InvalidInput(
        "ssh_private", "must be a private SSH key without a passphrase, in PEM or OpenSSH format"
    )

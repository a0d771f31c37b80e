"""TLS for the servers of tests."""

from __future__ import annotations

import errno
import ssl
from pathlib import Path

_NOT_CONNECTED = (errno.ENOTCONN, errno.EINVAL)  # one that listens


def server_context(certificate: Path, key: Path | None = None) -> ssl.SSLContext:
    """What a server needs to show this certificate; without a key, it is in the same file."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, key)
    made.sslsocket_class = _Socket
    return made


class _Socket(ssl.SSLSocket):
    """Closed also if its client was killed before the handshake: Python forgets one of those."""

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        try:
            return super().recv(buflen, flags)
        except OSError as error:
            if error.errno not in _NOT_CONNECTED:
                self.close()
            raise

"""The TLS of the servers of tests."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import pytest

from tests.simforge.tls import make_certificate

_AT_ONCE = struct.pack("ii", 1, 0)  # closed without a word of goodbye, as when it is killed


def test_a_client_that_is_killed_before_the_handshake_leaves_no_socket(tmp_path: Path) -> None:
    context = make_certificate(tmp_path).secured()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        client.close()
        number = accepted.fileno()
        with pytest.raises(ConnectionResetError):
            context.wrap_socket(accepted, server_side=True)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)

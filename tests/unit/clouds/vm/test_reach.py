"""What a machine published of itself, as far as a laptop believes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from sojourn.clouds.vm.paths import HOST_KEYS
from sojourn.clouds.vm.reach import SshReach
from sojourn.core.errors import IntegrityError, Transient
from sojourn.storage.store import Store, StoreAddress, open_store

_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(StoreAddress(f"file://{tmp_path}"))


def _host_keys(store: Store) -> str:
    nobody = cast("Any", None)  # neither the group nor the task is asked
    return SshReach(nobody, lambda: store, "i-1", nobody)._host_keys(store)


def test_only_lines_that_are_keys_count(store: Store) -> None:
    published = f"{_KEY} root@machine\n* ssh-rsa AAAA\n@revoked x\n\n"
    store.put(f"{HOST_KEYS}i-1", published.encode())
    assert _KEY in _host_keys(store)
    assert "*" not in _host_keys(store)


def test_a_machine_without_a_server_is_told(store: Store) -> None:
    with pytest.raises(Transient, match="has not published its SSH keys") as caught:
        _host_keys(store)
    assert "OpenSSH server" in caught.value.hint


def test_what_is_too_large_is_not_even_read(store: Store) -> None:
    store.put(f"{HOST_KEYS}i-1", bytes(1 << 20))
    with pytest.raises(IntegrityError, match="1048576 bytes"):
        _host_keys(store)

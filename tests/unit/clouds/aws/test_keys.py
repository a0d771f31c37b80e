"""SSH keys that are derived, and kept nowhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from sojourn.clouds.vm.keys import key_pair, make_key_pair
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import KeyPair
from sojourn.storage.store import Store, StoreAddress, open_store

ID = TaskId.deterministic("test")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    return open_store(StoreAddress((tmp_path / "store").as_uri()))


def _made(store: Store, name: str = "test") -> KeyPair:
    found = key_pair(store, TaskId.deterministic(name))
    assert found
    return found


def test_without_a_seed_there_is_no_key(store: Store) -> None:
    assert key_pair(store, ID) is None


def test_a_key_is_the_same_to_the_letter_every_time(store: Store) -> None:
    first = make_key_pair(store, ID)
    assert make_key_pair(store, ID) == _made(store) == first
    assert _made(store, "other") != first


def test_the_halves_belong_together(store: Store) -> None:
    pair = make_key_pair(store, ID)
    key = serialization.load_ssh_private_key(pair.private.encode(), None)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    assert pair.public == f"{public.decode()} {ID}"


def test_openssh_reads_it(store: Store, tmp_path: Path) -> None:
    if not shutil.which("ssh-keygen"):
        pytest.skip("no ssh-keygen here")
    pair = make_key_pair(store, ID)
    (tmp_path / "key").write_text(pair.private)
    (tmp_path / "key").chmod(0o600)
    told = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(tmp_path / "key")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split()[:2] == pair.public.split()[:2]


def test_the_private_half_is_not_shown_by_chance(store: Store) -> None:
    assert "PRIVATE" not in repr(make_key_pair(store, ID))

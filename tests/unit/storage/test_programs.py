from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import IntegrityError
from sojourn.storage import layout, programs
from sojourn.storage.programs import put_program, take_program
from sojourn.storage.store import Store, StoreAddress, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    return open_store(StoreAddress(f"file://{tmp_path}/store"))


@pytest.mark.parametrize("size", [1, 8, 20])
def test_it_comes_as_it_went(
    store: Store, tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_PIECE", 8)
    data = bytes(range(size))
    sha256 = hashlib.sha256(data).hexdigest()
    (tmp_path / "program").write_bytes(data)
    put_program(Context(), store, sha256, tmp_path / "program")
    assert len(store.list(layout.PROGRAMS)) == -(-size // 8)
    assert take_program(store, sha256, tmp_path / "taken")
    assert (tmp_path / "taken").read_bytes() == data


def test_one_that_is_not_there(store: Store, tmp_path: Path) -> None:
    assert not take_program(store, "0" * 64, tmp_path / "taken")
    assert not (tmp_path / "taken").exists()


def test_one_that_was_tampered_with(store: Store, tmp_path: Path) -> None:
    store.put(layout.program_path("0" * 64, 0), b"something else")
    with pytest.raises(IntegrityError, match="does not have SHA-256"):
        take_program(store, "0" * 64, tmp_path / "taken")
    assert not (tmp_path / "taken").exists()

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.terraform.plugin import sockets


@pytest.fixture(autouse=True)
def where(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where such folders are; short enough to be used."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("PLUGIN_UNIX_SOCKET_DIR", folder)
        yield Path(folder)


def _left(where: Path) -> Path:
    """What a process that was killed left."""
    folder = where / "sojourn-terraform-left"
    folder.mkdir()
    (folder / "plugin").touch()
    return folder


def test_it_is_for_this_user_alone_and_goes_at_the_end(where: Path) -> None:
    with sockets.folder() as own:
        assert Path(own).parent == where
        assert os.stat(own).st_mode & 0o777 == 0o700
        assert os.listdir(where) == [os.path.basename(own)]
    assert os.listdir(where) == []


def test_what_was_left_is_removed(where: Path) -> None:
    left = _left(where)
    with sockets.folder():
        assert not left.exists()


def test_what_is_in_use_is_not(where: Path) -> None:
    with sockets.folder() as one, sockets.folder() as other:
        assert sorted(os.listdir(where)) == sorted(map(os.path.basename, (one, other)))


def test_what_another_user_left_is_not(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = _left(where)
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    with sockets.folder():
        pass
    assert (left / "plugin").exists()


def test_links_are_not_followed(where: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    (where / "sojourn-terraform-link").symlink_to(tmp_path)
    with sockets.folder():
        pass
    assert (tmp_path / "precious").exists()


def test_a_path_that_is_too_long_for_a_socket_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setenv("PLUGIN_UNIX_SOCKET_DIR", str(long))
    with sockets.folder() as own:
        assert len(own) < 90
    assert list(long.iterdir()) == []

"""A key of the user's own on a machine."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from sojourn.clouds.vm.on_machine.authorized import authorize


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    account = SimpleNamespace(pw_dir=str(tmp_path), pw_uid=os.getuid(), pw_gid=os.getgid())
    monkeypatch.setattr(pwd, "getpwnam", {"ubuntu": account}.__getitem__)
    return tmp_path


@pytest.mark.parametrize("before", ["", "ssh-ed25519 A task\n", "ssh-ed25519 A task"])
def test_it_is_added_once(home: Path, before: str) -> None:
    file = home / ".ssh" / "authorized_keys"
    if before:
        file.parent.mkdir()
        file.write_text(before)
    for _ in range(2):
        authorize("ubuntu", "ssh-rsa B mine")
    assert file.read_text().splitlines() == [*before.splitlines(), "ssh-rsa B mine"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_user_that_is_not_there_is_no_obstacle(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    authorize("nobody-here", "ssh-rsa B mine")
    assert "could not authorize the SSH key for nobody-here" in "".join(capsys.readouterr())
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("link", [".ssh", ".ssh/authorized_keys"])
def test_no_link_of_the_users_is_followed(
    home: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    link: str,
) -> None:
    """By root: it would write, and give away, what is not the user's."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "authorized_keys").write_text("secret\n")
    before = [path.stat() for path in (outside, outside / "authorized_keys")]
    (home / link).parent.mkdir(exist_ok=True)
    target = outside if link == ".ssh" else outside / "authorized_keys"
    (home / link).symlink_to(target)
    authorize("ubuntu", "ssh-rsa B mine")
    assert "could not authorize the SSH key for ubuntu" in "".join(capsys.readouterr())
    assert (outside / "authorized_keys").read_text() == "secret\n"
    assert [path.stat()[:9] for path in (outside, outside / "authorized_keys")] == [
        each[:9] for each in before
    ]

"""Fetching packages: what is unpacked, and that set-up goes on without."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.simcloud import debs

# It puts what is in the folder `offered` where apt would put what it downloads.
_APT = """\
#!/bin/sh
for argument; do
  case $argument in
    --option=Dir::Cache=*) cache=${{argument#--option=Dir::Cache=}} ;;
    --option=Dir::State::Lists=*) lists=${{argument#--option=Dir::State::Lists=}} ;;
    update) touch "$lists/updated"; exit 0 ;;
  esac
done
echo "$@" >> {folder}/asked
[ -e {folder}/stale ] && [ ! -e "$lists/updated" ] && {{ echo 'E: not found' >&2; exit 100; }}
cp {folder}/offered/*.deb "$cache/archives/" || {{ echo 'E: no network' >&2; exit 100; }}
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an apt that knows no network, on a computer without any of the programs."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is missing")
    for name in ("bin", "offered", "usr"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "apt-get").write_text(_APT.format(folder=tmp_path))
    (tmp_path / "bin" / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr(debs, "_USR", tmp_path / "usr")
    return tmp_path


def _offer(apt: Path, name: str, *paths: str) -> None:
    tree = apt / name
    (tree / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n"
    (tree / "DEBIAN" / "control").write_text(control)
    for path in paths:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(path)
        (tree / path).chmod(0o4755 if path.endswith("sudo") else 0o755)
    subprocess.run(["dpkg-deb", "--build", str(tree), str(apt / "offered")], check=True)


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_packages_become_a_layer_over_usr(apt: Path) -> None:
    _offer(apt, "server", "usr/sbin/sshd", "lib/systemd/system/ssh.service", "etc/ssh/moduli")
    _offer(apt, "sudo", "usr/bin/sudo", "usr/libexec/sudo/sudoers.so", "usr/share/doc/sudo/read")
    _offer(apt, "library", "lib/some-linux/libwrap.so.0")
    debs.main(apt / "made" / "debs")
    layer = apt / "made" / "debs"
    assert _files(layer) == [
        "bin/sudo",
        "lib/some-linux/libwrap.so.0",
        "libexec/sudo/sudoers.so",
        "sbin/sshd",
    ]
    assert (layer / "bin" / "sudo").stat().st_mode & 0o7777 == 0o4755
    assert [path.name for path in layer.parent.iterdir()] == ["debs"]


def test_only_what_is_missing_is_asked_for(apt: Path) -> None:
    _offer(apt, "sudo", "usr/bin/sudo")
    for program in debs.PROGRAMS.keys() - {"bin/sudo"}:
        (apt / "usr" / program).parent.mkdir(parents=True, exist_ok=True)
        (apt / "usr" / program).touch()
    debs.main(apt / "debs")
    assert (apt / "asked").read_text().split()[-1] == "sudo"
    assert "openssh" not in (apt / "asked").read_text()
    assert debs.missing(apt / "usr", apt / "debs") == []


def test_nothing_is_fetched_where_all_is_installed(apt: Path) -> None:
    for program in debs.PROGRAMS:
        (apt / "usr" / program).parent.mkdir(parents=True, exist_ok=True)
        (apt / "usr" / program).touch()
    debs.main(apt / "debs")
    assert not (apt / "asked").exists()
    assert not (apt / "debs").exists()


def test_lists_of_our_own_help_where_those_of_the_computer_are_old(apt: Path) -> None:
    (apt / "stale").touch()
    _offer(apt, "sudo", "usr/bin/sudo")
    debs.main(apt / "debs")
    assert _files(apt / "debs") == ["bin/sudo"]


def test_set_up_goes_on_without_a_network_and_without_apt(
    apt: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    debs.main(apt / "debs")
    assert "no network" in capfd.readouterr().err
    monkeypatch.setenv("PATH", "")
    debs.main(apt / "debs")
    assert "no apt" in capfd.readouterr().err
    assert not (apt / "debs").exists()

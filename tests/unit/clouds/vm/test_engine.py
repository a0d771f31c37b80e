"""What is made of the answers of Docker and Podman, by programs that give them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sojourn.agent.process import CannotStart
from sojourn.clouds.vm.on_machine import container, engine
from sojourn.clouds.vm.on_machine.container import Contained, full_name
from sojourn.clouds.vm.on_machine.engine import find, installed
from sojourn.core.errors import Cancelled, Transient

_DENIED = "pull access denied for x, repository does not exist or may require 'docker login'"
_NO_TOOLKIT = 'could not select device driver "" with capabilities: [[gpu]]'


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(engine, "_PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(engine, "_STARTED_WITHIN", 0.0)
    monkeypatch.setattr(engine, "_CARD", tmp_path / "none")
    return folder


def _put(programs: Path, name: str, text: str) -> None:
    """A program that notes what it is asked."""
    path = programs / name
    path.write_text(f'#!/bin/sh\nfolder={programs}\necho "$*" >>"$folder/asked"\n{text}\n')
    path.chmod(0o755)


def _asked(programs: Path) -> list[str]:
    return (programs / "asked").read_text().splitlines()


def _stays() -> bool:
    return False


def _contained(tmp_path: Path) -> Contained:
    (tmp_path / "disk").mkdir()
    return Contained("python:3.12", tmp_path / "disk", _stays)


def _start(contained: Contained, folder: Path) -> None:
    contained(folder / "script", folder / "workdir", {}, (), lambda: None)


def test_docker_comes_before_podman(programs: Path) -> None:
    assert find(_stays) is None
    _put(programs, "podman", "")
    found = find(_stays)
    assert found
    assert found.program == str(programs / "podman")
    _put(programs, "docker", "")
    assert installed(_stays).program == str(programs / "docker")


def test_what_may_pass_is_tried_again(programs: Path) -> None:
    _put(
        programs,
        "docker",
        'case $1 in image) exit 1 ;; esac\n[ -e "$folder/once" ] && exit\n'
        ': >"$folder/once"\necho "net/http: TLS handshake timeout" >&2\nexit 1',
    )
    installed(_stays).pull("example.com/x")
    pulls = [line for line in _asked(programs) if line.startswith("pull")]
    assert pulls == ["pull --quiet example.com/x"] * 2


@pytest.mark.parametrize(("said", "tries"), [(_DENIED, 1), ("i/o timeout", 4)])
def test_what_does_not_pass_is_told(programs: Path, said: str, tries: int) -> None:
    _put(programs, "docker", f'echo "trying" >&2\necho "{said}" >&2\nexit 1')
    with pytest.raises(CannotStart) as caught:
        installed(_stays).pull("example.com/x")
    assert str(caught.value) == f"could not pull the container image example.com/x: {said}"
    assert len([line for line in _asked(programs) if line.startswith("pull")]) == tries


def test_an_image_that_is_there_already_is_good_enough(programs: Path) -> None:
    _put(programs, "docker", "[ $1 = image ]")
    installed(_stays).pull("example.com/x")
    assert _asked(programs) == ["pull --quiet example.com/x", "image inspect example.com/x"]


def test_nothing_is_waited_for_if_the_machine_goes(programs: Path) -> None:
    _put(programs, "docker", "exec /bin/sleep 300")
    found = find(lambda: True)
    assert found
    with pytest.raises(Cancelled):
        found.pull("example.com/x")


def test_a_daemon_that_is_not_there_is_started_and_told(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(programs, "systemctl", "")
    _put(programs, "docker", "echo Cannot connect to the Docker daemon >&2; exit 1")
    with pytest.raises(CannotStart, match="docker does not respond: Cannot connect to the Docker"):
        installed(_stays).wait()
    _put(programs, "systemctl", ': >"$folder/started"')
    _put(programs, "docker", '[ -e "$folder/started" ]')
    monkeypatch.setattr(engine, "_STARTED_WITHIN", 30.0)
    installed(_stays).wait()
    assert "start docker" in _asked(programs)


def test_docker_is_installed_where_there_is_none(programs: Path) -> None:
    with pytest.raises(CannotStart, match=r"has no Docker, and no apt-get .*options\.vm_image"):
        installed(_stays)
    _put(programs, "apt-get", "echo E: Unable to locate package docker.io >&2; exit 100")
    with pytest.raises(CannotStart) as caught:
        installed(_stays)
    assert str(caught.value) == (
        "the machine image has no Docker, and installing it failed: E: Unable to locate package "
        "docker.io; choose a VM image that has it with options.vm_image"
    )
    makes = 'printf "#!/bin/sh\\n" >"$folder/docker"; /bin/chmod +x "$folder/docker"'
    _put(programs, "apt-get", makes)
    assert installed(_stays).program == str(programs / "docker")
    assert _asked(programs)[-1].endswith("install --yes docker.io")


@pytest.mark.parametrize(
    ("program", "gpus"), [("docker", "--gpus all"), ("podman", "--device nvidia.com/gpu=all")]
)
def test_a_container_has_the_gpus_of_the_machine(
    programs: Path, tmp_path: Path, program: str, gpus: str
) -> None:
    _put(programs, "nvidia-smi", "echo GPU 0")
    said = f"docker: Error response from daemon: {_NO_TOOLKIT}.\nSee 'docker run --help'."
    (programs / "said").write_text(said)
    _put(programs, program, 'case $1 in run) /bin/cat "$folder/said" >&2; exit 125 ;; esac')
    with pytest.raises(CannotStart, match="has no NVIDIA Container Toolkit") as caught:
        _start(_contained(tmp_path), tmp_path)
    assert str(caught.value).endswith(f"options.vm_image: {_NO_TOOLKIT}")
    [run] = [line for line in _asked(programs) if line.startswith("run ")]
    assert gpus in run
    assert f"--volume {tmp_path}/disk:{tmp_path}/disk --entrypoint /bin/sh docker.io/" in run
    assert not (tmp_path / "container").exists()


def test_a_name_that_is_still_taken_is_left_to_the_next_try(programs: Path, tmp_path: Path) -> None:
    said = 'Conflict. The container name "/sojourn-script" is already in use by container "0a".'
    _put(programs, "docker", f"case $1 in run) echo '{said}' >&2; exit 125 ;; esac")
    with pytest.raises(Transient, match="already in use"):
        _start(_contained(tmp_path), tmp_path)


def test_a_container_that_ends_at_once_is_told(programs: Path, tmp_path: Path) -> None:
    _put(programs, "nvidia-smi", "exit 9")  # a driver without a card
    _put(programs, "docker", "case $1 in inspect) exit 1 ;; esac")
    with pytest.raises(CannotStart, match="ended before the script began"):
        _start(_contained(tmp_path), tmp_path)
    assert not [line for line in _asked(programs) if "--gpus" in line]


def test_what_an_agent_left_is_cleared(programs: Path, tmp_path: Path) -> None:
    _put(programs, "docker", "")
    left = _contained(tmp_path)
    os.symlink("/etc/passwd", tmp_path / "disk" / "script")
    (tmp_path / "container").touch()
    left.clear()
    assert list((tmp_path / "disk").iterdir()) == []
    assert not (tmp_path / "container").exists()
    assert _asked(programs) == [f"kill {container._NAME}", f"rm --force {container._NAME}"]


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("python:3.12", "docker.io/library/python:3.12"),
        ("me/x", "docker.io/me/x"),
        ("example.com/x", "example.com/x"),
        ("registry:5000/x:1", "registry:5000/x:1"),
        ("localhost/x", "localhost/x"),
        ("a.b:5/x:1@sha256:0a", "a.b:5/x@sha256:0a"),
    ],
)
def test_names_with_their_registry(given: str, full: str) -> None:
    assert full_name(given) == full

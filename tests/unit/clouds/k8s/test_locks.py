"""A lock tells that its machine is dead, and of a living one it never does."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sojourn.clouds.k8s.on_machine import locks
from sojourn.clouds.k8s.on_machine.locks import Locks
from tests.support.waiting import until

_HOLD = """
import sys
from pathlib import Path
from sojourn.clouds.k8s.on_machine.locks import Locks
held = Locks(Path(sys.argv[1]))
held.take(sys.argv[2])
print("on", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def own(tmp_path: Path) -> Locks:
    made = Locks(tmp_path / "locks")
    made.take("own")
    return made


def test_a_machine_is_dead_when_its_process_is(own: Locks, tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path / "locks"), "other"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"on\n"
    assert "other" not in own
    other.kill()
    other.communicate()
    assert "other" in own


def test_what_is_not_known_is_not_dead(own: Locks, tmp_path: Path) -> None:
    (tmp_path / "outside").touch()
    (tmp_path / "locks" / "link").symlink_to(tmp_path / "outside")
    for name in ("own", "absent", "../outside", "..", "", "link", 7):
        assert name not in own
    assert "own" not in Locks(tmp_path / "locks")  # which has none itself


def test_whoever_looks_does_not_keep_a_machine_from_its_lock(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    with open(folder / "own", "w") as looking:
        fcntl.flock(looking, fcntl.LOCK_EX)
        made = Locks(folder)
        taking = threading.Thread(target=made.take, args=("own",))
        taking.start()
        until(lambda: made._own >= 0)
    taking.join()
    other = Locks(folder)
    other.take("other")
    assert "own" not in other


@pytest.mark.parametrize(
    ("line", "shared"),
    [
        ("server:/x {at} nfs4 rw,vers=4.2,local_lock=none 0 0", True),
        ("server:/x {at} nfs rw,vers=3,nolock,local_lock=all 0 0", False),
        ("//server/x {at} cifs rw,nobrl 0 0", False),
        ("s3 {at} fuse.s3fs rw 0 0", False),
        ("x {at} 9p rw 0 0", False),
        ("/dev/sdb {at} ext4 rw 0 0", True),
        ("/dev/sdb {at}-not ext4 rw 0 0", False),
    ],
)
def test_locks_count_where_others_see_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, shared: bool
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"x / fuse rw 0 0\n{line.format(at=tmp_path)}\n")
    real = open

    def opened(path: str, **more: str) -> object:
        return real(mounts if path == "/proc/self/mounts" else path, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(locks, "open", opened, raising=False)
    assert locks._are_shared(tmp_path / "a") is shared


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    made = Locks(tmp_path)
    made.take("own")
    (tmp_path / "other").touch()
    assert "other" not in made

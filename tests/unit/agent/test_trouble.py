"""Stores and disks that fail for a while, or for good."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sojourn.core.report import Outcome
from tests.support.waiting import until
from tests.unit.agent.world import World


@contextmanager
def _away(world: World) -> Iterator[None]:
    """The store cannot be reached."""
    hidden = world.folder / "hidden"
    world.store_folder.rename(hidden)
    world.store_folder.write_text("no folder")
    try:
        yield
    finally:
        world.store_folder.unlink()
        hidden.rename(world.store_folder)


def test_a_store_out_of_reach_does_not_disturb_the_script(world: World) -> None:
    world.task("for i in $(seq 30); do echo $i; echo $i >> file; sleep 0.1; done")
    world.follow()
    agent = world.agent(ttl=4.0, snapshot_every=0.2)
    until(lambda: "3\n" in world.printed())
    with _away(world):
        time.sleep(2)
        said = agent.said
    assert agent.wait() == 0
    expected = "".join(f"{number}\n" for number in range(1, 31))
    assert world.printed() == expected
    assert world.files()["file"].decode() == expected
    (report,) = world.reports()
    assert report.outcome is Outcome.SUCCEEDED
    assert "in the store" in said
    assert len(said.splitlines()) < 40, "it asked again and again"


def test_a_store_out_of_reach_at_the_end(world: World) -> None:
    # More output than the log keeps in memory, so that the rest waits in the pipe.
    world.task("echo started; sleep 1; seq -w 1500000; touch file")
    world.follow()
    agent = world.agent()
    until(lambda: "started" in world.printed())
    with _away(world):
        time.sleep(3)
    assert agent.wait() == 0
    lines = world.raw()
    assert len(lines) == 1_500_001
    assert lines[-1] == b"1500000"
    assert "file" in world.files()


def test_results_wait_for_a_store_that_is_out_of_reach(world: World) -> None:
    world.task("echo started; sleep 0.5; echo last; touch file")
    world.follow()
    agent = world.agent()
    until(lambda: "started" in world.printed())
    with _away(world):
        time.sleep(2.5)
    assert agent.wait() == 0
    assert world.printed() == "started\nlast\n"
    assert "file" in world.files()


def test_a_store_out_of_reach_at_the_beginning(world: World) -> None:
    world.task("true")
    with _away(world):
        agent = world.agent()
        assert agent.wait() == 70
    assert "There is no store" in agent.said


def test_a_damaged_workdir_is_told_and_not_tried_again(world: World) -> None:
    world.task("true", {"a": "content"})
    (found,) = world.store.list("workdir/objects")
    path = world.store_folder / found.path
    path.write_bytes(b"x" * found.size)
    assert world.agent().wait() == 0
    (report,) = world.reports()
    assert report.outcome is Outcome.FAILED
    assert report.reason.startswith("the machine could not be prepared: ")


def test_a_machine_without_a_disk(world: World) -> None:
    world.task("true")
    (world.folder / "file").touch()
    assert world.agent(folder=world.folder / "file").wait() == 0
    (report,) = world.reports()
    assert report.outcome is Outcome.FAILED
    assert report.reason.startswith("the machine could not be prepared: ")
    assert "Not a directory" in report.reason


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_machine_whose_disk_is_too_small(world: World, tiny_disk: Path) -> None:
    world.task("true", {"large": os.urandom(8 << 20)})
    assert world.agent(folder=tiny_disk / "machine").wait() == 0
    (report,) = world.reports()
    assert report.outcome is Outcome.FAILED
    assert report.reason.startswith("the machine could not be prepared: ")
    assert "o space" in report.reason
    assert "\n" not in report.reason, "it stands in tables"


def test_a_script_that_fills_the_disk(world: World, tiny_disk: Path) -> None:
    world.task("echo some > some; head -c 8000000 /dev/zero > large; echo $?; rm large")
    assert world.agent(folder=tiny_disk / "machine").wait() == 0
    assert "No space left" in world.printed()
    assert world.files() == {"some": b"some\n"}

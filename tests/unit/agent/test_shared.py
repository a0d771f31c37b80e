"""Files that the agent and the script both have: the script cannot lead the agent elsewhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sojourn.agent.disk import remove_tree
from sojourn.agent.given import put_into, stage
from sojourn.agent.neighbour import Neighbour, _give, _open_to_all
from sojourn.agent.shared import Shared
from sojourn.agent.workloads.marking import Marking
from sojourn.storage.gangs import Mark
from tests.support.deep import exchange, make_deep, removed
from tests.unit.agent.workloads.test_runner import _Machine

NAMES = ("state", "want", "stored", "mark", "metric", "hide", "now", "busy", "f", "program")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a secret at each name that is written or read."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text("7 secret")
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture
def untouched(outside: Path) -> Callable[[], bool]:
    before = contents(outside), {path: path.stat() for path in (outside, *outside.iterdir())}

    def check() -> bool:
        now = {path: path.stat() for path in (outside, *outside.iterdir())}
        owners = [(p.st_mode, p.st_uid, p.st_mtime_ns) for p in now.values()]
        return (contents(outside), now.keys()) == (before[0], before[1].keys()) and owners == [
            (p.st_mode, p.st_uid, p.st_mtime_ns) for p in before[1].values()
        ]

    return check


def test_what_is_written_is_there_at_once_and_whole(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    shared.make("a/b")
    shared.write("a/b/f", b"one", 0o640)
    shared.write("a/b/f", b"two")
    assert shared.read("a/b/f") == b"two"
    assert shared.read("a/b/f", 2) == b"tw"
    assert (tmp_path / "a/b/f").stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path / "a/b") == ["f"]
    shared.remove("a/b/f")
    shared.remove("a/b/f")
    assert not shared.has("a/b/f")
    assert shared.has("a/b")


@pytest.mark.parametrize("what", ["file", "folder", "root"])
def test_no_symlink_is_followed(
    tmp_path: Path, outside: Path, untouched: Callable[[], bool], what: str
) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d/f").write_text("mine")
    if what == "file":
        (root / "d/f").unlink()
        (root / "d/f").symlink_to(outside / "f")
    else:
        exchange({"folder": root / "d", "root": root}[what], outside)
    shared = Shared(root)
    with pytest.raises(OSError):  # noqa: PT011
        shared.read("d/f")
    if what == "file":
        shared.write("d/f", b"x")
        assert (root / "d/f").read_bytes() == b"x"
    else:
        with pytest.raises(OSError):  # noqa: PT011
            shared.write("d/f", b"x")
        with pytest.raises(OSError):  # noqa: PT011
            shared.make("d/e", 0o777)
        shared.remove("d/f")
    assert untouched()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    with pytest.raises(FileNotFoundError):
        Shared(tmp_path).read("f")
    Shared(tmp_path).write("f", b"x")
    assert (tmp_path / "f").read_bytes() == b"x"


class _Snapshots:
    kept: frozenset[int] = frozenset()

    def mark(self) -> int:
        raise AssertionError("a step that is elsewhere was marked")


def test_the_folder_of_marks_can_become_a_symlink(
    tmp_path: Path, outside: Path, untouched: Callable[[], bool]
) -> None:
    made: dict[str, object] = {"rounds": None, "number": 1, "rank": 0, "alone": False}
    (outside / "want").write_text("7")
    before = contents(outside)
    folder = tmp_path / "machine" / "gang"
    folder.mkdir(parents=True)
    marking = Marking(folder=folder, snapshots=_Snapshots(), **made)  # type: ignore[arg-type]
    exchange(folder, outside)
    marking.look()
    with pytest.raises(OSError):  # noqa: PT011
        marking.begin(Mark("s", 1))
    with pytest.raises(OSError):  # noqa: PT011
        marking._tell(3)
    assert contents(outside) == before
    assert outside.stat().st_mode & 0o777 != 0o777


@pytest.mark.parametrize("which", ["state", "jobs"])
def test_a_job_can_make_links_of_the_folders_of_a_runner(
    tmp_path: Path, outside: Path, untouched: Callable[[], bool], which: str
) -> None:
    machine = _Machine(tmp_path)
    machine.prepare()
    (machine.workdir / "jobs").mkdir()
    for name in ("want-program", "running", "ends-when-asked"):
        machine.tells(name)
    exchange(machine.workdir / which, outside)
    (machine.workdir / "busy").symlink_to(outside / "new")
    machine.life._serve()
    machine.life._tell("hidden", "x")
    machine.life._tell("program", "x")
    assert machine.life._told() is None
    machine.life.end()
    machine.prepare()
    assert untouched()


def test_given_files_do_not_go_through_links(
    tmp_path: Path, outside: Path, untouched: Callable[[], bool]
) -> None:
    workdir = tmp_path / "machine" / "workdir"
    workdir.mkdir(parents=True)
    (workdir / "d").symlink_to(outside)
    with pytest.raises(OSError):  # noqa: PT011
        put_into(workdir, {"d/f": "x"})
    (workdir.parent / "files").symlink_to(outside)
    stage(workdir.parent, {"/f": "x"})
    assert (workdir.parent / "files/f").read_text() == "x"
    assert untouched()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away: run the tests as root")
@pytest.mark.parametrize("give", ["away", "to all"])
def test_nothing_elsewhere_is_given_to_the_user_of_the_script(
    tmp_path: Path,
    outside: Path,
    untouched: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    give: str,
) -> None:
    request.addfinalizer(removed(tmp_path / "machine"))
    workdir = tmp_path / "machine" / "workdir"
    (workdir / "a").mkdir(parents=True)
    (workdir / "link").symlink_to(outside / "f")
    make_deep(workdir, 300)
    real = os.scandir

    def scandir(folder: int) -> object:
        found = sorted(real(folder), key=lambda item: item.name)
        if not (workdir / "a").is_symlink():
            exchange(workdir / "a", outside)
        return found

    monkeypatch.setattr(os, "scandir", scandir)
    if give == "away":
        _give(workdir.parent, workdir, (12345, 12345))
        assert (workdir / "d/d/d/f").stat().st_uid == 12345
    else:
        _open_to_all(workdir)
        assert (workdir / "d/d/d/f").stat().st_mode & 0o777 == 0o666
    monkeypatch.undo()
    assert untouched()


def test_a_link_that_appears_where_a_folder_is_removed_is_not_followed(
    tmp_path: Path, untouched: Callable[[], bool], outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone/a").mkdir(parents=True)
    real = os.scandir

    def scandir(folder: int) -> object:
        found = list(real(folder))
        if (tmp_path / "gone/a").is_dir() and not (tmp_path / "gone/a").is_symlink():
            exchange(tmp_path / "gone/a", outside)
        return _Listed(found)

    monkeypatch.setattr(os, "scandir", scandir)
    remove_tree(tmp_path / "gone")
    assert untouched()
    assert not (tmp_path / "gone").exists()


class _Listed(list[object]):
    def __enter__(self) -> _Listed:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("what", ["folder", "control", "output", "printed", "status", "ready"])
def test_pipes_are_not_made_or_opened_through_links(
    tmp_path: Path, outside: Path, untouched: Callable[[], bool], what: str
) -> None:
    """As an image could leave them there whose shell runs beside the agent."""
    run = tmp_path / "machine" / "run"
    run.mkdir(parents=True)
    if what == "folder":
        exchange(run, outside)
        with pytest.raises(OSError):  # noqa: PT011
            Neighbour(run.parent).prepare()
    else:
        (run / what).symlink_to(outside / "f")
        Neighbour(run.parent).prepare()
        assert (run / what).is_fifo()
        assert not (run / what).is_symlink()
    assert untouched()


def test_pipes_become_no_links_while_they_are_made(
    tmp_path: Path, outside: Path, untouched: Callable[[], bool]
) -> None:
    run = tmp_path / "machine" / "run"
    run.mkdir(parents=True)
    over = threading.Event()

    def race() -> None:
        while not over.is_set():
            for name in ("control", "status", "output", "printed"):
                with suppress(OSError):
                    (run / "link").symlink_to(outside / "f")
                    (run / "link").rename(run / name)

    racing = threading.Thread(target=race)
    racing.start()
    try:
        for _ in range(200):
            with suppress(OSError):
                Neighbour(run.parent).prepare()
    finally:
        over.set()
        racing.join()
    assert untouched()

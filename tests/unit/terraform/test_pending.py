from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import Cancelled
from sojourn.core.events import Event, Note
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from sojourn.terraform import pending
from sojourn.terraform.plugin.diagnostics import Failure
from tests.support.waiting import until

_SOURCE = os.path.abspath(Path(pending.__file__).parents[2])  # whatever folder we are in
_TASK = Task(script="#!/bin/sh\ntrue", environment={"TOKEN": "s3cret"})
_NAMED = Task(script="#!/bin/sh\ntrue", name="named")

# Another provider, in the middle of a creation; ends it when its standard input does.
_OTHER = """
import sys
from sojourn.core.context import Context
from sojourn.core.task import Task
from sojourn.terraform import pending
task = Task(script="#!/bin/sh\\ntrue", environment={"TOKEN": "other"}, name=sys.argv[1])
with pending.creation(Context(), task) as (id, resumed):
    print(id, flush=True)
    sys.stdin.read()
print("made", flush=True)
sys.stdin.close()
import time
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the notes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield tmp_path / "state" / "sojourn" / "terraform"
    pending.settle()


class Other:
    """Another process that creates the same task."""

    def __init__(self, name: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _OTHER, name],
            env={**os.environ, "PYTHONPATH": _SOURCE},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout
        self.id = self._process.stdout.readline().strip()

    def make(self) -> None:
        """Let it come to the end of its creation."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        assert self._process.stdout.readline() == "made\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()


@pytest.fixture
def other(notes: Path) -> Iterator[Other]:
    made = Other()
    yield made
    made.kill()


@pytest.fixture
def namesake(notes: Path) -> Iterator[Other]:
    made = Other("named")
    yield made
    made.kill()


def _created(task: Task = _TASK) -> tuple[str, bool]:
    with pending.creation(Context(), task) as (own, resumed):
        return str(own), resumed


def _broken_off() -> list[str]:
    return [own for own, _, _ in pending.broken_off()]


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.exists() else []


class TestNote:
    def test_is_there_while_a_task_is_created_and_until_all_is_settled(self, notes: Path) -> None:
        with pending.creation(Context(), _TASK) as (own, resumed):
            assert not resumed
            assert _names(notes) == [f"{own}.json"]
            assert _broken_off() == []
        assert _names(notes) == [f"{own}.made"]
        assert _broken_off() == []
        pending.settle()
        assert not notes.exists()

    def test_tells_nothing_of_the_task(self, notes: Path) -> None:
        with pending.creation(Context(), _TASK) as (own, _):
            path = notes / f"{own}.json"
            assert "s3cret" not in path.read_text()
            assert "TOKEN" not in path.read_text()
            assert path.stat().st_mode & 0o777 == 0o600
        assert notes.stat().st_mode & 0o777 == 0o700

    def test_goes_with_a_failure_that_left_nothing(self, notes: Path) -> None:
        with pytest.raises(Failure), pending.creation(Context(), _TASK):
            raise Failure([])
        assert not notes.exists()

    def test_stays_with_a_failure_that_left_something(self, notes: Path) -> None:
        with pytest.raises(Failure), pending.creation(Context(), _TASK) as (own, _):
            raise Failure([], {"id": str(own)})
        assert _names(notes) == [f"{own}.made"]

    def test_stays_after_a_defect(self, notes: Path) -> None:
        with pytest.raises(ZeroDivisionError), pending.creation(Context(), _TASK) as (own, _):
            raise ZeroDivisionError
        assert _broken_off() == [str(own)]
        assert _created() == (str(own), True)

    def test_is_kept_elsewhere_without_the_variable(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        own, _ = _created()
        assert (tmp_path / f".local/state/sojourn/terraform/{own}.made").exists()


class TestOfAnotherProcess:
    def test_that_lives_it_is_left_alone(self, other: Other, notes: Path) -> None:
        assert _broken_off() == []
        pending.forget(other.id)
        own, resumed = _created()
        assert own != other.id
        assert not resumed
        assert _names(notes) == sorted([f"{other.id}.json", f"{own}.made"])

    def test_that_was_killed_it_is_told_of_and_taken_over(self, other: Other, notes: Path) -> None:
        other.kill()
        [(own, note, made)] = pending.broken_off()
        assert (own, note.cloud, note.folder) == (other.id, "local", os.getcwd())
        assert not made
        assert _created() == (other.id, True)
        assert _names(notes) == [f"{other.id}.made"]
        assert _created() != (other.id, True)

    def test_that_was_killed_after_it_made_it(self, other: Other) -> None:
        other.make()
        assert _broken_off() == []
        other.kill()
        [(own, _, made)] = pending.broken_off()
        assert (own, made) == (other.id, True)
        assert _created() == (other.id, True)

    @pytest.mark.parametrize("made", [False, True], ids=["half made", "made"])
    def test_that_was_killed_it_is_forgotten(self, other: Other, notes: Path, made: bool) -> None:
        if made:
            other.make()
        other.kill()
        pending.forget(other.id)
        assert not notes.exists()
        assert _created() != (other.id, True)

    def test_of_another_task_it_is_not_taken_over(self, other: Other) -> None:
        other.kill()
        own, resumed = _created(Task(script="#!/bin/sh\nfalse"))
        assert not resumed
        assert own != other.id
        assert _broken_off() == [other.id]

    def test_of_another_folder_it_is_not_taken_over(
        self, other: Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other.kill()
        monkeypatch.chdir(tmp_path)
        assert _created()[0] != other.id
        assert _broken_off() == [other.id]

    @pytest.mark.parametrize("how", ["TF_WORKSPACE", ".terraform", "TF_DATA_DIR"])
    def test_of_another_workspace_it_is_not_taken_over(
        self, other: Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        """Its state may have the task: two states would lead one."""
        other.make()
        other.kill()
        if how == "TF_WORKSPACE":
            monkeypatch.setenv(how, "another")
        else:
            data = Path(".terraform") if how == ".terraform" else tmp_path / "data"
            data.mkdir()
            (data / "environment").write_text("another")
            monkeypatch.setenv("TF_DATA_DIR", str(data) if how == "TF_DATA_DIR" else "")
        assert _created()[0] != other.id
        assert _broken_off() == [other.id]

    def test_of_the_same_workspace_however_it_is_called_it_is_taken_over(
        self, other: Other
    ) -> None:
        other.kill()
        Path(".terraform").mkdir()
        Path(".terraform/environment").write_text("default")
        assert _created() == (other.id, True)

    def test_many_creations_at_once_take_it_over_once(self, other: Other) -> None:
        other.kill()
        made: list[tuple[str, bool]] = []
        threads = [threading.Thread(target=lambda: made.append(_created())) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({own for own, _ in made}) == 20
        assert [own for own, resumed in made if resumed] == [other.id]


class TestName:
    def test_of_a_creation_under_way_makes_the_next_one_wait(self, namesake: Other) -> None:
        told: list[Event] = []
        created: list[tuple[str, bool]] = []

        def create() -> None:
            task = Task(script="#!/bin/sh\nfalse", name="named")
            with pending.creation(Context(told.append), task) as (own, resumed):
                created.append((str(own), resumed))

        thread = threading.Thread(target=create)
        thread.start()
        until(lambda: told)
        waiting = f"Waiting for another apply that is creating or deleting {namesake.id}"
        assert told == [Note(waiting)]
        assert created == []
        namesake.make()
        thread.join(30)
        assert created == [(namesake.id, False)]

    def test_of_a_creation_under_way_can_be_given_up(self, namesake: Other) -> None:
        ctx = Context()
        ctx.cancel()
        with pytest.raises(Cancelled), pending.creation(ctx, Task("#!/bin/sh", name="named")):
            pass

    def test_of_another_task_that_was_broken_off_keeps_the_note_on_it(
        self, namesake: Other, notes: Path
    ) -> None:
        namesake.kill()
        [before] = pending.broken_off()
        task = Task(script="#!/bin/sh\nfalse", name="named")
        with pytest.raises(Failure), pending.creation(Context(), task) as begun:
            raise Failure([])
        assert (str(begun[0]), begun[1]) == (namesake.id, False)
        assert list(pending.broken_off()) == [before]

    def test_of_a_note_that_was_replaced(self, notes: Path) -> None:
        """Two resources of one name: the note of the second stands for both."""
        own, _ = _created(_NAMED)
        assert _created(_NAMED) == (own, False)
        assert _names(notes) == [f"{own}.made"]
        pending.settle()
        assert not notes.exists()


class TestRemoval:
    def test_leaves_no_note(self, notes: Path) -> None:
        own, _ = _created()
        pending.settle()
        with pending.removal(Context(), own) as wanted:
            assert wanted
            assert _broken_off() == []
        assert not notes.exists()

    def test_of_what_was_made_by_the_same_process_is_not_wanted(self, notes: Path) -> None:
        own, _ = _created(_NAMED)
        with pending.removal(Context(), own) as wanted:
            assert not wanted
        assert _names(notes) == [f"{own}.made"]

    def test_waits_for_a_creation(self, namesake: Other) -> None:
        told: list[Event] = []
        removed: list[bool] = []

        def remove() -> None:
            with pending.removal(Context(told.append), namesake.id) as wanted:
                removed.append(wanted)

        thread = threading.Thread(target=remove)
        thread.start()
        until(lambda: told)
        assert removed == []
        namesake.make()
        thread.join(30)
        assert removed == [True]

    def test_makes_a_creation_wait(self) -> None:
        created: list[tuple[str, bool]] = []
        own = str(TaskId.deterministic("named"))
        thread = threading.Thread(target=lambda: created.append(_created(_NAMED)))
        with pending.removal(Context(), own):
            thread.start()
            thread.join(0.3)
            assert created == []
        thread.join(30)
        assert created == [(own, False)]

    def test_that_was_killed_leaves_nothing_to_tell_of(self, notes: Path) -> None:
        notes.mkdir(parents=True)
        (notes / f"{TaskId.random()}.json").touch()
        assert _broken_off() == []
        assert not notes.exists()


class TestDamage:
    @pytest.mark.parametrize("content", ["", "{", "[]", '{"cloud": "local"}', "null", '"x"'])
    def test_a_note_that_cannot_be_read_is_nobodys(self, notes: Path, content: str) -> None:
        own = str(TaskId.deterministic("named"))
        notes.mkdir(parents=True)
        (notes / f"{own}.json").write_text(content)
        assert _created(_NAMED) == (own, False)
        (notes / f"{own}.json").write_text(content)
        assert _broken_off() == []
        assert _names(notes) == [f"{own}.made"]

    def test_files_of_others_are_not_looked_at(self, notes: Path, other: Other) -> None:
        other.kill()
        note = (notes / f"{other.id}.json").rename(notes / "something.json")
        assert _broken_off() == []
        assert _created()[0] != other.id
        assert note.exists()

    def test_a_folder_that_cannot_be_used_stops_creations_only(self, notes: Path) -> None:
        notes.parent.mkdir(parents=True)
        notes.touch()
        assert _broken_off() == []
        pending.forget(str(TaskId.random()))
        with pending.removal(Context(), str(TaskId.random())) as wanted:
            assert wanted
        with pytest.raises(OSError, match="exists"):
            _created()

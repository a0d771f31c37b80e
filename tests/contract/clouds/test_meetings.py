"""Commands that meet each other, clouds that fail for good, and what is told of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import sojourn
from sojourn import State, clouds
from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, Conflict, NotFound, Transient
from sojourn.core.events import Note, StatusChanged, StepStarted, Warned
from sojourn.core.ids import TaskId
from sojourn.engine import observe
from tests.contract.clouds.faults import Faults, failing
from tests.contract.clouds.lab import WAITING, Lab, log_of
from tests.support.waiting import patience, until


class _Blind(Faults):
    """A cloud that has nothing yet at the moment of the look."""

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        return False if method.__name__ == "read" else super().call(method, *args, **more)


def test_who_finds_another_task_of_the_name_after_the_look_removes_nothing_of_it(lab: Lab) -> None:
    handle = lab.create(WAITING, name="race")
    until(lambda: log_of(handle) == ["up"])
    with failing(_Blind()), pytest.raises(Conflict):
        lab.create("echo something else", name="race")
    assert handle.status().state is State.RUNNING
    assert [rank.attempt for rank in handle.status().ranks] == [1]
    handle.delete()
    assert lab.output() == {"attempts": "1\n"}


class _Abreast(Faults):
    """Two look at the same time: neither makes anything before both have looked."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 2
        self._barrier = threading.Barrier(2)

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if method.__name__ == "create" and self._left > 0:
            self._left -= 1
            self._barrier.wait(patience(30))
        return super().call(method, *args, **more)


def test_of_two_that_race_for_a_name_one_wins_and_goes_on(lab: Lab) -> None:
    faults = _Abreast()

    def create(said: str) -> list[str]:
        try:
            lab.create(f"echo {said}; sleep 300", name="race")
        except Conflict:
            return []
        return [said]

    with failing(faults), ThreadPoolExecutor(2) as pool:
        one, two = pool.map(create, ["one", "two"])
    won = one + two
    assert len(won) == 1
    handle = sojourn.get("race")
    until(lambda: log_of(handle) == won)
    assert handle.status().state is State.RUNNING
    handle.delete()


def test_who_breaks_off_after_another_joined_leaves_the_task_to_it(lab: Lab) -> None:
    joined = []

    def on_event(event: object) -> None:
        if isinstance(event, StepStarted) and event.step == "Uploading workdir":
            joined.append(lab.create(WAITING, name="both"))
            ctx.cancel()

    ctx = Context(on_event)
    with pytest.raises(Cancelled, match="Another command may be creating the same task") as caught:
        sojourn.create(lab.task(WAITING, name="both"), ctx=ctx)
    assert "nothing was left" not in str(caught.value)
    [handle] = joined
    until(lambda: log_of(handle) == ["up"])
    assert handle.status().state is State.RUNNING
    handle.delete()


def test_what_is_deleted_while_it_is_created_is_gone_and_its_creator_is_told(lab: Lab) -> None:
    def on_event(event: object) -> None:
        if isinstance(event, StepStarted) and event.step == "Uploading workdir":
            sojourn.get("short-lived").delete()

    with pytest.raises(Conflict, match="was deleted during its creation"):
        sojourn.create(lab.task(WAITING, name="short-lived"), on_event=on_event)
    assert sojourn.list_tasks() == []


def _is_scaler(method: Any) -> bool:
    return hasattr(method.__self__, "fleet")


class _Stuck(Faults):
    """Machines start, but nobody learns of it, and their scaler cannot be removed."""

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if method.__name__ == "delete" and _is_scaler(method):
            raise Transient("it cannot be removed")
        result = method(*args, **more)
        if method.__name__ == "scale":
            raise Transient("the answer was lost")
        return result


def test_what_a_failed_creation_could_not_remove_is_found_again(lab: Lab) -> None:
    with failing(_Stuck()), pytest.raises(Transient, match="Could not remove") as caught:
        lab.create(WAITING, name="stuck")
    [left] = sojourn.list_tasks()
    assert f"sojourn delete {left.id}" in caught.value.hint
    assert left.task().name == "stuck"
    sojourn.get(left.id).delete()


class _InTheWay(Faults):
    """A name that somebody else has, of something that is made after the store."""

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if method.__name__ == "create" and _is_scaler(method):
            raise Conflict("somebody else has the name")
        return method(*args, **more)


def test_a_name_that_is_taken_only_in_part_leaves_nothing(lab: Lab) -> None:
    with failing(_InTheWay()), pytest.raises(Conflict, match="somebody else has the name"):
        lab.create(WAITING)
    assert sojourn.list_tasks() == []


def test_a_machine_that_came_to_nothing_is_wanted_again(lab: Lab) -> None:
    handle = lab.create(WAITING, parallelism=2)
    until(lambda: log_of(handle) == ["up", "up"])
    scaler = clouds.load(handle.cloud).scaler(TaskId.parse(handle.id))
    scaler.scale(Context(), 1)
    until(lambda: len(handle.machines()) == 1)
    handle.start()
    until(lambda: len(handle.machines()) == 2)
    handle.delete()


class _Meanwhile(Faults):
    """Something happens while results come home."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        result = method(*args, **more)
        if method.__name__ == "pull":
            self._happens()
        return result


def test_what_is_started_again_while_results_come_home_stays(lab: Lab) -> None:
    handle = lab.create(WAITING)
    until(lambda: log_of(handle) == ["up"])
    with failing(_Meanwhile(handle.start)), pytest.raises(Conflict, match="started again"):
        sojourn.get(handle.id).delete()
    until(lambda: log_of(handle) == ["up", "up"])
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n"}


class _Before(Faults):
    """Something happens right before a command makes its first call of this name."""

    def __init__(self, name: str, happens: Callable[[], object]) -> None:
        super().__init__()
        self._name = name
        self._happens = happens

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if method.__name__ == self._name and not self.calls:
            self.calls += 1
            self._happens()
        return method(*args, **more)


_DONE = "mkdir output; echo done > output/it"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("call", ["load", "fleet", "pull", "records", "delete"])
def test_what_another_command_deletes_meanwhile_is_deleted(
    lab: Lab, call: str, force: bool
) -> None:
    handle = lab.create(_DONE)
    until(lambda: handle.status().state is State.SUCCEEDED)
    faults = _Before(call, handle.delete)
    told: list[Any] = []
    with failing(faults):
        sojourn.get(handle.id, on_event=told.append).delete(force=force)
    assert faults.calls
    assert [event for event in told if isinstance(event, Warned)] == []
    assert lab.output() == {"it": "done\n"}
    assert sojourn.list_tasks() == []


class _Together(Faults):
    """Two commands begin with a call of this name at the same time."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._barrier = threading.Barrier(2)
        self._met: set[int] = set()

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        thread = threading.get_ident()
        if method.__name__ == self._name and thread not in self._met and len(self._met) < 2:
            self._met.add(thread)
            self._barrier.wait(patience(60))
        return method(*args, **more)


@pytest.mark.parametrize("call", ["pull", "delete"])
def test_two_that_delete_a_task_at_the_same_time_both_succeed(lab: Lab, call: str) -> None:
    handle = lab.create(_DONE)
    until(lambda: handle.status().state is State.SUCCEEDED)
    with failing(_Together(call)), ThreadPoolExecutor(2) as pool:
        both = [pool.submit(sojourn.get(handle.id).delete) for _ in range(2)]
    assert [one.result() for one in both] == [None, None]
    assert lab.output() == {"it": "done\n"}
    assert sojourn.list_tasks() == []


def test_stop_and_delete_at_the_same_time_both_succeed(lab: Lab) -> None:
    handle = lab.create(WAITING)
    until(lambda: log_of(handle) == ["up"])
    with failing(_Together("scale")), ThreadPoolExecutor(2) as pool:
        deleted = pool.submit(sojourn.get(handle.id).delete)
        stopped = pool.submit(sojourn.get(handle.id).stop)
    assert (deleted.result(), stopped.result()) == (None, None)
    assert lab.output() == {"attempts": "1\n"}
    assert sojourn.list_tasks() == []


@pytest.mark.parametrize("call", ["read", "load", "records"])
def test_gc_passes_over_what_another_command_deletes_meanwhile(lab: Lab, call: str) -> None:
    """Whichever of its calls comes too late."""
    handle = lab.create(_DONE)
    until(lambda: [each.id for each, _ in sojourn.gc()] == [handle.id])
    faults = _Before(call, handle.delete)
    with failing(faults):
        sojourn.gc()
    assert faults.calls
    assert sojourn.gc() == []
    assert lab.output() == {"it": "done\n"}
    assert sojourn.list_tasks() == []


@pytest.mark.parametrize(("verb", "call"), [("pull", "load"), ("pull", "pull"), ("stop", "fleet")])
def test_who_pulls_or_stops_what_another_command_deletes_is_told(
    lab: Lab, verb: str, call: str
) -> None:
    handle = lab.create(_DONE)
    until(lambda: handle.status().state is State.SUCCEEDED)
    faults = _Before(call, handle.delete)
    with failing(faults):
        victim = sojourn.get(handle.id)
        if verb == "stop":
            victim.stop()  # its machines are gone
        else:
            with pytest.raises(NotFound, match="was deleted by another command"):
                victim.pull()
    assert faults.calls
    assert sojourn.list_tasks() == []


def test_that_a_machine_ended_without_a_word_is_told(lab: Lab) -> None:
    handle = lab.create(WAITING)
    until(lambda: log_of(handle) == ["up"])
    lab.kit.lose_scaler(handle)
    lab.kit.lose_agent(handle, 0)
    handle.delete()
    told = [event.message for event in lab.events if isinstance(event, Warned)]
    assert any("was lost: results after its last snapshot" in each for each in told), told


class _Away(Faults):
    """A store that is out of reach for a few looks."""

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        self.calls += method.__name__ == "records"
        if method.__name__ == "records" and self.calls in (2, 3):
            raise Transient("the store is out of reach")
        return method(*args, **more)


def test_following_goes_on_after_an_outage(lab: Lab) -> None:
    handle = lab.create("for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done")
    faults = _Away()
    told: list[Any] = []
    with failing(faults):
        follower = sojourn.get(handle.id, on_event=told.append)
        assert [line.text for line in follower.logs(follow=True)] == list("123456")
    assert faults.calls > 3
    assert len([event for event in told if isinstance(event, Warned)]) == 1
    assert len([event for event in told if isinstance(event, Note)]) == 1
    handle.delete()


def test_whoever_follows_a_task_learns_that_another_command_deleted_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Until it is gone it is stopped, and on a busy computer for longer than a follower waits.
    monkeypatch.setattr(observe, "_STOPPED_FOR", 3600.0)
    handle = lab.create(WAITING)
    lines = sojourn.get(handle.id).logs(follow=True)
    assert next(lines).text == "up"
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(list, lines)
        sojourn.get(handle.id).delete()
        with pytest.raises(NotFound, match=f"Task {handle.id} was deleted by another command"):
            rest.result()


def test_whoever_follows_a_task_learns_that_another_command_stopped_it(lab: Lab) -> None:
    handle = lab.create(WAITING)
    follower = sojourn.get(handle.id, on_event=lab.events.append)
    lines = follower.logs(follow=True)
    assert next(lines).text == "up"
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(list, lines)
        sojourn.get(handle.id).stop()
        assert rest.result() == []
    assert [event.state for event in lab.events if isinstance(event, StatusChanged)][-1] == (
        "stopped"
    )
    handle.delete()

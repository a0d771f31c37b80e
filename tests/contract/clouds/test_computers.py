"""One account, several computers: each takes care of its own tasks, and names those of others."""

from __future__ import annotations

from pathlib import Path

import pytest

import sojourn
from sojourn import api
from sojourn.core.errors import InvalidInput
from tests.contract.clouds.lab import Lab


def _move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, computer: str) -> None:
    monkeypatch.setenv("LOGNAME", computer)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / computer))


_RESULT = "mkdir -p output; echo $WHOSE > output/file"


def test_gc_takes_only_what_this_computer_created(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab.workdir)
    _move(tmp_path, monkeypatch, "ann")
    handle = lab.create(_RESULT, environment={"WHOSE": "ann"})
    handle.wait()
    _move(tmp_path, monkeypatch, "bob")
    assert sojourn.gc() == []
    ((_, found),) = api.garbage()
    (creator,) = found.creators
    assert (found.here, creator.partition("@")[0]) == (False, "ann")
    _move(tmp_path, monkeypatch, "ann")
    assert [handle.id for handle, _ in sojourn.gc()] == [handle.id]
    handle.delete()


def test_a_task_of_the_same_name_is_not_taken_for_the_former_one(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # beside the workdir: what a store says of it is not believed
    _move(tmp_path, monkeypatch, "bob")
    lab.create("true", name="train").wait()
    _move(tmp_path, monkeypatch, "ann")
    monkeypatch.chdir(lab.workdir)
    sojourn.get("train").delete()
    ann = lab.create(_RESULT, name="train", environment={"WHOSE": "ann"})
    ann.wait()
    _move(tmp_path, monkeypatch, "bob")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert sojourn.gc() == []
    with pytest.raises(InvalidInput, match="was not created on this computer"):
        sojourn.get("train").pull()
    assert lab.output() == {}
    _move(tmp_path, monkeypatch, "ann")
    ann.delete()
    assert lab.output() == {"file": "ann\n"}


def test_a_creation_that_was_repeated_here_belongs_here(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _move(tmp_path, monkeypatch, "ann")
    lab.create(_RESULT, name="train", environment={"WHOSE": "ann"})
    handle = lab.create(_RESULT, name="train", environment={"WHOSE": "ann"})
    handle.wait()
    assert [each.id for each, _ in sojourn.gc()] == [handle.id]
    handle.delete()

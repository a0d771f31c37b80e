"""Results come home, and nothing that is there is lost."""

from __future__ import annotations

import os
from pathlib import Path

import sojourn
from sojourn import State
from sojourn.core.events import Warned
from tests.contract.clouds.lab import Lab, log_of
from tests.support.waiting import until


def finished(lab: Lab, script: str) -> sojourn.Handle:
    handle = lab.create(script)
    assert handle.wait().status is State.SUCCEEDED
    return handle


def upload(lab: Lab, content: str = "pushed") -> Path:
    """A workdir with results of a former run."""
    (lab.workdir / "output").mkdir()
    model = lab.workdir / "output/model"
    model.write_text(content)
    return model


def warnings(lab: Lab) -> list[str]:
    return [event.message for event in lab.events if isinstance(event, Warned)]


def test_two_tasks_of_one_workdir_lose_nothing(lab: Lab) -> None:
    upload(lab)
    tasks = [finished(lab, f"printf {name} > output/model") for name in ("one", "two")]
    for task in tasks:
        task.pull()
    assert lab.output() == {"model": "two", "model.local": "one"}
    assert "output/model differs from the version uploaded with this task" in warnings(lab)[-1]
    for task in tasks:
        task.delete(fetch=False)


def test_deleting_what_has_ended_loses_nothing(lab: Lab) -> None:
    for name in ("one", "two", "three"):
        finished(lab, f"mkdir output; printf {name} > output/model; printf same > output/same")
    for handle, _ in sojourn.gc(on_event=lab.events.append):
        handle.delete()
    found = lab.output()
    assert found.pop("same") == "same"
    assert sorted(found) == ["model", "model.local", "model.local.2"]
    assert sorted(found.values()) == ["one", "three", "two"]
    assert len([message for message in warnings(lab) if "did not come from" in message]) == 2


def test_a_file_that_was_edited_since_the_upload_is_kept_whatever_its_time(lab: Lab) -> None:
    model = upload(lab)
    handle = finished(lab, "printf result > output/model")
    model.write_text("edited")
    os.utime(model, (1, 1))
    handle.delete()
    assert lab.output() == {"model": "result", "model.local": "edited"}
    assert "output/model differs" in warnings(lab)[-1]


def test_a_task_that_is_pulled_again_and_again_leaves_no_copies(lab: Lab) -> None:
    upload(lab)
    handle = lab.create("echo $SOJOURN_ATTEMPT > output/model; echo up; sleep 300")
    for attempt in (1, 2, 3):
        handle.start()
        until(lambda: len(log_of(handle)) == attempt)  # noqa: B023 -- called at once
        handle.stop()
        handle.pull()
        assert lab.output() == {"model": f"{attempt}\n"}
    handle.delete()
    assert lab.output() == {"model": "3\n"}
    assert not any("kept as" in message for message in warnings(lab))


def test_an_output_that_the_task_did_not_change_comes_home(lab: Lab, tmp_path: Path) -> None:
    upload(lab)
    handle = finished(lab, "true")
    assert not handle.left_nothing()
    assert handle.pull() == []
    assert handle.pull(tmp_path / "elsewhere") == ["output/model"]
    assert (tmp_path / "elsewhere/output/model").read_text() == "pushed"
    assert [handle.id for handle, _ in sojourn.gc()] == [handle.id]
    handle.delete()
    assert not any("nothing in" in message for message in warnings(lab))


def test_a_script_that_turns_its_output_into_a_symlink_reaches_nothing_else(lab: Lab) -> None:
    upload(lab)
    (lab.workdir / "train.py").write_text("mine")
    handle = finished(lab, "echo evil | tee train.py hook; rm -r output; ln -s . output")
    handle.delete()
    assert (lab.workdir / "train.py").read_text() == "mine"
    assert not (lab.workdir / "hook").exists()
    assert lab.output()["train.py"] == "evil\n"

"""Every verb, in every state, again and again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn
from sojourn import State
from sojourn.core.errors import Conflict, InvalidInput, NotFound, QuotaError, SojournError
from sojourn.core.events import Note, Warned
from sojourn.engine import lifecycle
from tests.contract.clouds.lab import WAITING, Lab, log_of
from tests.support.waiting import until


def test_create_twice_is_the_same_task(lab: Lab) -> None:
    one = lab.create(WAITING, name="twice")
    until(lambda: log_of(one) == ["up"])
    two = lab.create(WAITING, name="twice")
    assert one.id == two.id
    assert len(sojourn.list_tasks()) == 1
    assert len(two.machines()) == 1
    assert log_of(two) == ["up"]
    two.delete()


def test_another_task_of_the_same_name_is_refused(lab: Lab) -> None:
    handle = lab.create(WAITING, name="mine")
    with pytest.raises(Conflict):
        lab.create("echo something else", name="mine")
    assert handle.status().state in (State.QUEUED, State.PROVISIONING, State.RUNNING)
    handle.delete()


def test_delete_twice(lab: Lab) -> None:
    handle = lab.create("true")
    handle.delete()
    handle.delete()  # there is nothing to do, and nothing wrong
    with pytest.raises(NotFound):
        sojourn.get(handle.id)


def test_verbs_on_a_task_that_never_was(lab: Lab) -> None:
    handle = lab.create("true")
    handle.delete()
    for verb in (handle.status, handle.pull, handle.stop, handle.start, handle.wait):
        with pytest.raises(NotFound):
            verb()
    with pytest.raises(NotFound):
        list(handle.logs())


def test_stop_and_start(lab: Lab, tmp_path: Path) -> None:
    handle = lab.create(
        "mkdir -p output; echo $SOJOURN_ATTEMPT >> output/attempts; echo up\n"
        "test $SOJOURN_ATTEMPT = 2 || sleep 300"
    )
    until(lambda: log_of(handle) == ["up"])
    handle.stop()
    assert handle.status().state is State.STOPPED
    assert handle.machines() == []
    handle.stop()
    handle.pull()
    assert lab.output() == {"attempts": "1\n"}
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    handle.start()  # nothing is left to do
    assert handle.status().state is State.SUCCEEDED
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n"}


def test_pull_while_running(lab: Lab) -> None:
    handle = lab.create(
        "mkdir output; for i in 1 2 3; do echo $i > output/progress; sleep 300; done"
    )
    until(lambda: handle.pull() == ["output/progress"])
    assert lab.output() == {"progress": "1\n"}
    assert handle.pull() == []
    assert handle.status().state is State.RUNNING
    handle.delete()


def test_delete_while_running_brings_the_last_state_home(lab: Lab) -> None:
    handle = lab.create("mkdir output; echo first > output/file; echo up; sleep 300")
    until(lambda: log_of(handle) == ["up"])
    handle.delete()
    assert lab.output() == {"file": "first\n"}


def test_delete_right_after_the_loss_of_the_scaler_waits_for_the_last_words(lab: Lab) -> None:
    script = """
    mkdir output
    trap 'sleep 1; echo saved > output/checkpoint; exit 0' TERM
    echo ready
    while true; do sleep 0.05; done 2> /dev/null
    """
    handle = lab.create(script)
    until(lambda: log_of(handle) == ["ready"])
    lost = lab.kit.lose_scaler(handle)
    handle.delete()
    if not lost:
        pytest.skip("the scaler of this cloud cannot die")
    assert lab.output() == {"checkpoint": "saved\n"}


def test_starting_again_and_again_disturbs_nothing(lab: Lab) -> None:
    # A rank with much to clean up has ended for a while before its machine is gone: it must not
    # be counted twice, or another rank's machine is taken away.
    script = """
    echo began
    mkdir junk
    test $SOJOURN_RANK != 0 || { cd junk; seq 40000 | xargs touch; }
    sleep $((SOJOURN_RANK * 2))
    """
    storage = sojourn.Storage(workdir=str(lab.workdir), output="output", exclude=("/junk",))
    handle = lab.create(script, parallelism=3, storage=storage)
    count = 0
    while count < 20 or not handle.status().state.ended:
        handle.start()
        count += 1
    assert handle.wait().status is State.SUCCEEDED
    ranks = handle.status().ranks
    began = log_of(handle)
    handle.delete()
    assert [(rank.state, rank.attempt) for rank in ranks] == [(State.SUCCEEDED, 1)] * 3
    assert began == ["began"] * 3


def test_delete_right_after_create(lab: Lab) -> None:
    lab.create("sleep 300").delete()


def test_a_newer_local_file_is_not_lost(lab: Lab) -> None:
    handle = lab.create("mkdir output; echo theirs > output/file")
    handle.wait()
    (lab.workdir / "output").mkdir()
    (lab.workdir / "output/file").write_text("mine")
    handle.pull()
    assert lab.output() == {"file": "theirs\n", "file.local": "mine"}
    assert any("file.local" in getattr(event, "message", "") for event in lab.events)
    handle.delete()


def test_what_the_task_did_not_touch_stays_as_it_is_here(lab: Lab) -> None:
    (lab.workdir / "output").mkdir()
    (lab.workdir / "output/notes").write_text("as pushed")
    handle = lab.create("echo result > output/result")
    handle.wait()
    (lab.workdir / "output/notes").write_text("edited meanwhile")
    handle.delete()
    assert lab.output() == {"notes": "edited meanwhile", "result": "result\n"}


def test_delete_keeps_everything_if_the_results_cannot_come_home(lab: Lab, tmp_path: Path) -> None:
    handle = lab.create("mkdir output; echo precious > output/file")
    handle.wait()
    moved = lab.workdir.rename(tmp_path / "moved")
    with pytest.raises(InvalidInput, match="does not exist on this computer"):
        handle.delete()
    assert handle.status().state is State.SUCCEEDED
    handle.delete(into=moved)
    assert (moved / "output/file").read_text() == "precious\n"


def test_a_task_whose_output_is_not_there_is_kept(lab: Lab) -> None:
    result = lab.run("mkdir resluts; echo precious > resluts/file")
    assert result.status is State.SUCCEEDED
    assert any(
        "its output folder is empty" in getattr(event, "message", "") for event in lab.events
    )
    handle = sojourn.get(result.id)
    assert handle.left_nothing()
    assert handle.pull() == []
    handle.delete(output="resluts")
    assert (lab.workdir / "resluts/file").read_text() == "precious\n"


def test_a_task_that_is_there_already_is_told(lab: Lab) -> None:
    one = lab.create("true", name="again")
    one.wait()
    lab.create("true", name="again").delete()
    assert any("has already ended" in getattr(event, "message", "") for event in lab.events)


def test_what_has_ended_is_not_started_again(lab: Lab) -> None:
    handle = lab.create("exit 3")
    handle.wait()
    handle.start()
    assert handle.status().state is State.FAILED
    assert any("cannot be started again" in getattr(event, "message", "") for event in lab.events)
    handle.delete()


def test_a_name_with_spaces_finds_its_task(lab: Lab) -> None:
    handle = lab.create("true", name="My Job, v1")
    assert sojourn.get("My Job, v1").id == sojourn.get("my-job").id == handle.id
    handle.delete()


def test_who_is_waited_for_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_TELL_AFTER", 0.0)
    handle = lab.create("trap 'sleep 1; exit' TERM; echo up; while :; do sleep 0.1; done")
    until(lambda: "up" in log_of(handle))
    handle.stop()
    told = [event.message for event in lab.events if isinstance(event, Note)]
    handle.delete()
    assert any(
        text.startswith("Waiting for machine") and f"sojourn delete --force {handle.id}" in text
        for text in told
    )


def test_force_does_not_wait_for_machines(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_FORCE_WITHIN", 0.2)
    handle = lab.create("trap '' TERM; echo up; while :; do sleep 0.1; done")
    until(lambda: "up" in log_of(handle))
    handle.delete(fetch=False, force=True)
    told = [event.message for event in lab.events if isinstance(event, Warned)]
    assert any("terminating them" in text for text in told)
    assert not handle.exists()


def test_force_removes_what_cannot_come_home(lab: Lab) -> None:
    handle = lab.create("mkdir output; echo precious > output/file")
    handle.wait()
    lab.workdir.rmdir()
    handle.delete(force=True)


def test_a_full_disk_on_the_laptop_loses_nothing(lab: Lab, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk: run the tests as root")
    handle = lab.create(
        "mkdir output; echo small > output/a-small; head -c 4M /dev/urandom > output/large"
    )
    handle.wait()
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    try:
        with pytest.raises(QuotaError, match="No space left"):
            handle.delete(into=disk)
        assert not list(disk.rglob(".sojourn-*"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    handle.delete(into=tmp_path)
    assert (tmp_path / "output/large").stat().st_size == 4 << 20


def test_tasks_are_found_from_any_shell(lab: Lab) -> None:
    handle = lab.create(WAITING, name="find me")
    program = "import sojourn; print([h.id for h in sojourn.list_tasks()])"
    listed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert listed.stdout == f"['{handle.id}']\n"
    assert sojourn.get("find-me").id == handle.id
    handle.delete()


def test_a_shortened_id_must_be_unique(lab: Lab) -> None:
    one, two = lab.create("true", name="pair-a"), lab.create("true", name="pair-b")
    with pytest.raises(InvalidInput, match="matches multiple tasks"):
        sojourn.get("pair")
    assert sojourn.get("pair-a").id == one.id
    one.delete()
    two.delete()


def test_a_mistyped_id_is_told(lab: Lab) -> None:
    handle = lab.create("true")
    wrong = handle.id[:-1] + ("a" if handle.id[-1] != "a" else "b")
    with pytest.raises(InvalidInput, match="checksum does not match"):
        sojourn.get(wrong)
    handle.delete()


def test_gc_finds_what_has_ended_and_nothing_else(lab: Lab) -> None:
    ended = lab.create("mkdir output; echo result > output/file", name="ended")
    kept = lab.create("echo elsewhere > file", name="kept")  # as `run` would keep it
    for handle in (ended, kept):
        handle.wait()
    running = lab.create(WAITING, name="running")
    stopped = lab.create(WAITING, name="stopped")
    stopped.stop()
    found = sojourn.gc()
    assert [handle.id for handle, _ in found] == [ended.id]
    for handle in (ended, kept, running, stopped):
        handle.delete()
    assert sojourn.gc() == []


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"storage": sojourn.Storage(workdir="/no/such/folder")}, "storage.workdir"),
        ({"storage": sojourn.Storage(workdir="/etc/passwd")}, "storage.workdir"),
    ],
)
def test_bad_input_is_refused_before_anything_is_made(
    lab: Lab, bad: dict[str, sojourn.Storage], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        lab.create("true", **bad)
    assert caught.value.path == field


def test_an_output_that_leads_out_is_refused(lab: Lab, tmp_path: Path) -> None:
    (lab.workdir / "output").symlink_to(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        lab.create("true")
    assert caught.value.path == "storage.output"


def test_an_unreadable_file_is_refused_and_nothing_is_left(lab: Lab) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything: run the tests as another user")
    (lab.workdir / "secret").touch(mode=0)
    with pytest.raises(InvalidInput, match="secret"):
        lab.create("true")


def test_secrets_are_nowhere_but_with_the_script(lab: Lab) -> None:
    secret = "hunter2-7f3a"
    handle = lab.create("mkdir output; echo up; sleep 300", environment={"PASSWORD": secret})
    until(lambda: log_of(handle) == ["up"])
    assert secret not in repr(handle.task())
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert secret.encode() not in path.read_bytes()
        except OSError:
            continue
    assert not any(secret in repr(event) for event in (*lab.events, *handle.events()))
    handle.delete()


def test_errors_say_what_to_do(lab: Lab) -> None:
    with pytest.raises(SojournError) as caught:
        sojourn.get("tpi-no-such")
    assert caught.value.hint

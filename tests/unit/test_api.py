"""What the API does beside calling the engine: finding tasks, and what stays at home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import api
from sojourn.api import OnEvent, running
from sojourn.core import errors, events
from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput, SojournError
from sojourn.core.events import LogLine
from sojourn.engine import withdrawal

pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.mark.parametrize("part", ["", "t", "tp", "tpi", "tpi-", "-", "tpi--"])
def test_what_every_id_has_in_common_means_none(part: str) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", name="zebra"))
    try:
        with pytest.raises(InvalidInput) as caught:
            sojourn.get(part)
        assert str(caught.value) == f"id: {part!r} matches every task; use more of the ID"
        for enough in ("z", "tpi-z", handle.id[:-1].removesuffix("-"), handle.id):
            assert sojourn.get(enough).id == handle.id
    finally:
        handle.delete()


def test_what_sojourn_keeps_below_the_workdir_is_not_uploaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mine").write_text("data")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local/share"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local/state"))
    seen: list[str] = []

    def on_event(event: object) -> None:
        if isinstance(event, LogLine):
            seen.append(event.text)

    other = sojourn.create(sojourn.Task("#!/bin/sh\n", environment={"TOKEN": "s3cret"}))
    try:
        task = sojourn.Task(
            "#!/bin/sh\nfind . -type f\n", storage=sojourn.Storage(workdir=str(home))
        )
        sojourn.run(task, on_event=on_event)
    finally:
        other.delete()
    assert seen == ["./mine"]


def test_results_that_cannot_be_written_are_kept_and_the_way_on_is_told(tmp_path: Path) -> None:
    storage = sojourn.Storage(workdir=str(tmp_path), output="results")
    script = "#!/bin/sh\nmkdir results\necho 1 > results/x\n"
    handle = sojourn.create(sojourn.Task(script, storage=storage))
    try:
        handle.wait()
        with pytest.raises(
            SojournError, match="Could not write results to /proc/nowhere"
        ) as caught:
            handle.delete(into="/proc/nowhere")
        assert f"sojourn pull {handle.id} --into FOLDER" in caught.value.hint
        assert "Nothing was removed" in caught.value.hint
    finally:
        handle.delete()
    assert (tmp_path / "results/x").read_text() == "1\n"


def test_what_begins_like_every_id_may_be_a_name() -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", name="tp-tree"))
    try:
        for part in ("t", "tp"):
            assert sojourn.get(part).id == handle.id
    finally:
        handle.delete()


def test_public_names_are_listed() -> None:
    assert {*sojourn.__all__, "__version__"} <= set(dir(sojourn))
    assert "import_module" not in dir(sojourn)


def lines_of(run: Callable[[OnEvent], sojourn.Result]) -> list[str]:
    seen: list[str] = []

    def on_event(event: sojourn.Event) -> None:
        if isinstance(event, sojourn.LogLine):
            seen.append(event.text)

    assert run(on_event).status is sojourn.State.SUCCEEDED
    return seen


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.sh").write_text('#!/bin/sh\necho "$A" "$@"\nls\n')
    monkeypatch.chdir(folder)
    return folder


def test_a_path_in_place_of_a_task(project: Path) -> None:
    shown = lines_of(
        lambda on_event: sojourn.run(
            "train.sh",
            workdir=".",
            environment={"A": "a"},
            arguments=["--lr", "0.1"],
            timeout="1m",
            on_event=on_event,
        )
    )
    assert shown == ["a --lr 0.1", "train.sh"]
    handle = sojourn.create(project / "train.sh", name="by-path")
    assert handle.task().name == "by-path"
    handle.delete()


def test_keyword_arguments_change_a_task() -> None:
    task = sojourn.Task("#!/bin/sh\necho $A$B\n", environment={"A": "a"})
    shown = lines_of(lambda on_event: sojourn.run(task, environment={"B": "b"}, on_event=on_event))
    assert shown == ["ab"]


def test_mounts_and_options_are_kept_with_the_task(project: Path) -> None:
    mounts, options = {"/data": "claim:datasets:ro"}, {"pod": "spec: {}"}
    handle = sojourn.create("train.sh", mounts=mounts, options=options)
    try:
        assert (handle.task().mounts, handle.task().options) == (mounts, options)
    finally:
        handle.delete()


def test_a_mistyped_keyword_is_refused_before_anything_is_made(project: Path) -> None:
    mistyped: dict[str, Any] = {"wrokdir": "."}
    with pytest.raises(InvalidInput, match=r"wrokdir: unknown field; did you mean workdir\?"):
        sojourn.create("train.sh", **mistyped)
    with pytest.raises(InvalidInput, match=r"use sojourn\.Task\(script=\.\.\.\)"):
        sojourn.run("#!/bin/sh\necho hello\n")
    assert sojourn.list_tasks() == []


def test_load(project: Path) -> None:
    (project / "task.yaml").write_text("script: {file: train.sh}\nstorage: {workdir: .}\n")
    assert sojourn.load("train.sh") == sojourn.Task((project / "train.sh").read_text())
    task = sojourn.load(project / "task.yaml", output="results")
    assert task.storage == sojourn.Storage(str(project), "results")


def test_load_of_several_tasks(project: Path) -> None:
    block = 'resource "iterative_task" "{}" {{\n  cloud = "local"\n  script = "#!{}"\n}}\n'
    (project / "main.tf").write_text(block.format("one", "a") + block.format("two", "b"))
    with pytest.raises(InvalidInput, match=r"main.tf has multiple tasks \(one, two\)"):
        sojourn.load("main.tf")
    found = sojourn.load_all("main.tf", machine="l")
    assert found == {
        "one": sojourn.Task("#!a", machine="l"),
        "two": sojourn.Task("#!b", machine="l"),
    }


def test_a_plan_makes_nothing(project: Path, own_folders: Path, tmp_path: Path) -> None:
    plan = sojourn.plan("train.sh", workdir=".")
    assert plan.upload
    assert [part.path for part in plan.upload.parts] == ["train.sh"]
    assert plan.id == ""
    made = [path for name in ("data", "cache", "state") for path in (tmp_path / name).iterdir()]
    assert made == []


def test_all_that_a_caller_meets_can_be_imported() -> None:
    for module in (errors, events):
        for name in module.__all__:
            if name != "Emit":
                assert getattr(sojourn, name) is getattr(module, name)
    for name in sojourn.__all__:
        assert getattr(sojourn, name).__name__.rpartition(".")[2] == name
    met = {"Status", "RankStatus", "Report", "Outcome", "Machine", "KeyPair", "Plan", "Upload"}
    assert met <= set(dir(sojourn))


def test_only_whoever_created_a_task_withdraws_it(monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawn: list[object] = []

    def note(ctx: object, cloud: object, id: object) -> bool:
        withdrawn.append(id)
        return True

    monkeypatch.setattr(withdrawal, "_withdrawn", note)
    task = sojourn.Task("#!/bin/sh\nsleep 60\n", name="zebra")
    created = sojourn.create(task)
    try:
        joined = sojourn.create(task)
        for handle in (sojourn.get(created.id), joined, created):
            assert withdrawn == []
            with pytest.raises(errors.CapacityError) as caught, handle.awaited():
                raise errors.CapacityError("no machine of this type")
            if handle is not created:
                assert f"sojourn delete {created.id}" in caught.value.hint
        assert "Everything created so far was removed" in caught.value.hint
        assert list(map(str, withdrawn)) == [created.id]
    finally:
        created.delete(force=True)


def test_each_of_several_tasks_has_a_result_of_its_own(tmp_path: Path) -> None:
    first = sojourn.Task(
        "#!/bin/sh\nmkdir out; echo 1 > out/x\n",
        storage=sojourn.Storage(workdir=str(tmp_path), output="out"),
    )
    steps = [*running.run_all(Context(), [first, sojourn.Task("#!/bin/sh\nexit 3\n")])]
    handles = [step for step in steps if isinstance(step, sojourn.Handle)]
    results = [step for step in steps if isinstance(step, sojourn.Result)]
    assert steps == [*handles, *results]
    assert [handle.id for handle in handles] == [result.id for result in results]
    assert [(r.exit_code, r.attempts, r.kept, r.lost) for r in results] == [
        (0, 1, "", False),
        (3, 1, "", False),
    ]
    rows = [api.rows.ended(result) for result in results]
    assert [(row["files"], row["bytes"], row["results"]) for row in rows] == [
        (1, 2, str(tmp_path / "out")),
        (0, 0, ""),
    ]


def test_who_is_left_is_told_when_one_of_several_cannot_be_created() -> None:
    script = "#!/bin/sh\nsleep 60\n"
    tasks = [sojourn.Task(script), sojourn.Task(script, name="x"), sojourn.Task("#!x", name="x")]
    created: list[sojourn.Handle | sojourn.Result] = []
    try:
        with pytest.raises(errors.Conflict) as caught:
            created.extend(running.run_all(Context(), tasks))
        ids = [handle.id for handle in sojourn.list_tasks()]
        told = caught.value.hint.rpartition("Also started, and still running: ")[2].split()
        assert sorted(told) == sorted(ids)
    finally:
        for handle in sojourn.list_tasks():
            handle.delete(force=True)

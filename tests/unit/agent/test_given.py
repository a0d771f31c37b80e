"""Small files of a task: written where they belong, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.agent.given import put_into, put_on_machine, ready, stage


def test_files_in_the_workdir_replace_what_is_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    (workdir / "link").symlink_to(outside)
    (workdir / "seed").write_text("uploaded, and longer")
    (workdir / "seed").chmod(0o755)
    put_into(workdir, {"link": "a", "seed": "b", "in/deep": "é", "/etc/elsewhere": "c"})
    found = {str(p.relative_to(workdir)): p.read_text() for p in workdir.rglob("*") if p.is_file()}
    assert found == {"link": "a", "seed": "b", "in/deep": "é"}
    assert (workdir / "seed").stat().st_mode & 0o777 == 0o644
    assert outside.read_text() == "mine"


def test_a_folder_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "seed").mkdir()
    with pytest.raises(IsADirectoryError):
        put_into(tmp_path, {"seed": "b"})


def test_files_elsewhere_are_kept_ready_for_one_attempt(tmp_path: Path) -> None:
    stage(tmp_path, {"/etc/a": "1", "/srv/b c": "2", "in/workdir": "3"})
    found = {path: file.read_text() for file, path in ready(tmp_path)}
    assert found == {"/etc/a": "1", "/srv/b c": "2"}
    stage(tmp_path, {"/etc/a": "4"})
    assert {path: file.read_text() for file, path in ready(tmp_path)} == {"/etc/a": "4"}
    stage(tmp_path, {})
    assert list(ready(tmp_path)) == []


def test_another_run_finds_no_files_of_the_last_one(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "machine", tmp_path / "etc"
    mine = elsewhere / "mine"
    elsewhere.mkdir()
    mine.write_text("not of the task")
    stage(folder, {f"{elsewhere}/a": "1", f"{elsewhere}/b": "2"})
    put_on_machine(folder)
    (elsewhere / "a").unlink()  # by the script
    stage(folder, {f"{elsewhere}/b": "3"})
    put_on_machine(folder)
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == {
        "b": "3",
        "mine": "not of the task",
    }
    stage(folder, {})
    put_on_machine(folder)
    assert list(elsewhere.iterdir()) == [mine]

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task
from sojourn.taskfiles import TaskFile, read_tasks


@pytest.mark.parametrize("name", ["train.sh", "train", "train.py", "train.tf.sh"])
def test_a_script_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    text = "#!/usr/bin/env python3\nprint('${A} é')\n\n"
    file.write_bytes(text.encode())
    assert read_tasks(file) == [TaskFile(file.stem, Task(text))]


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    file = tmp_path / "TASK.YAML"
    file.write_text("script: '#!x'")
    assert read_tasks(file) == [TaskFile("TASK", Task("#!x"), said=frozenset({"script"}))]


def test_a_script_needs_a_shebang(tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    file.write_text("echo")
    with pytest.raises(InvalidInput) as caught:
        read_tasks(file)
    assert str(caught.value).startswith(f"{file}: script: must start with a shebang")


@pytest.mark.parametrize("name", ["no.sh", "no.yaml", "no.tf"])
def test_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_tasks(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: could not read file: No such file or directory"


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="could not read file: Is a directory"):
        read_tasks(tmp_path)


@pytest.mark.parametrize("name", ["x.sh", "x.yaml", "x.tf"])
def test_not_a_text(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"#!/bin/sh\n\xff\xfe")
    with pytest.raises(InvalidInput, match="not valid UTF-8"):
        read_tasks(tmp_path / name)


def test_no_parser_is_loaded_for_a_script(tmp_path: Path) -> None:
    file = tmp_path / "x.sh"
    file.write_text("#!x")
    code = f"""
import sys
from pathlib import Path
from sojourn.taskfiles import read_tasks
read_tasks(Path({str(file)!r}))
print(sorted({{"yaml", "msgspec", "hcl2", "lark"}} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("task.yaml", "script: " + "[" * 5000),
        ("main.tf", f'resource "iterative_task" "a" {{\n script = {"[" * 5000}{"]" * 5000}\n}}\n'),
    ],
)
def test_a_file_too_deep_to_read_is_refused(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InvalidInput, match=f"{name}: too deeply nested to be a task"):
        read_tasks(file)

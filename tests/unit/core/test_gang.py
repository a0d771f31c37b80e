"""Gangs, MPI and small files: what is refused, and that it can be written down."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.gang import FILES_AT_MOST, Mpi, absolute, relative
from sojourn.core.task import Task


def _task(**given: Any) -> Task:
    return Task("#!/bin/sh", **given)


def test_it_can_be_written_down_and_read_again() -> None:
    task = _task(mpi={"slots": 2}, gang_timeout="5m", files={"/a": "é", "b/c": ""})
    assert (task.gang, task.gang_timeout, task.mpi) == (True, 300, Mpi(2))
    assert Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_absolute_and_relative_files() -> None:
    files = {"/a": "1", "b/c": "2"}
    assert (absolute(files), relative(files)) == ({"/a": "1"}, {"b/c": "2"})


@pytest.mark.parametrize("path", ["", ".", "..", "/", "../a", "a/../b", "//a", "a/", "./a", "a\0"])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(InvalidInput, match="files: must have absolute paths"):
        _task(files={path: ""})


def test_a_file_in_a_file() -> None:
    with pytest.raises(InvalidInput, match="'a' cannot be a file: 'a/b' is in it"):
        _task(files={"a": "", "a/b": ""})


def test_what_is_too_large_has_advice() -> None:
    half = "é" * (FILES_AT_MOST // 4)
    assert _task(files={"/a": half, "/b": half})
    with pytest.raises(InvalidInput, match="at most 1 MiB together, got 1,048,577 bytes; put l"):
        _task(files={"/a": half, "/b": half, "/c": "x"})


def test_contents_are_not_shown() -> None:
    assert "secret" not in repr(_task(files={"/a": "secret"}))

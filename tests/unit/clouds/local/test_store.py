"""A store that was deleted stays deleted, whoever still has it open."""

from __future__ import annotations

from pathlib import Path

import pytest

import sojourn
from sojourn import Task
from sojourn.clouds.local import make_cloud
from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput, NotFound
from sojourn.core.ids import TaskId
from sojourn.storage.store import StoreAddress, open_store

CTX = Context()


def test_who_follows_a_task_that_is_deleted_does_not_bring_it_back(own_folders: Path) -> None:
    handle = sojourn.create(Task("#!/bin/sh\n"))
    handle.wait()
    data = make_cloud("local", {}).data(TaskId.parse(handle.id))
    data.watch(CTX)
    handle.delete()
    with pytest.raises(NotFound):
        data.watch(CTX)
    assert data.idle(CTX) == float("inf")
    assert not (own_folders / handle.id).exists()


def test_nothing_is_written_without_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    address = StoreAddress(f"file://{folder}")
    with pytest.raises(NotFound):
        open_store(address)
    folder.mkdir()
    store = open_store(address)
    store.put("a", b"1")
    folder.joinpath("a").unlink()
    folder.rmdir()
    with pytest.raises(NotFound):
        store.put("b", b"2")
    with pytest.raises(NotFound):
        store.put_new("b", b"2")
    with pytest.raises(NotFound):
        store.copy("a", "b")
    assert not folder.exists()


@pytest.mark.parametrize("image", ["docker://python:3.12", "docker://No Image", "sojourn:lab"])
def test_container_images_are_refused(own_folders: Path, image: str) -> None:
    with pytest.raises(InvalidInput, match=r"image: (images are not supported|must be)"):
        sojourn.create(Task("#!/bin/sh\n", image=image))
    assert not list(own_folders.glob("*"))

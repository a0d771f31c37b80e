"""Which paths of an output a pull leaves in the store, by what is at home already."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sojourn.storage.guard import Guard
from tests.support.deep import make_deep, removed

_DEEP = 2100  # folders: twice as many characters, more than the system takes at once


@pytest.mark.parametrize("depth", [1, _DEEP])
def test_a_repository_that_two_pulls_would_make_is_known_however_deep(
    tmp_path: Path, request: pytest.FixtureRequest, depth: int
) -> None:
    request.addfinalizer(removed(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    make_deep(tmp_path / "home", depth)
    here = os.open(tmp_path / "home", os.O_RDONLY)
    for _ in range(depth):
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    for name in ("HEAD", "objects"):
        os.mkdir(name, dir_fd=here)
    os.close(here)
    folder = "/".join(["d"] * depth)
    paths = [f"{folder}/refs", f"{folder}/config"]
    guard = Guard(".", paths, tmp_path / "home")
    assert [guard.part(path) for path in paths] == paths
    assert Guard(".", paths).part(paths[0]) == ""

"""Which settings files count: the user's, and the project's around the current folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.settings import documents, ignored_file, user_file

_SOMEBODY = 4711


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep")
    return tmp_path


def _write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_files_there_are_no_settings() -> None:
    assert documents() == []


def test_the_project_comes_after_the_user(home: Path) -> None:
    mine = _write(user_file())
    project = _write(home / "project" / "sojourn.toml")
    assert [(each.path, each.project) for each in documents()] == [(mine, False), (project, True)]


def test_the_nearest_file_is_the_project(home: Path) -> None:
    _write(home / "sojourn.toml")
    near = _write(home / "project" / "deep" / "sojourn.toml")
    assert [each.path for each in documents()] == [near]


def test_an_unknown_table_is_refused(home: Path) -> None:
    _write(home / "sojourn.toml", "\n[cloud.lab]\n")
    with pytest.raises(InvalidInput, match=r"sojourn.toml:2: cloud: unknown table \(available: cl"):
        documents()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_a_file_of_another_user_is_ignored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _write(home / "project" / "sojourn.toml")
    os.chown(file, _SOMEBODY, _SOMEBODY)
    assert documents() == []  # not even root trusts it
    assert ignored_file() == file
    monkeypatch.setenv("SUDO_UID", str(_SOMEBODY))
    assert [each.path for each in documents()] == [file]
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert documents() == []
    monkeypatch.setattr(os, "getuid", lambda: _SOMEBODY)
    assert [each.path for each in documents()] == [file]
    assert ignored_file() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a link away")
def test_a_link_of_another_user_is_ignored(home: Path) -> None:
    link = home / "project" / "sojourn.toml"
    link.symlink_to(_write(home / "mine.toml"))
    os.lchown(link, _SOMEBODY, _SOMEBODY)
    assert documents() == []


def test_a_folder_that_was_removed_has_none(home: Path) -> None:
    (home / "project" / "deep").rmdir()
    assert documents() == []

"""What the API does beside calling the engine: finding tasks, and what stays at home."""

from __future__ import annotations

from pathlib import Path

import pytest

import sojourn
from sojourn.core.errors import InvalidInput, SojournError
from sojourn.core.events import LogLine

pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.mark.parametrize("part", ["", "t", "tp", "tpi", "tpi-", "-", "tpi--"])
def test_what_every_id_has_in_common_means_none(part: str) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", name="zebra"))
    try:
        with pytest.raises(InvalidInput) as caught:
            sojourn.get(part)
        assert str(caught.value) == f"id: {part!r} is how every id begins; give more of it"
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

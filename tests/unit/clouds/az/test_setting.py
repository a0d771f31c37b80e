"""How many machines Azure keeps alive, and until when."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from sojourn.clouds.az.on_machine.setting import View, profiles, view

END = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def _content(ranks: int, least: int, *, enabled: bool = True) -> dict[str, object]:
    return {"properties": {"enabled": enabled, "profiles": profiles(ranks, least, END)}}


def test_what_is_written_is_read() -> None:
    assert view(_content(3, 2)) == View(3, 2, END, enabled=True)


def test_nothing_is_ended_that_works_before_the_end() -> None:
    first, second = profiles(3, 1, END)
    assert first["capacity"] == {"minimum": "1", "default": "1", "maximum": "3"}
    assert second["capacity"] == {"minimum": "0", "default": "0", "maximum": "0"}
    assert first["fixedDate"]["end"] == "2030-01-02T03:04:05Z"
    assert first["fixedDate"]["start"] < datetime.now(timezone.utc).isoformat()


def test_how_many_are_wanted() -> None:
    before, after = END - timedelta(seconds=1), END
    assert view(_content(3, 2)).wanted(before) == 2
    assert view(_content(3, 2)).wanted(after) == 0
    assert view(_content(3, 2, enabled=False)).wanted(before) == 0


def test_times_as_azure_may_write_them() -> None:
    content = {
        "properties": {
            "enabled": True,
            "profiles": [
                {"name": "x", "capacity": {"minimum": "0", "maximum": "0"}},
                {
                    "name": "y",
                    "capacity": {"minimum": "1", "maximum": "1"},
                    "fixedDate": {"end": "2030-01-02T03:04:05"},
                },
            ],
        }
    }
    assert view(content).end == END


def test_one_of_somebody_else() -> None:
    nothing = {"minimum": "0", "maximum": "0"}
    with pytest.raises(ValueError, match="no profile with a date"):
        view({"properties": {"profiles": [{"name": "x", "capacity": nothing}]}})


def test_what_a_script_added_or_left_out_is_none_of_ours() -> None:
    dated, over = profiles(3, 1, END)
    later = {"name": "later", "capacity": {"minimum": "3", "maximum": "3"}}
    for found in (
        [dated, over, later],
        [dated, {**over, "capacity": later["capacity"]}],
        [dated, dated, over],
        [{"name": "x", "fixedDate": {}, "capacity": {}}],
        [{"name": "x"}],
    ):
        with pytest.raises(ValueError, match="autoscale setting"):
            view({"properties": {"profiles": found}})

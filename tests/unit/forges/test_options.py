"""Settings that only some forges have."""

from __future__ import annotations

import pytest

from sojourn import forges
from sojourn.core.errors import InvalidInput
from sojourn.runners import Settings


def test_volumes_are_refused_where_they_would_be_ignored() -> None:
    settings = Settings(docker_volumes=("/data:/data",))
    settings.check()
    settings.check_for("gitlab")
    for driver in set(forges.DRIVERS) - {"gitlab"}:
        with pytest.raises(InvalidInput, match="docker_volumes: not supported"):
            settings.check_for(driver)


@pytest.mark.parametrize("volume", ["", '/data"', "/a b", "$(reboot)", "/a:/b\n"])
def test_a_volume_needs_no_quotes(volume: str) -> None:
    with pytest.raises(InvalidInput, match="docker_volumes: must be like"):
        Settings(docker_volumes=(volume,)).check()

from __future__ import annotations

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.runners import Settings


@pytest.mark.parametrize("volume", ["/var/run/docker.sock:/var/run/docker.sock", "/:/host:ro"])
def test_a_volume_that_makes_jobs_root_needs_docker(volume: str) -> None:
    with pytest.raises(InvalidInput, match=f"{volume} makes jobs root on the machine"):
        Settings(docker_volumes=(volume,)).check()
    Settings(docker_volumes=(volume,), docker=True).check()
    Settings(docker_volumes=("/data:/data", "cache:/root/docker.sock")).check()


def test_no_token_for_a_machine_whose_jobs_can_become_root() -> None:
    with pytest.raises(InvalidInput, match="token_on_machine: cannot be combined with docker"):
        Settings(docker=True, token_on_machine=True).check()

"""Which account the contract suite uses: a simulated one, unless somebody pays for it.

`SOJOURN_TEST_NAME=real` chooses the user's own account of a cloud, see CONTRIBUTING.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

import pytest

from tests.contract.clouds.kit import Kit


def is_real(cloud: str) -> bool:
    return os.environ.get(f"SOJOURN_TEST_{cloud.upper()}") == "real"


def marks(cloud: str) -> list[pytest.MarkDecorator]:
    """Of tests whose machines boot."""
    return [pytest.mark.slow, *([pytest.mark.timeout(3600)] if is_real(cloud) else [])]


def kit(
    cloud: str,
    simulated: Callable[[pytest.TempPathFactory], Kit],
    tmp_path_factory: pytest.TempPathFactory,
) -> Kit:
    if not is_real(cloud):
        return simulated(tmp_path_factory)
    # Loaded only now: the account is asked at once.
    made: Kit = import_module(f"tests.contract.clouds.{cloud}_real_kit").make(tmp_path_factory)
    return made

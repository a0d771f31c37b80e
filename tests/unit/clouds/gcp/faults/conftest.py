from __future__ import annotations

import pytest

from tests.simcloud.gcp.account import SimGCP
from tests.unit.clouds.gcp.faults.laptop import Laptop


@pytest.fixture
def laptop(project: SimGCP) -> Laptop:
    return Laptop(project)

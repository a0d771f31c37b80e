"""The bench of clouds stays below what an account may have."""

from __future__ import annotations

import pytest

import sojourn.clouds
from bench import clouds
from tests.simcloud.az.catalogue import Quotas
from tests.simcloud.gcp import iam

_FEW = 5


@pytest.mark.slow
@pytest.mark.parametrize("cloud", ["gcp", "az"])
def test_a_look_at_many_tasks_stays_below_the_quotas(
    monkeypatch: pytest.MonkeyPatch, cloud: str
) -> None:
    """With few tasks, and quotas that are as much smaller."""
    assert cloud in sojourn.clouds.KINDS
    cores = Quotas.limit(Quotas(), "cores", "westus2") * _FEW // clouds._TASKS
    monkeypatch.setattr(Quotas, "limit", lambda *_: cores)
    monkeypatch.setattr(iam, "QUOTA", iam.QUOTA * _FEW // clouds._TASKS)
    with clouds._using(clouds._accounts()[cloud]) as account:
        rows = clouds._look(account, cloud, tasks=_FEW)
    assert [what for what, _, _ in rows] == ["status", f"list of {_FEW} tasks"]

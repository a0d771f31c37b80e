"""The cluster that tests use: the one of a variable, or one of our own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["cluster"]

VARIABLE = "SOJOURN_TEST_KUBECONFIG"


def cluster() -> Path:
    """Its kubeconfig. If there is none: skips the test, and says how to get one."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    pytest.skip(f"no cluster: run `make kube` as root on Linux, or set {VARIABLE}")

"""A machine that does not boot: the error of who waits for it has the end of its console."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn.core.errors import Transient
from sojourn.engine import answering, observe
from tests.simcloud.vm.sides import Side, sides

pytestmark = pytest.mark.slow


class Clock:
    """Whose time is over as soon as a machine has printed something."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.printed = ""

    def monotonic(self) -> float:
        return 1e6 if self.printed else 0.0

    def look(self, *given: Any) -> Any:
        machines = [each.machine for each in self._side.account.instances() if each.machine]
        lines = machines[0].console().splitlines() if machines else []
        self.printed = lines[0] if len(lines) > 1 else ""
        return observe.status(*given)


@sides("aws", "gcp", "az")
def test_the_console_is_quoted(side: Side, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side.no_keys(3600.0)  # it cannot fetch its agent
    clock = Clock(side)
    monkeypatch.setattr(answering, "time", clock)
    monkeypatch.setattr(answering, "status", clock.look)
    with pytest.raises(Transient, match="did not answer within 20 minutes") as caught:
        sojourn.Machine.create(cloud=side.kit.cloud, output="")
    _, _, quoted = caught.value.message.partition("\n  The machine's console ends with:\n")
    assert len(quoted.splitlines()) >= 2
    assert all(line.startswith("  ") for line in quoted.splitlines())
    assert side.kit.leaks() == []

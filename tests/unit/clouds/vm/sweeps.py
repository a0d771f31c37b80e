"""What tests leave in an account is found and removed by its mark, and nothing else is touched.

These are the tests of each cloud, which call them with a kit for a real account, on one that is
not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import sojourn
from sojourn import clouds
from sojourn.core.context import Context
from tests.contract.clouds import marking
from tests.contract.clouds.real_kit import RealKit
from tests.support.waiting import until


def create(kit: RealKit, name: str, **more: Any) -> sojourn.Handle:
    return sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud=kit.cloud, name=name, **more))


def _main(kit: RealKit) -> Callable[[list[str]], int]:
    main: Callable[[list[str]], int] = import_module(
        f"tests.contract.clouds.sweep_{kit.cloud}"
    ).main
    return main


def _with_machine(sim: Any, kit: RealKit, name: str, **more: Any) -> sojourn.Handle:
    handle = create(kit, name, **more)
    sim.wait(lambda: any(each.state == "running" for each in sim.instances()))
    return handle


def all_that_a_task_leaves_is_found(sim: Any, kit: RealKit, kinds: set[str]) -> None:
    handle = _with_machine(sim, kit, "a")
    titles = kit.leaks()
    handle.delete(fetch=False)
    assert {kind for kind in kinds if any(each.startswith(f"{kind} ") for each in titles)} == kinds
    assert kit.leaks() == []
    kit.close()


def all_of_it_is_removed(sim: Any, kit: RealKit) -> None:
    """Also what only tasks have that let nobody in."""
    _with_machine(sim, kit, "a")
    create(kit, "b", options={"ssh_from": "none"})
    kit.close()
    assert sim.inventory() == []


def an_image_is_removed(sim: Any, kit: RealKit, title: str = "image ") -> None:
    handle = _with_machine(sim, kit, "a")
    [machine] = handle.machines()
    images = clouds.load(kit.cloud).images()
    assert images
    images.take(Context(), handle._id, handle.task(), machine.id, "tools")
    assert any(each.startswith(title) for each in kit.leaks())
    kit.close()
    assert sim.inventory() == []


def what_has_no_mark_or_another_stays(
    sim: Any, kit: RealKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else is in the account before, such as things of similar names, stays, too."""
    main = _main(kit)
    kit._patched.undo()
    other = _with_machine(sim, kit, "other")
    before = sim.inventory()
    assert main(["--yes"]) == 0
    assert sim.inventory() == before
    monkeypatch.setenv(marking.VARIABLE, "another")
    with pytest.MonkeyPatch.context() as patched:
        import_module(f"tests.contract.clouds.{kit.cloud}_marks").use(patched)
        marked = create(kit, "marked")
    assert kit.leaks() == []
    kit.close()
    assert marked.exists()
    assert main(["--yes", "--mark", "yet-another"]) == 0
    assert marked.exists()
    assert main(["--yes"]) == 0
    assert not marked.exists()
    assert sim.inventory() == before
    other.delete(fetch=False)


def nothing_is_removed_without_yes(kit: RealKit, capsys: pytest.CaptureFixture[str]) -> None:
    handle = create(kit, "a")
    assert _main(kit)([]) == 0
    assert handle.id in capsys.readouterr().out
    assert handle.exists()
    kit.close()


def processes_mark_as_well(kit: RealKit, code: str, smallest: str) -> None:
    """Those that tests start; `code` prints the mark and the machine type of tasks."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [kit.mark, smallest]
    kit.close()


def a_lost_machine_is_gone(sim: Any, kit: RealKit) -> None:
    handle = _with_machine(sim, kit, "a")
    [machine] = kit.alive()
    assert [each.id for each in handle.machines()] == [machine]
    kit.lose(machine)
    until(lambda: machine not in kit.alive())
    handle.delete(fetch=False)
    assert kit.alive() == []
    kit.close()

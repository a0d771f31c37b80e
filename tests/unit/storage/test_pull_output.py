"""Nothing is written but at the output, whatever a machine made of it."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sojourn.core.errors import Conflict
from sojourn.core.filters import Filters
from sojourn.storage import layout
from sojourn.storage.digest import digest_of
from sojourn.storage.manifest import safe_target
from tests.support.manifests import (
    file_row,
    folder_row,
    link_row,
    raw_manifest,
)
from tests.support.snapshots import line_of
from tests.support.trees import Dir, File, Link, Node, read_tree, trees, write_tree
from tests.unit.storage.home import Home, new, write_tree_at

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")

RUNS: dict[str, Node] = {
    "runs": Dir(),
    "runs/7": Dir(),
    "runs/7/f": new(b"precious"),
    "runs/7/deep": Dir(),
    "runs/7/deep/f": new(b"deep"),
    "runs/8": Dir(),
    "runs/8/f": new(b"another"),
    "other": new(b"other"),
}
SEVEN = {"f": b"precious", "deep/f": b"deep"}
LINKED: dict[str, tuple[str, dict[str, Node], dict[str, bytes]]] = {
    "the output itself": ("out", {"out": Link("runs/7")}, SEVEN),
    "a folder above it": ("link/7", {"link": Link("runs")}, SEVEN),
    "nested": ("a/b/deep", {"a": Dir(), "a/b": Link("../runs/7")}, {"f": b"deep"}),
    "a chain": (
        "out",
        {"out": Link("latest"), "latest": Link("runs/last"), "runs/last": Link("7")},
        SEVEN,
    ),
    "a chain of folders": (
        "one/deep",
        {"one": Link("two"), "two": Link("runs/7")},
        {"f": b"deep"},
    ),
    "a link to itself": ("out", {"out": Link("out")}, {}),
    "a loop": ("out", {"out": Link("tuo"), "tuo": Link("out")}, {}),
    "a loop that grows": ("out", {"out": Link("out/out")}, {}),
    "to nothing": ("out", {"out": Link("absent")}, {}),
    "to a file": ("out", {"out": Link("runs/7/f")}, {"": b"precious"}),
    "to the workdir": (
        "a/out",
        {"a": Dir(), "a/out": Link("..")},
        {path: node.content for path, node in RUNS.items() if isinstance(node, File)},
    ),
}


def results(home: Home, output: str) -> dict[str, bytes | str]:
    """Files by their path in the output; all there are must be in it."""
    found = {os.path.relpath(path, output): content for path, content in home.files().items()}
    assert not any(path.startswith("..") for path in found)
    return {path if path != "." else "": content for path, content in found.items()}


@pytest.mark.parametrize("case", LINKED.values(), ids=LINKED)
def test_what_a_symlink_in_the_place_of_the_output_leads_to_comes_home_as_the_output(
    home: Home, case: tuple[str, dict[str, Node], dict[str, bytes]]
) -> None:
    output, links, expected = case
    home.rank(RUNS | links)
    written = home.pull(output)
    assert home.holds(output) == bool(expected)
    if not expected:
        assert not home.into.exists()
        return
    found = results(home, output)
    assert {path: found.pop(path) for path in expected} == expected
    assert all(isinstance(target, str) for target in found.values())  # symlinks
    assert set(written) == set(home.files())
    assert not (home.into / output).is_symlink()
    assert home.pull(output) == []
    assert home.warnings == []


def test_a_script_cannot_overwrite_what_is_beside_its_output(home: Home) -> None:
    mine: dict[str, Node] = {
        "train.py": File(b"mine"),
        ".git": Dir(),
        ".git/hooks": Dir(),
        ".git/hooks/pre-commit": File(b"mine"),
        "results": Dir(),
        "results/old": File(b"old"),
    }
    home.push(mine)
    write_tree_at(home.into, mine)
    before = read_tree(home.into)
    home.rank(
        {
            "train.py": new(b"evil"),
            ".git": Dir(),
            ".git/hooks": Dir(),
            ".git/hooks/pre-commit": new(b"evil", 0o755),
            ".git/hooks/new": new(b"evil", 0o755),
            "results": Link("."),
        }
    )
    home.pull("results")
    after = read_tree(home.into)
    assert {path: node for path, node in after.items() if path in before} == before
    assert {path.split("/")[0] for path in after} == {"train.py", ".git", "results"}
    assert (home.into / "results/train.py").read_bytes() == b"evil"
    assert not (home.into / ".git/hooks/new").exists()


def test_symlinks_that_come_home_elsewhere_lead_to_the_same_things(home: Home) -> None:
    home.rank(
        RUNS
        | {
            "out": Link("runs/7"),
            "runs/7/inside": Link("../7/deep/f"),
            "runs/7/outside": Link("../../other"),
            "runs/7/deep/up": Link("../f"),
            "runs/7/deep/root": Link("../../.."),
            "runs/7/self": Link("../../out/f"),
        }
    )
    home.pull()
    out = home.into / "out"
    assert (out / "inside").read_bytes() == b"deep"
    assert (out / "deep/up").read_bytes() == b"precious"
    assert (out / "self").read_bytes() == b"precious"
    assert os.path.realpath(out / "outside") == os.path.realpath(home.into / "other")
    assert os.path.realpath(out / "deep/root") == os.path.realpath(home.into)
    assert set(os.listdir(home.into)) == {"out"}


def test_each_rank_is_asked_where_its_own_output_leads(home: Home) -> None:
    for number in range(2):
        content = new(b"%d" % number)
        home.rank({"out": Link(f"r{number}"), f"r{number}": Dir(), f"r{number}/f": content})
    home.rank({"out": Dir(), "out/g": new(b"2")})
    home.rank({"out": Link("absent")})
    home.pull()
    assert home.files() == {"out/f": b"0", "out/f.rank1": b"1", "out/g": b"2"}


def test_what_is_excluded_stays_out_under_either_name(home: Home) -> None:
    home.rank(RUNS | {"out": Link("runs/7"), "runs/7/a.log": new(b"log")})
    home.pull(filters=Filters(["*.log", "/runs/7/f", "/out/deep"]))
    assert home.files() == {}
    assert os.listdir(home.into) == ["out"]


@pytest.mark.parametrize("whole", [False, True], ids=["relative", "whole path"])
@pytest.mark.parametrize("above", [False, True], ids=["the output", "above it"])
def test_results_go_to_where_the_users_own_symlink_leads(
    home: Home, above: bool, whole: bool
) -> None:
    output, link, leads = ("link/7", "link", "runs") if above else ("out", "out", "runs/7")
    tree = RUNS | {link: Link(leads)}
    home.push(tree)
    write_tree_at(home.into, RUNS)
    (home.into / link).symlink_to(home.into / leads if whole else leads)
    home.rank(tree | {"runs/7/f": new(b"result"), "runs/7/new": new(b"new")})
    home.pull(output)
    assert (home.into / link).is_symlink()
    assert (home.into / output / "new").read_bytes() == b"new"
    assert (home.into / "runs/7/f").read_bytes() == b"result"
    assert not list(home.into.rglob("*.local"))
    assert home.warnings == []


def test_a_symlink_of_the_user_gives_way_if_a_rank_made_something_else_of_it(home: Home) -> None:
    """Else results would be mixed with what is in a folder that the task did not write to."""
    tree = RUNS | {"out": Link("runs/7")}
    home.push(tree)
    write_tree_at(home.into, tree)
    home.rank(tree | {"out": Link("runs/8"), "runs/8/f": new(b"result")})
    home.pull()
    assert (home.into / "out/f").read_bytes() == b"result"
    assert (home.into / "runs/7/f").read_bytes() == b"precious"
    assert (home.into / "runs/8/f").read_bytes() == b"another"
    assert os.readlink(home.into / "out.local") == "runs/7"
    assert home.warnings == ["out is a symlink here and a folder in the results; kept as out.local"]
    assert home.pull() == []


@pytest.mark.parametrize("target", ["elsewhere", "../elsewhere", "absent"])
def test_a_symlink_that_was_not_pushed_is_not_written_through(home: Home, target: str) -> None:
    """A machine may have made it: an earlier pull brought more of the workdir than the output."""
    for folder in (home.into / "elsewhere", home.into.parent / "elsewhere"):
        folder.mkdir(parents=True)
    home.push(RUNS)
    home.rank(RUNS | {"out": Dir(), "out/f": new(b"result")})
    (home.into / "out").symlink_to(target)
    home.pull()
    assert home.files()["out/f"] == b"result"
    assert os.listdir(home.into.parent / "elsewhere") == []
    assert os.listdir(home.into / "elsewhere") == []
    assert os.readlink(home.into / "out.local") == target


@pytest.mark.parametrize("local", [File(b"mine"), Link("elsewhere"), Link("..")])
def test_what_is_above_the_output_is_not_touched(home: Home, local: Node) -> None:
    home.rank({"a": Dir(), "a/out": Dir(), "a/out/f": new(b"result")})
    write_tree_at(home.into, {"elsewhere": Dir(), "a": local})
    before = read_tree(home.into.parent)
    with pytest.raises(Conflict, match="already exists"):
        home.pull("a/out")
    assert read_tree(home.into.parent) == before
    home.into = home.into.parent / "other"
    home.pull("a/out")
    assert home.files() == {"a/out/f": b"result"}


NAMES = st.sampled_from(("a", "out", "b", "...", "\n", "\udcff", ".git", "a.local", "out.rank1"))
TARGETS = st.sampled_from(
    (".", "..", "../..", "a", "b", "out", "../a", "../b", "../out", "../../b", "a/b", "out/a", "./")
)


OBJECTS = [(layout.objects_prefix(layout.WORKDIR) + "/" + digest_of(c), c) for c in (b"1", b"23")]
CONTENTS: list[list[list[Any]]] = [
    [[n, 0, len(content), digest_of(content)]] for n, (_, content) in enumerate(OBJECTS)
] + [[]]


@st.composite
def manifests(draw: st.DrawFn) -> list[list[object]]:
    """Rows of a manifest that is not refused: what a machine can make a laptop read."""
    rows: dict[str, list[object]] = {}
    folders = [""]
    for _ in range(draw(st.integers(0, 10))):
        path = posixpath.join(draw(st.sampled_from(folders)), draw(NAMES))
        if path in rows:
            continue
        kind = draw(st.sampled_from("ffdll"))
        target = draw(TARGETS)
        if kind == "d":
            folders.append(path)
            rows[path] = folder_row(path, mode=draw(st.sampled_from((0o755, 0o500))))
        elif kind == "l" and safe_target(path, target):
            rows[path] = link_row(path, target)
        else:
            parts = draw(st.sampled_from(CONTENTS))
            size = sum(part[2] for part in parts)
            rows[path] = file_row(path, mtime=draw(st.integers(0, 2)), parts=parts, size=size)
    return list(rows.values())


def contents(folder: Path) -> list[object]:
    """Of all files and symlinks, wherever they are."""
    return [node[-1] for node in read_tree(folder).values() if node[0] != "dir"]


def outside(folder: Path, output: str) -> dict[str, object]:
    """All but the output, the folders above it, and what has its name and a suffix of ours."""
    whole = f"home/{output}"
    return {
        path: node
        for path, node in read_tree(folder).items()
        if not f"{path}/".startswith((f"{whole}/", f"{whole}.local", f"{whole}.rank"))
        and not (f"{whole}/".startswith(f"{path}/") and node[0] == "dir")
    }


random_trees = trees(small=64, chunk=256, at_most=8)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    pushed=random_trees | st.just({}),
    local=random_trees | st.none(),
    snapshots=st.lists(st.lists(manifests(), min_size=1, max_size=2), min_size=1, max_size=3),
    output=st.sampled_from(("out", "a", "a/out", "a/b", "b")),
)
def test_whatever_machines_store_nothing_is_lost_or_written_elsewhere(
    pushed: dict[str, Node],
    local: dict[str, Node] | None,
    snapshots: list[list[list[list[object]]]],
    output: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    sandbox = tmp_path_factory.mktemp("sandbox")
    tree: dict[str, Node] = {"beside": File(b"beside"), "home": Dir()}
    tree |= {f"home/{path}": node for path, node in (pushed if local is None else local).items()}
    write_tree(sandbox, tree)
    home = Home(tmp_path_factory.mktemp("task"))
    home.into = sandbox / "home"
    home.push(pushed)
    for path, content in OBJECTS:
        home.store.put(path, content)
    home.ranks = 2
    kept = contents(sandbox)  # what was there before the first pull
    before = outside(sandbox, output)
    for number, ranks in enumerate(snapshots, start=1):
        for rank, rows in enumerate(ranks):
            path = layout.snapshot_path(line_of(rank=rank), number)
            objects = [(name, len(content)) for name, content in OBJECTS]
            home.store.put(path, raw_manifest(rows, objects))
        try:
            home.pull(output)
        except Conflict:
            assert contents(sandbox) == kept or number > 1
        assert outside(sandbox, output) == before
        assert not [path for path in sandbox.rglob("*") if path.name.endswith(".part")]
    after = contents(sandbox)
    for node in pushed.values():  # what was uploaded is in the store, and may be replaced
        after += [node.content] if isinstance(node, File) else []
        after += [node.target] if isinstance(node, Link) else []
    assert [content for content in kept if content not in after] == []

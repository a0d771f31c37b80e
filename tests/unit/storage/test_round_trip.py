"""restore(snapshot(x)) == x, for any x, any edit, and any number of attempts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sojourn.storage.manifest import Manifest
from sojourn.storage.ranks import newest_of_rank
from sojourn.storage.store import Store
from tests.support.faults import WatchedStore, memory_store
from tests.support.snapshots import (
    line_of,
    loose_objects,
    missing_objects,
    restore,
    snapshots,
    take,
    writer,
)
from tests.support.trees import Dir, File, Tree, read_tree, rewrite_tree, trees, write_tree

SMALL, CHUNK = 64, 256  # as in conftest.tiny_limits

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")
random_trees = trees(small=SMALL, chunk=CHUNK)
relaxed = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tree-") as name:
        yield Path(name)


def newest(store: Store) -> Manifest:
    manifest = newest_of_rank(store, 0)
    assert manifest is not None
    return manifest


def check(store: Store, root: Path) -> None:
    """The newest snapshot gives back this folder."""
    with folder() as other:
        restore(store, newest(store), other)
        assert read_tree(other, folder_times=True) == read_tree(root, folder_times=True)


@relaxed
@given(tree=random_trees)
@example(tree={"\n": File(b"x"), "d": Dir(), "d/\n": File(b"y")})
def test_what_is_stored_comes_back(tree: Tree) -> None:
    store = WatchedStore(memory_store())
    with folder() as root:
        write_tree(root, tree)
        assert take(writer(store), root)
        check(store, root)


@relaxed
@given(stages=st.lists(random_trees, min_size=2, max_size=4))
def test_edits_come_back_and_leave_nothing_behind(stages: list[Tree]) -> None:
    store = WatchedStore(memory_store())
    by = writer(store)
    old: Tree = {}
    with folder() as root:
        for tree in stages:
            rewrite_tree(root, old, tree)
            take(by, root)
            by.sweep()
            check(store, root)
            kept = snapshots(store, line_of())
            assert len(kept) <= 2
            assert not any(missing_objects(store, manifest) for manifest in kept.values())
            assert loose_objects(store, line_of()) == set()
            old = tree


@relaxed
@given(stages=st.lists(random_trees, min_size=2, max_size=4))
def test_each_attempt_goes_on_from_the_one_before(stages: list[Tree]) -> None:
    store = WatchedStore(memory_store())
    old: Tree = {}
    last = Manifest()
    for attempt, tree in enumerate(stages, start=1):
        with folder() as root:
            by = writer(store, attempt)
            by.begin(restore(store, last, root))
            rewrite_tree(root, old, tree)
            (root / f"started-{attempt}").touch()
            assert take(by, root)
            by.sweep()
            # A machine removes the lines of former attempts once it has a snapshot of its own.
            store.delete([item.path for item in store.list(line_of(attempt - 1))])
            check(store, root)
            last = newest(store)
            assert not missing_objects(store, last)
            assert all(path.startswith(line_of(attempt)) for path in last.objects)
            assert loose_objects(store, line_of(attempt)) == set()
            take(by, root)  # may pack anew what has become mostly unused
            check(store, root)
            assert not take(by, root)
            old = tree


@relaxed
@given(first=random_trees, second=random_trees)
def test_a_new_writer_of_the_same_line_goes_on(first: Tree, second: Tree) -> None:
    store = WatchedStore(memory_store())
    with folder() as root:
        write_tree(root, first)
        take(writer(store), root)
        rewrite_tree(root, first, second)
        by = writer(store)
        by.begin(newest(store), 1)
        take(by, root)
        by.sweep()
        check(store, root)
        kept = snapshots(store, line_of())
        assert not any(missing_objects(store, manifest) for manifest in kept.values())


@relaxed
@given(tree=random_trees)
def test_what_is_restored_is_known_and_not_read_again(tree: Tree) -> None:
    store = WatchedStore(memory_store())
    with folder() as root, folder() as other:
        write_tree(root, tree)
        take(writer(store), root)
        by = writer(store, 2)
        by.begin(restore(store, newest(store), other))
        store.put_paths.clear()
        store.calls.clear()
        assert not take(by, other)
        assert set(store.calls) <= {"copy"}
        (other / "new").touch()
        assert take(by, other)
        assert "put" not in store.calls
        assert "list" not in store.calls

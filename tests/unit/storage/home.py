"""A task in a store, and the folder that its results come home to."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from sojourn.core.context import Context
from sojourn.core.events import Event, Warned
from sojourn.core.filters import Filters
from sojourn.storage import layout
from sojourn.storage.pull import holds, pull
from sojourn.storage.snapshot import SnapshotWriter, newest
from sojourn.storage.store import Store
from tests.support.faults import WatchedStore, memory_store
from tests.support.snapshots import NO_FILTERS, line_of, take, writer
from tests.support.trees import File, Node, read_tree, write_tree

__all__ = ["NEW", "OLD", "Home", "new", "write_tree_at"]

OLD = 1_500_000_000_000_000_000
NEW = OLD + 10**12


class Home:
    """A task in a store, and the folder that its results come home to."""

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        self._folder = folder
        self.store = WatchedStore(store or memory_store())
        self.into = folder / "home"
        self.memory: Path | None = folder / "state" / "pulled.json"
        self.events: list[Event] = []
        self.ranks = 0

    def push(self, tree: Mapping[str, Node]) -> None:
        folder = self._folder / "pushed"
        folder.mkdir()
        write_tree(folder, tree)
        take(SnapshotWriter(self.store, layout.WORKDIR, workers=2), folder)

    def rank(self, tree: Mapping[str, Node]) -> None:
        """The next rank left this."""
        folder = self._folder / f"rank-{self.ranks}"
        folder.mkdir()
        write_tree(folder, tree)
        take(writer(self.store, rank=self.ranks), folder)
        self.ranks += 1

    def update(self, rank: int, tree: Mapping[str, Node]) -> None:
        folder = Path(tempfile.mkdtemp(prefix=f"rank-{rank}-again-", dir=self._folder))
        write_tree(folder, tree)
        by = writer(self.store, rank=rank)
        found = newest(self.store, line_of(rank=rank))
        assert found is not None
        by.begin(found[1], found[0])
        take(by, folder)

    def pull(self, output: str = "out", filters: Filters = NO_FILTERS) -> list[str]:
        ctx = Context(self.events.append)
        ranks = range(self.ranks)
        return pull(ctx, self.store, ranks, output, self.into, filters, memory=self.memory)

    def holds(self, output: str = "out") -> bool:
        return holds(self.store, range(self.ranks), output)

    def files(self) -> dict[str, bytes | str]:
        """Files and symlinks by what is in them."""
        found = read_tree(self.into)
        return {path: node[-1] for path, node in found.items() if node[0] != "dir"}

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Warned)]


def new(content: bytes, mode: int = 0o644) -> File:
    return File(content, mode, NEW)


def write_tree_at(root: Path, tree: Mapping[str, Node]) -> None:
    for path, node in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        write_tree(root, {path: node})

"""The workdir of an attempt, as a former one or a laptop left it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.agent.background import say
from sojourn.agent.disk import remove_tree
from sojourn.agent.given import put_into
from sojourn.core.context import Context
from sojourn.core.errors import IntegrityError, NotFound, SojournError
from sojourn.storage import layout
from sojourn.storage.manifest import Manifest, read_manifest
from sojourn.storage.ranks import snapshots_of_rank
from sojourn.storage.restore import Restorer
from sojourn.storage.snapshot import newest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sojourn.agent.telling import Telling
    from sojourn.storage.store import Store

__all__ = ["Restoring"]

_WORKERS = 4  # each may hold a pack


class Restoring:
    """Fills the workdir of a rank. `files`: small ones that come on top of what was pushed."""

    def __init__(
        self, store: Store, rank: int, workdir: Path, files: Mapping[str, str], telling: Telling
    ) -> None:
        self._store = store
        self._rank = rank
        self._workdir = workdir
        self._files = files
        self._telling = telling

    def newest(self, ctx: Context) -> Manifest:
        """Of the newest snapshot of the rank that is whole, else of what was pushed."""
        damage: SojournError | None = None
        tried: set[str] = set()
        # Listed anew each time: an agent that is being replaced may still write and sweep.
        while left := [p for p in snapshots_of_rank(self._store, self._rank) if p not in tried]:
            path = left[0]
            tried.add(path)
            try:
                return self.snapshot(ctx, path)
            except (IntegrityError, NotFound) as error:
                say(f"could not restore {path}: {error}")
                damage = damage or error
        if damage:
            raise damage
        return self.pushed(ctx)

    def snapshot(self, ctx: Context, path: str) -> Manifest:
        """Of one snapshot."""
        return self._fill(ctx, read_manifest(self._store, path))

    def pushed(self, ctx: Context) -> Manifest:
        """Of what was pushed, if anything was."""
        pushed = newest(self._store, layout.WORKDIR)
        restored = self._fill(ctx, pushed[1] if pushed else Manifest())
        put_into(self._workdir, self._files)
        return restored

    def _fill(self, ctx: Context, manifest: Manifest) -> Manifest:
        told = Context(self._telling.on_event, cancelled=ctx.cancelled, deadline=ctx.deadline)
        remove_tree(self._workdir)  # of an agent that died here, or of a snapshot that was damaged
        self._workdir.mkdir(parents=True)
        entries = Restorer(self._store, self._workdir, workers=_WORKERS, strict=True).restore(
            told, manifest.release(), manifest.objects
        )
        return Manifest(entries, manifest.objects)

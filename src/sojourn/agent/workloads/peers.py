"""Whether the next rank of a gang is still there: each looks after one, so it costs little."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sojourn.storage import layout

if TYPE_CHECKING:
    from sojourn.storage.gangs import Member, Round, Rounds
    from sojourn.storage.store import Store

__all__ = ["Peers"]

_PATIENCE = 1.5  # times the ttl: whoever replaces a machine should be the first to tell


class Peers:
    """The lease of the next rank that has joined, as it is renewed or not."""

    def __init__(self, store: Store, rounds: Rounds, rank: int, ttl: float) -> None:
        self._store = store
        self._rounds = rounds
        self._rank = rank
        self._ttl = ttl
        self._looked = time.monotonic()
        self._peer: Member | None = None
        self._sign: object = None
        self._since = 0.0

    def lost(self, number: int, seen: Round) -> str:
        """Why the next rank counts as lost; empty while it does not."""
        now = time.monotonic()
        if now - self._looked < self._ttl / 4:
            return ""
        self._looked = now
        others = sorted(seen.members - {self._rank}, key=lambda rank: (rank < self._rank, rank))
        if not others:
            return ""
        if self._peer is None or self._peer.rank != others[0]:
            self._peer = self._rounds.member(number, others[0])
            self._sign, self._since = None, now
        peer = self._peer
        sign = self._store.head(layout.attempt_path(peer.rank, peer.attempt))
        if sign != self._sign:
            self._sign, self._since = sign, now
        if now - self._since > self._ttl * _PATIENCE:
            return f"the machine of rank {peer.rank} stopped responding"
        return ""

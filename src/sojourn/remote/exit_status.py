"""How a command ended, told by a shell around it on both of its outputs.

An API server may lose an exit code that comes while input is still on its way to a command that no
longer reads, and `ssh` has one of its own for all that goes wrong. So the shell tells it, and takes
what is left of the input until we hang up.
"""

from __future__ import annotations

import re
import secrets

__all__ = ["Trailer"]

# The number comes first, as signals go another way. The shell itself is silent:
# some say what their child died of. Any shell can read, not every image has `cat`.
_AROUND = """
exec 9>&2 2>/dev/null
(exec 2>&9 9>&-; exec /bin/sh -c 'echo "$$" >&2; {inside}' sh "$@")
code=$?
echo "{mark}$code."
echo "{mark}$code." >&9
cat >/dev/null || while read -r line; do :; done
exit $code
"""
_LONGEST = 3  # digits of an exit code


class Trailer:
    """Finds it at the end of the outputs, and takes it out of them."""

    def __init__(self) -> None:
        self._mark = f"<{secrets.token_hex(16)}:".encode()
        self._pattern = re.compile(re.escape(self._mark) + rb"(\d{1,%d})\.\n" % _LONGEST)
        self._held: dict[int, bytes] = {}
        self._over: set[int] = set()
        self.code: int | None = None

    def around(self, inside: str) -> str:
        """A shell's text that runs this one, which has no single quotes, as a child."""
        return _AROUND.format(inside=inside, mark=self._mark.decode())

    @property
    def complete(self) -> bool:
        """Whether nothing that the command printed is still to come."""
        return len(self._over) == 2

    def rest_of(self, stream: int, data: bytes) -> bytes:
        """What of it is the command's. A piece that may be our mark's beginning is kept back."""
        if stream in self._over:
            return b""
        data = self._held.pop(stream, b"") + data
        found = self._pattern.search(data)
        if found:
            self.code = int(found[1])
            self._over.add(stream)
            return data[: found.start()]
        kept = self._beginning(data)
        if kept:
            self._held[stream] = data[-kept:]
            return data[:-kept]
        return data

    def _beginning(self, data: bytes) -> int:
        """How many bytes at its end may be the first ones of the mark and what follows it."""
        at = data.rfind(b"<", -(len(self._mark) + _LONGEST + 2))
        if at < 0:
            return 0
        tail = data[at:]
        begins = self._mark.startswith(tail) or tail.startswith(self._mark)
        return len(tail) if begins else 0

    def kept(self) -> list[tuple[int, bytes]]:
        """What was kept back and was the command's after all: there is no more to come."""
        held, self._held = self._held, {}
        return list(held.items())

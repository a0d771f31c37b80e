from __future__ import annotations

import pytest

from sojourn.core.sizes import size_of


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (10 << 10, "10 KiB"),
        (900 << 20, "900 MiB"),
        ((1 << 30) - 1, "1.0 GiB"),
        (1288490189, "1.2 GiB"),
        (5 << 40, "5.0 TiB"),
        (5000 << 50, "5000 PiB"),
    ],
)
def test_sizes(size: int, words: str) -> None:
    assert size_of(size) == words

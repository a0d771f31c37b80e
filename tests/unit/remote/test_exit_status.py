"""Where the command's output ends and the shell's word on its end begins."""

from __future__ import annotations

import subprocess
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sojourn.remote.exit_status import Trailer

OUT, ERR = 1, 2


def _mark(trailer: Trailer, code: int) -> bytes:
    """As the shell prints it."""
    text = trailer.around("exit 0")
    line = next(line for line in text.splitlines() if line.startswith('echo "<'))
    return (
        line.removeprefix('echo "').removesuffix('"').replace("$code", str(code)).encode() + b"\n"
    )


@given(
    printed=st.binary(max_size=200) | st.text("<:.0123abcdef\n", max_size=80).map(str.encode),
    cuts=st.lists(st.integers(0, 300), max_size=12),
    code=st.integers(0, 255),
)
def test_the_output_is_the_command_s_however_it_is_cut(
    printed: bytes, cuts: list[int], code: int
) -> None:
    trailer = Trailer()
    whole = printed + _mark(trailer, code)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(edges)]
    assert b"".join(trailer.rest_of(OUT, piece) for piece in pieces) == printed
    assert trailer.code == code
    assert trailer.kept() == []


@given(printed=st.binary(max_size=200), tail=st.integers(0, 60))
def test_without_its_end_nothing_is_lost(printed: bytes, tail: int) -> None:
    """A connection is cut in the middle of the mark, or a program prints its beginning."""
    trailer = Trailer()
    whole = printed + _mark(trailer, 7)[:-1][:tail]
    given_out = trailer.rest_of(OUT, whole)
    assert given_out + b"".join(data for _, data in trailer.kept()) == whole
    assert trailer.code is None


def test_it_is_complete_when_both_outputs_are() -> None:
    trailer = Trailer()
    assert trailer.rest_of(ERR, b"oh" + _mark(trailer, 3)) == b"oh"
    assert not trailer.complete
    assert trailer.rest_of(OUT, b"late") == b"late"
    assert trailer.rest_of(OUT, _mark(trailer, 3)) == b""
    assert trailer.complete


def test_the_shell_around_a_command_drains_its_input_and_tells() -> None:
    trailer = Trailer()
    text = trailer.around('exec "$@"')
    shell = ["/bin/sh", "-c", text, "sh", "/bin/sh", "-c", "echo a; echo b >&2; kill -9 $$"]
    done = subprocess.run(shell, input=bytes(1 << 20), capture_output=True, check=False)
    assert done.returncode == 137
    assert trailer.rest_of(OUT, done.stdout) == b"a\n"
    number, _, rest = trailer.rest_of(ERR, done.stderr).partition(b"\n")
    assert number.isdigit()
    assert rest == b"b\n"  # and nothing about what killed it
    assert trailer.complete
    assert trailer.code == 137

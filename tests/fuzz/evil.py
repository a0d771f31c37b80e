"""What a machine could make of a store: any name, any content, chosen by a seed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["mangle"]

_BYTES = (
    b"",
    b"\n",
    b"null",
    b"[]",
    b"{}",
    b'"\\ud800"',
    b"NaN",
    b"1e999",
    b"9" * 5000,
    b"[" * 60_000,
    b'{"a":' * 10_000,
    b'["' + b"\\" * 60_001 + b'"]',
    b"\xff\xfe" + "{}".encode("utf-16-le"),
    b"\xef\xbb\xbf{}",
    b"\xed\xa0\x80",
    b"\0" * 4096,
    b"\n" * 500_000,
    zlib.compress(b"[" * 60_000_000, 9),
    zlib.compress(b'{"format":1}\n' + b"[]\n" * 5_000_000, 9),
    zlib.compress(b'{"format":1}\n[' + b"[]," * 13_000_000 + b"1]\n", 9),
    zlib.compress(b'{"format":1}\n' + b'["a","f",0,0,0,[],"",0,0]\n' * 300_000, 9),
    zlib.compress(b'{"format":1}\n{"entries":0,"objects":[]}\n'),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 256, 10**6, 10**12, 2**63, -(2**63), 10**30, 10**4000),
    *(0.5, -0.0, 1e308, float("nan"), float("inf"), "", "succeeded", "lost", "1", "²"),
    "x" * 50_000,
    *("\ud800", "caf\udce9", "\x1b]0;evil\x07\x1b[2J\r\n\u202e", "\0", "../../../etc/passwd", "/"),
    *([], {}, [[]], {"": ""}, [1, 2, 3], {"outcome": "failed"}),
)
_NAMES = (
    *("²", "١", "00000002", "000002", "99999999", "999999", "0000000²", "-1", "+1", "1_0", "0x10"),
    *("\n", "\x1b[31m", "a\u202eb", "x" * 200, "9" * 100, ".hidden", ".sojourn-x", "0000", "0001"),
    *("over", "members", "marks", "objects", "snapshots", "data", "a b", "'", "%s", "{}"),
    os.fsdecode(b"\xff\xfe"),
)
_TIMES = (0, 1, -(10**9), 10**18, 2**62, 253_402_300_800 * 10**9)  # ns; the last is year 10000
_DEEP = 70
_LARGEST = 1 << 20  # bytes of what is changed


def mangle(random: Random, store: Path) -> list[str]:
    """Change a store in a few ways; tells which."""
    told = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        change = random.choice(_CHANGES)
        with suppress(OSError, IndexError):  # not every name is possible, nor is all still there
            told.append(f"{change.__name__.strip('_')} {change(random, store)}")
    return told


def _file(random: Random, store: Path) -> Path:
    """Any object; each kind as likely as the others, however many there are of it."""
    kinds: dict[str, list[Path]] = {}
    for path in _files(store):
        kinds.setdefault("/".join(path.relative_to(store).parts[::2][:3]), []).append(path)
    return random.choice(kinds[random.choice(sorted(kinds))])


def _files(store: Path) -> list[Path]:
    """Those that can be opened: a former change may have put a pipe in a file's place."""
    found = sorted(store.rglob("*"))
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _read(path: Path) -> bytes:
    """Its beginning: a former change may have made it larger than the memory."""
    with path.open("rb") as file:
        return file.read(_LARGEST)


def _folder(random: Random, store: Path) -> Path:
    return random.choice(sorted({path.parent for path in store.rglob("*")}))


def _replaced(random: Random, store: Path) -> str:
    path, data = _file(random, store), random.choice(_BYTES)
    path.write_bytes(data)
    return f"{path.relative_to(store)} by {data[:40]!r}"


def _noise(random: Random, store: Path) -> str:
    path = _file(random, store)
    path.write_bytes(random.randbytes(random.choice((1, 30, 5000))))
    return f"{path.relative_to(store)}"


def _flipped(random: Random, store: Path) -> str:
    path = _file(random, store)
    data = bytearray(_read(path))
    for _ in range(random.choice((1, 1, 5))):
        if data:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    return f"{path.relative_to(store)}"


def _truncated(random: Random, store: Path) -> str:
    path = _file(random, store)
    size = random.randrange(path.stat().st_size + 1)
    os.truncate(path, size)
    return f"{path.relative_to(store)} to {size}"


def _grown(random: Random, store: Path) -> str:
    path, size = _file(random, store), random.choice((70_000, 40 << 20, 3 << 30, 1 << 40))
    os.truncate(path, size)
    return f"{path.relative_to(store)} to {size}"


def _swapped(random: Random, store: Path) -> str:
    one, other = _file(random, store), _file(random, store)
    data = _read(one)
    one.write_bytes(_read(other))
    other.write_bytes(data)
    return f"{one.relative_to(store)} and {other.relative_to(store)}"


def _copied(random: Random, store: Path) -> str:
    path, name = _file(random, store), random.choice(_NAMES)
    shutil.copyfile(path, path.with_name(name))
    return f"{path.relative_to(store)} as {name!r}"


def _added(random: Random, store: Path) -> str:
    folder, name, data = _folder(random, store), random.choice(_NAMES), random.choice(_BYTES)
    (folder / name).write_bytes(data)
    return f"{(folder / name).relative_to(store)!s:.99} with {data[:40]!r}"


def _deepened(random: Random, store: Path) -> str:
    folder = _folder(random, store)
    inner = folder.joinpath(*random.choices(("d", "snapshots", "0000"), k=_DEEP))
    inner.mkdir(parents=True)
    (inner / "x").touch()
    return f"{folder.relative_to(store)}"


def _renamed(random: Random, store: Path) -> str:
    path, name = random.choice(sorted(store.rglob("*"))), random.choice(_NAMES)
    path.rename(path.with_name(name))
    return f"{path.relative_to(store)} to {name!r}"


def _removed(random: Random, store: Path) -> str:
    path = random.choice(sorted(store.rglob("*")))
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    return f"{path.relative_to(store)}"


def _no_file(random: Random, store: Path) -> str:
    path = _file(random, store)
    path.unlink()
    kind = random.choice(("folder", "pipe", "link", "loop", "socket"))
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        _bind(path)
    return f"{path.relative_to(store)}: {kind}"


def _bind(path: Path) -> None:
    # By way of its folder: the names of sockets must be short.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _aged(random: Random, store: Path) -> str:
    path, time = _file(random, store), random.choice(_TIMES)
    with suppress(OverflowError):
        os.utime(path, ns=(time, time))
    return f"{path.relative_to(store)} to {time}"


def _said(random: Random, store: Path) -> str:
    """Something else in a JSON object that is right but for this."""
    found = []
    for path in _files(store):
        with suppress(OSError, ValueError, RecursionError):
            found.append((path, json.loads(_read(path))))
    path, value = random.choice(found)
    changed, what = _changed(random, value)
    path.write_text(json.dumps(changed))
    return f"{path.relative_to(store)}: {what}"


def _changed(random: Random, value: Any) -> tuple[Any, str]:
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(sorted(value))
        inner, what = _changed(random, value[key])
        return {**value, key: inner}, f"{key} {what}"
    evil = random.choice(_VALUES)
    return evil, f"is {str(evil)[:40]!r}" if not isinstance(evil, int) else "is a number"


def _entered(random: Random, store: Path) -> str:
    """Something else in a line of a manifest that is right but for this."""
    manifests = [path for path in _files(store) if path.parent.name == "snapshots"]
    path = random.choice(manifests or [_file(random, store)])
    try:
        lines = zlib.decompress(_read(path)).split(b"\n")
        number = random.randrange(len(lines) - 1)
        row = json.loads(lines[number])
    except (zlib.error, ValueError, RecursionError):
        return "nothing"
    if not row or not isinstance(row, (dict, list)):
        return "nothing"
    if isinstance(row, dict):
        row, what = _changed(random, row)
    else:
        place = random.randrange(len(row))
        row[place], what = _changed(random, row[place])
        what = f"{place} {what}"
    lines[number] = json.dumps(row).encode()
    path.write_bytes(zlib.compress(b"\n".join(lines)))
    return f"{path.relative_to(store)}: line {number}: {what}"


def _printed(random: Random, store: Path) -> str:
    """A log that no honest machine writes."""
    folder = store / "logs" / "0000" / "000001"
    stamp = b"2026-01-31T12:34:56.123456Z"
    data = random.choice(
        (
            stamp + b">" + b"x" * (30 << 20) + b"\n",
            (stamp + b">" + b"y" * 60_000 + b"\n") * 500,
            b"\n" * (20 << 20),
            (stamp + b"|\x1b[2J\xff\n") * 1000,
            b"\x1b" * 27 + b"|x\n",
            stamp + b"?" + b"\n",
        )
    )
    path = folder / f"{random.choice((1, 2, 7, 99_999_999)):08}"
    path.write_bytes(data)
    return f"{path.relative_to(store)} {data[:40]!r} x {len(data)}"


_CHANGES: tuple[Callable[[Random, Path], str], ...] = (
    *(_replaced, _replaced, _noise, _flipped, _truncated, _grown, _swapped, _copied, _added),
    *(_deepened, _renamed, _removed, _no_file, _aged, _said, _said, _said, _entered, _entered),
    *(_printed,),
)

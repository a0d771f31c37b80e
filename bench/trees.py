"""The folders that are transferred, and what is changed in them."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = [
    "change_middle",
    "make_empty_files",
    "make_large",
    "make_small",
    "rewrite_one",
    "summary",
]

MIB = 1 << 20
_PER_FOLDER = 100


def make_small(root: Path, count: int, size: int) -> Path:
    """Many small files of random bytes, a hundred to a folder."""
    for number in range(count):
        folder = root / f"{number // _PER_FOLDER:05}"
        if number % _PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"{number:07}.bin").write_bytes(os.urandom(size))
    return root


def make_large(root: Path, size: int) -> Path:
    """One file of random bytes."""
    root.mkdir(parents=True)
    with (root / "large.bin").open("wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
    return root


def make_empty_files(root: Path, count: int) -> Path:
    """Very many files, with a thousand in each folder."""
    for number in range(count):
        folder = f"{root}/{number // 1000:05}"
        if number % 1000 == 0:
            os.makedirs(folder)
        os.close(os.open(f"{folder}/{number:07}.txt", os.O_WRONLY | os.O_CREAT))
    return root


def rewrite_one(root: Path) -> None:
    """Give one small file another content of the same size."""
    path = sorted(sorted(root.iterdir())[-1].iterdir())[0]
    path.write_bytes(os.urandom(path.stat().st_size))


def change_middle(root: Path) -> None:
    """Change 1 MiB in the middle of the large file, in place."""
    with (root / "large.bin").open("r+b") as file:
        file.seek(file.seek(0, os.SEEK_END) // 2)
        file.write(os.urandom(MIB))


def summary(root: Path) -> tuple[int, int]:
    """How many files are there, and their bytes: to see that a tool did its work."""
    sizes = [
        (Path(where) / name).stat().st_size for where, _, names in os.walk(root) for name in names
    ]
    return len(sizes), sum(sizes)

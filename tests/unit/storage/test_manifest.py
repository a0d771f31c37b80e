from __future__ import annotations

import json
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.errors import IntegrityError, QuotaError
from sojourn.storage import manifest as module
from sojourn.storage.digest import digest_of
from sojourn.storage.manifest import (
    FILE,
    FOLDER,
    Entry,
    Manifest,
    Part,
    decode,
    encode,
    safe_target,
)
from tests.support.manifests import (
    CONTENT,
    DIGEST,
    GOOD_OBJECT,
    file_row,
    folder_row,
    link_row,
    raw_manifest,
)

HUGE = 10**30
OTHER = "0" * 64

names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(names.filter(lambda name: name not in (".", "..")), unique=True))
def test_manifests_come_back_as_they_were(found: list[str]) -> None:
    part = Part(GOOD_OBJECT, 0, len(CONTENT), DIGEST)
    hole = Part("", 0, 3, "")
    entries = {
        name: Entry(name, FILE, 0o640, -5, len(CONTENT) + 3, (hole, part), "", 7, 9)
        for name in found
    }
    manifest = Manifest(entries, {GOOD_OBJECT: len(CONTENT)})
    again = decode(encode(manifest))
    assert again == manifest
    assert list(again.entries) == found
    assert manifest.size == 10 * len(found)


def test_more_entries_than_one_group_come_back() -> None:
    entries = {str(n): Entry(str(n), FILE, 0o644, n) for n in range(2001)}
    assert decode(encode(Manifest(entries))).entries == entries


def test_an_empty_manifest_comes_back() -> None:
    assert decode(encode(Manifest())) == Manifest()


def test_the_handmade_manifest_is_fine_as_long_as_nothing_is_wrong_with_it() -> None:
    rows = [
        folder_row("a"),
        file_row("a/f"),
        link_row("a/l", "../a/f"),
        file_row("g\n"),
        file_row("\n"),
        file_row("..\n"),
        file_row("..."),
        file_row("a/\udcff"),
    ]
    assert len(decode(raw_manifest(rows)).entries) == len(rows)


BAD_PATHS = (
    "",
    ".",
    "..",
    "/",
    "/etc/passwd",
    "../x",
    "a/../../x",
    "a/../x",
    "a/..",
    "a//x",
    "a/./x",
    "a/",
    "./a",
    "a/x\0y",
    "a/\ud800",
    "\udcc3\udca9",  # another spelling of é
)


@pytest.mark.parametrize("path", BAD_PATHS)
@pytest.mark.parametrize("row", [file_row, folder_row, lambda path: link_row(path, "a")])
def test_paths_that_lead_elsewhere_are_refused(path: str, row: Any) -> None:
    with pytest.raises(IntegrityError):
        decode(raw_manifest([folder_row("a"), row(path)]))


@pytest.mark.parametrize(
    "rows",
    [
        [file_row("a/x")],
        [file_row("a"), file_row("a/x")],
        [link_row("a", "b"), file_row("a/x")],
        [link_row("a", "."), folder_row("a/b"), file_row("a/b/x")],
        [file_row("a/x"), folder_row("a")],
        [file_row("a"), file_row("a")],
        [link_row("a", "b"), folder_row("a"), file_row("a/x")],
        [folder_row("a"), link_row("a", "b")],
    ],
    ids=[
        "no folder",
        "below a file",
        "below a symlink",
        "deep below a symlink",
        "before its folder",
        "twice",
        "a symlink, then a folder",
        "a folder, then a symlink",
    ],
)
def test_entries_that_are_not_in_a_folder_of_their_own_are_refused(rows: list[Any]) -> None:
    with pytest.raises(IntegrityError):
        decode(raw_manifest(rows))


BAD_TARGETS = (
    "/etc/passwd",
    "/",
    "..",
    "../..",
    "../../x",
    "../../../x",
    "a/..",
    "a/../..",
    "a/../../x",
    "../a/../../x",
    "./../..",
    "..//..",
    "",
    "a\0",
    "a\ud800",
)


@pytest.mark.parametrize("target", BAD_TARGETS)
def test_symlinks_that_leave_are_refused(target: str) -> None:
    if target == "..":
        rows = [link_row("link", target)]
    else:
        rows = [folder_row("a"), link_row("a/link", target)]
    with pytest.raises(IntegrityError):
        decode(raw_manifest(rows))


@pytest.mark.parametrize("target", ["x", "../x", "..", ".", "./x", "../b/x", "..//x", "...", "..x"])
def test_symlinks_that_stay_are_accepted(target: str) -> None:
    assert safe_target("a/link", target)
    decode(raw_manifest([folder_row("a"), link_row("a/link", target)]))


@pytest.mark.parametrize(
    "change",
    [
        {"parts": [[0, 1, len(CONTENT), DIGEST]]},
        {"parts": [[0, -1, len(CONTENT), DIGEST]]},
        {"parts": [[0, 0, -1, DIGEST]], "size": -1},
        {"parts": [[0, 0, 0, DIGEST]], "size": 0},
        {"parts": [[0, 0, HUGE, DIGEST]], "size": HUGE},
        {"parts": [[-1, 0, HUGE, ""]], "size": HUGE},
        {"parts": [[-1, 0, -3, ""]], "size": -3},
        {"parts": [[-1, 0, 0, ""]], "size": 0},
        {"parts": [[-1, 5, 3, ""]], "size": 3},
        {"parts": [[-1, 0, 3, DIGEST]], "size": 3},
        {"parts": [[-2, 0, len(CONTENT), DIGEST]]},
        {"parts": [[1, 0, len(CONTENT), DIGEST]]},
        {"parts": [[0, 0, len(CONTENT), ""]]},
        {"parts": [[0, 0, len(CONTENT), DIGEST.upper()]]},
        {"parts": [[0, 0, len(CONTENT), None]]},
        {"parts": [[0, 0, len(CONTENT)]]},
        {"parts": []},
        {"parts": None},
        {"parts": [[0, 0, 1e400, DIGEST]]},
        {"size": HUGE},
        {"size": -1},
        {"size": "x"},
        {"size": 1e400},
        {"mtime": HUGE},
        {"mtime": -HUGE},
        {"mtime": None},
        {"kind": "x"},
        {"kind": "d"},
        {"kind": "l", "target": "a"},
        {"kind": "d", "parts": []},
        {"kind": "l", "target": "a", "parts": []},
        {"kind": "l", "target": 5, "size": 0, "parts": []},
        {"kind": ["f"]},
        {"path": 5},
        {"path": None},
        {"path": ["a"]},
    ],
    ids=repr,
)
def test_impossible_entries_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        decode(raw_manifest([file_row(**({"path": "f"} | change))]))


@pytest.mark.parametrize(
    "path",
    [
        f"../other/objects/{DIGEST}",
        f"workdir/objects/../../objects/{DIGEST}",
        f"/workdir/objects/{DIGEST}",
        f"workdir/objects/{DIGEST}/x",
        f"workdir/objects/{DIGEST}\n",
        f"workdir/snapshots/{DIGEST}",
        f"ranks/../data/1/objects/{DIGEST}",
        f"ranks/²/data/1/objects/{DIGEST}",
        "environment.json",
        "",
        None,
    ],
)
def test_objects_outside_of_the_task_are_refused(path: Any) -> None:
    with pytest.raises(IntegrityError):
        decode(raw_manifest([], [(path, 1)]))


def test_a_manifest_cut_off_at_any_byte_is_refused() -> None:
    data = raw_manifest([folder_row("a"), file_row("a/f"), link_row("l", "a/f")])
    for end in range(len(data)):
        with pytest.raises(IntegrityError):
            decode(data[:end])
    assert len(decode(data).entries) == 3


def test_our_own_manifest_cut_off_at_any_byte_is_refused() -> None:
    data = encode(Manifest({"a": Entry("a", FILE, 0o644, 1)}, {GOOD_OBJECT: 1}))
    for end in range(len(data)):
        with pytest.raises(IntegrityError):
            decode(data[:end])


def test_a_manifest_with_any_bit_turned_is_refused() -> None:
    rows = [file_row(f"file {number}") for number in range(5)]
    data = raw_manifest(rows)
    good = decode(data)
    for position in range(len(data)):
        for bit in range(8):
            bad = bytearray(data)
            bad[position] ^= 1 << bit
            try:
                assert decode(bytes(bad)) == good  # of a header's bits that mean nothing
            except IntegrityError:
                continue


@pytest.mark.parametrize(
    "data",
    [
        raw_manifest([], entries=1),
        raw_manifest([file_row("a")], entries=0),
        raw_manifest([]) + b"more",
        raw_manifest([]) + raw_manifest([file_row("a")]),
        zlib.compress(zlib.decompress(raw_manifest([])) + b"[]\n"),
        zlib.compress(zlib.decompress(raw_manifest([])) + b"x"),
        zlib.compress(zlib.decompress(raw_manifest([])).rstrip(b"\n")),
        raw_manifest([], head={"format": 2}),
        raw_manifest([], head={}),
        raw_manifest([], head=[]),
        raw_manifest([[]]),
        raw_manifest([5]),
        raw_manifest([], [("a",)]),
        raw_manifest([], [(GOOD_OBJECT, 1e400)]),
        zlib.compress(b'{"format":1}\n' + b"[" * 200_000 + b"\n"),
        zlib.compress(b"\xff\xfe\n"),
        zlib.compress(b""),
        b"",
        b"not compressed",
        json.dumps({"format": 1}).encode(),
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        decode(data)


MIB = 1 << 20
HEAD = b'{"format":1}\n'


def _folders(count: int, name: str) -> list[bytes]:
    return [json.dumps(folder_row(f"{name}{number}")).encode() + b"\n" for number in range(count)]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + b"\n" * 32 * MIB,
        HEAD + b"".join(_folders(2000, "d" * 10_000)) + b'{"entries":2000,"objects":[]}\n',
        HEAD + b'{"entries":0,"objects":[' + b'["ab",1]' + b',"cd"' * 2 * MIB + b"]}\n",
        HEAD + b"[" + b"a" * 32 * MIB,
        b"a" * 32 * MIB,
        HEAD + (b"[" + b"a" * 1000 + b"]\n") * 32_000,
        HEAD + b'{"entries":0,"objects":[[]' + b",[]" * 2 * MIB + b"]}\n",
    ],
    ids=[
        "empty lines",
        "long paths",
        "strings",
        "an endless line",
        "an endless head",
        "no entries",
        "empty lists",
    ],
)
def test_a_manifest_that_would_fill_the_memory_is_refused_at_once(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_LINE", 8 * MIB)
    monkeypatch.setattr(module, "_MEMORY", 8 * MIB)
    monkeypatch.setattr(module, "_LISTS", MIB)
    data = zlib.compress(text, 9)
    assert len(data) < 70_000
    tracemalloc.start()
    try:
        with pytest.raises(IntegrityError):
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 24 * MIB
    finally:
        tracemalloc.stop()


def test_a_manifest_that_is_larger_than_any_snapshot_is_refused() -> None:
    row = json.dumps(folder_row("a" * 4000)).encode() + b"\n"
    with pytest.raises(IntegrityError, match="it is too large"):
        decode(zlib.compress(HEAD + row * 5000, 9))


def test_no_memory_left_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(module, "_entry", full)
    with pytest.raises(IntegrityError, match="memory"):
        decode(raw_manifest([folder_row("a")]))


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(
        ["", ".", "..", "a", "f", "d", "l", "/a", "../a", "in/a", "in/..", "a\0", "\ud800"]
    ),
    st.lists(st.integers(), max_size=4),
    st.just({}),
)


@given(st.integers(0, 8), odd, st.integers(0, 3), odd, st.sampled_from(["a", "in/a", "x/a"]))
def test_the_quick_way_takes_nothing_that_the_thorough_one_refuses(
    at: int, value: Any, part_at: int, part_value: Any, path: str
) -> None:
    for change_part in (False, True):
        row = file_row(path)
        if change_part:
            row[5][0][part_at] = part_value
        else:
            row[at] = value
        data = raw_manifest([folder_row("in"), file_row("in/first"), row])
        with pytest.MonkeyPatch.context() as patch:
            quick = _decoded(data)
            patch.setattr(module, "_plain_file", lambda *_: None)
            assert _decoded(data) == quick


def _decoded(data: bytes) -> Manifest | None:
    try:
        return decode(data)
    except IntegrityError:
        return None


def test_lines_that_are_entries_only_together_are_refused() -> None:
    whole = json.dumps(file_row("a"))
    text = f"{whole[:9]}\n{whole[9:]}\n".encode()
    tail = json.dumps({"entries": 2, "objects": [[GOOD_OBJECT, len(CONTENT)]]}).encode()
    with pytest.raises(IntegrityError):
        decode(zlib.compress(HEAD + text + tail + b"\n"))


def test_what_shrinks_well_and_is_honest_comes_back() -> None:
    hole = Part("", 0, 8 * MIB, "")
    deep = "/".join(["я" * 100] * 19)
    folders = [deep[:end] for end in range(100, len(deep) + 1, 101)]
    entries = {path: Entry(path, FOLDER, 0o755, 1) for path in folders}
    entries["sparse"] = Entry("sparse", FILE, 0o644, 1, 100_000 * hole.length, (hole,) * 100_000)
    entries |= {path: Entry(path, FILE, 0o644, 1) for path in (f"{deep}/{n}" for n in range(1000))}
    data = encode(Manifest(entries))
    assert len(zlib.decompress(data)) > 100 * len(data)
    assert decode(data).entries == entries


def test_more_parts_than_fit_into_a_piece_come_back() -> None:
    objects = {f"workdir/objects/{digest_of(str(n).encode())}": 5 for n in range(15_000)}
    parts = tuple(Part(path, 0, 5, path[-64:]) for path in objects)
    manifest = Manifest({"f": Entry("f", FILE, 0o644, 1, 75_000, parts)}, objects)
    assert decode(encode(manifest)) == manifest


@given(st.binary(max_size=200))
def test_junk_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        decode(data)
    with pytest.raises(IntegrityError):
        decode(zlib.compress(data))


def test_same_content_is_about_what_a_reader_sees() -> None:
    part = Part(GOOD_OBJECT, 0, 7, DIGEST)
    one = Entry("a", FILE, 0o644, 1, 7, (part,))
    assert one.same_content(one._replace(path="b", mode=0, mtime=9))
    assert one.same_content(one._replace(parts=(part._replace(object="x", offset=4),)))
    assert not one.same_content(one._replace(parts=(part._replace(digest=OTHER),)))
    assert not one.same_content(one._replace(size=8))
    assert not one.same_content(one._replace(kind="l"))


def test_more_entries_than_an_honest_one_can_have_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MEMORY", 1000 * 400)
    rows = b"".join(json.dumps(folder_row(f"{n:06}")).encode() + b"\n" for n in range(5000))
    tail = json.dumps({"entries": 5000, "objects": []}).encode() + b"\n"
    assert _decoded(zlib.compress(HEAD + rows + tail, 9)) is None
    holes = [[-1, 0, 1, ""]] * 5000
    row = json.dumps(file_row("a", size=5000, parts=holes)).encode() + b"\n"
    tail = json.dumps({"entries": 1, "objects": []}).encode() + b"\n"
    assert _decoded(zlib.compress(HEAD + row + tail, 9)) is None


def test_what_no_reader_would_take_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Entry("a", FILE, 0o644, 1, 1, (Part(GOOD_OBJECT, 0, 1, DIGEST),))
    for name in ("_MEMORY", "_OBJECTS", "_LARGEST", "_LONGEST_LINE"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, 0)
            with pytest.raises(QuotaError, match="million files fit"):
                encode(Manifest({"a": large}, {GOOD_OBJECT: 1}))


def test_a_writer_and_a_reader_allow_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {f"{n:06}": Entry(f"{n:06}", FOLDER, 0o755, 1) for n in range(1000)}
    data = encode(Manifest(entries))
    for memory in range(400_000, 420_000, 1000):
        monkeypatch.setattr(module, "_MEMORY", memory)
        taken = _decoded(data) is not None
        try:
            encode(Manifest(entries))
        except QuotaError:
            assert not taken
        else:
            assert taken


@pytest.mark.parametrize("target", ["[" * 900 + "]" * 900, "{}", "null", "1"])
def test_what_nobody_looks_at_is_checked_as_well(target: str) -> None:
    row = json.dumps(file_row("a", target="T")).replace('"T"', target)
    table = [[GOOD_OBJECT, 7]]
    tail = json.dumps({"entries": 1, "objects": table})
    assert _decoded(zlib.compress(HEAD + f"{row}\n{tail}\n".encode())) is None

"""What every store promises; the words are in `storage.store.Store`."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

from sojourn.core.errors import IntegrityError, NotFound
from sojourn.storage.store import Store, StoreAddress, open_store

RACERS = 16


def paths(store: Store, prefix: str, after: str = "") -> list[str]:
    return [item.path for item in store.list(prefix, after)]


def test_what_is_put_comes_back(store: Store) -> None:
    store.put("a/b", b"one")
    assert bytes(store.get("a/b")) == b"one"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_every_kind_of_buffer_can_be_put(store: Store, kind: type) -> None:
    store.put("a", kind(b"content"))
    assert store.put_new("b", kind(b"content"))
    assert not store.put_new("b", kind(b"other"))
    assert bytes(store.get("a")) == bytes(store.get("b")) == b"content"


def test_empty_objects_are_objects(store: Store) -> None:
    store.put("empty", b"")
    info = store.head("empty")
    assert bytes(store.get("empty")) == b""
    assert info is not None
    assert info.size == 0


def test_a_put_replaces(store: Store) -> None:
    store.put("a", b"a longer one")
    store.put("a", b"two")
    assert bytes(store.get("a")) == b"two"


def test_big_values(store: Store) -> None:
    big = os.urandom(1 << 20) * 24
    store.put("big", big)
    assert store.put_new("new", big)
    store.copy("big", "copy")
    for path in ("big", "new", "copy"):
        assert store.get(path) == big
    assert store.get_ranges("big", [(20 << 20, 1000)])[0] == big[20 << 20 :][:1000]


def test_reading_the_absent_raises_not_found(store: Store) -> None:
    store.put("a/b", b"")
    for absent in ("none", "a", "a/b/c", "a/bb"):
        with pytest.raises(NotFound, match=absent):
            store.get(absent)
        with pytest.raises(NotFound, match=absent):
            store.get_ranges(absent, [(0, 1)])
        assert store.head(absent) is None
    with pytest.raises(NotFound, match="none"):
        store.copy("none", "target")


def test_put_new_does_not_replace(store: Store) -> None:
    assert store.put_new("a", b"one")
    assert not store.put_new("a", b"two")
    assert bytes(store.get("a")) == b"one"


def test_put_new_is_won_again_by_a_repeat_with_the_same_bytes(store: Store) -> None:
    assert store.put_new("a", b"one")
    assert store.put_new("a", b"one")


def test_put_new_does_not_replace_what_was_put_or_copied(store: Store) -> None:
    store.put("put", b"one")
    store.copy("put", "copied")
    assert not store.put_new("put", b"two")
    assert not store.put_new("copied", b"two")


def test_put_new_after_a_delete_is_new(store: Store) -> None:
    store.put_new("a", b"one")
    store.delete(["a"])
    assert store.put_new("a", b"two")


def test_of_racing_creators_exactly_one_wins(store: Store) -> None:
    start = threading.Barrier(RACERS)

    def race(number: int) -> bool:
        start.wait()
        return store.put_new("prize", b"racer %d" % number)

    with ThreadPoolExecutor(RACERS) as pool:
        won = list(pool.map(race, range(RACERS)))
    assert won.count(True) == 1
    assert bytes(store.get("prize")) == b"racer %d" % won.index(True)


def test_readers_never_see_half_an_object(store: Store) -> None:
    contents = [bytes([number]) * 300_000 for number in range(4)]
    store.put("a", contents[0])
    with ThreadPoolExecutor(4) as pool:
        puts = [pool.submit(store.put, "a", content) for content in contents * 4]
        seen = [pool.submit(store.get, "a") for _ in range(32)]
        assert all(bytes(future.result()) in contents for future in seen)
        for put in puts:
            put.result()


def test_a_copy_is_independent_of_its_source(store: Store) -> None:
    store.put("a", b"one")
    store.copy("a", "deep/b")
    store.put("a", b"two")
    assert bytes(store.get("deep/b")) == b"one"
    store.delete(["a"])
    assert bytes(store.get("deep/b")) == b"one"


def test_a_copy_replaces(store: Store) -> None:
    store.put("a", b"one")
    store.put("b", b"two")
    store.copy("a", "b")
    assert bytes(store.get("b")) == b"one"


def test_listings_are_sorted_and_whole(store: Store) -> None:
    names = [f"x/{number:04}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.put(name, b"12345"), reversed(names)))
    found = store.list("x")
    assert [item.path for item in found] == names
    assert {item.size for item in found} == {5}


@pytest.mark.slow
def test_listings_of_many_pages(store: Store) -> None:
    names = [f"x/{number:05}" for number in range(2100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.put(name, b""), names))
    assert paths(store, "x") == names
    assert paths(store, "x", after=names[1050]) == names[1051:]
    store.delete(names)
    assert paths(store, "x") == []


def test_listings_sort_across_folders_as_paths_do(store: Store) -> None:
    names = ["a/1/z", "a/1-/b", "a/10/b", "a/2"]
    for name in names:
        store.put(name, b"")
    assert paths(store, "a") == sorted(names)


def test_a_prefix_does_not_match_names_that_only_begin_alike(store: Store) -> None:
    for name in ("a/b/1", "a/bc/1", "a/b1", "ab/b/1"):
        store.put(name, b"")
    assert paths(store, "a/b") == ["a/b/1"]
    assert paths(store, "a") == ["a/b/1", "a/b1", "a/bc/1"]


def test_an_empty_prefix_lists_everything(store: Store) -> None:
    for name in ("top", "a/b"):
        store.put(name, b"")
    assert paths(store, "") == ["a/b", "top"]


def test_nothing_is_listed_of_an_absent_folder(store: Store) -> None:
    assert store.list("absent") == []


def test_listings_after_a_name_leave_it_out(store: Store) -> None:
    for number in range(5):
        store.put(f"x/{number}", b"")
    assert paths(store, "x", after="x/2") == ["x/3", "x/4"]
    assert paths(store, "x", after="x/25") == ["x/3", "x/4"]
    assert paths(store, "x", after="x/4") == []
    assert len(paths(store, "x", after="")) == 5


def test_a_listing_can_be_after_a_name_in_another_folder(store: Store) -> None:
    for name in ("logs/0/1/3", "logs/0/2/1"):
        store.put(name, b"")
    assert paths(store, "logs/0", after="logs/0/1/3") == ["logs/0/2/1"]


def test_head_tells_size_and_time(store: Store) -> None:
    before = datetime.now(timezone.utc)
    store.put("a", b"12345")
    info = store.head("a")
    assert info is not None
    assert (info.path, info.size) == ("a", 5)
    assert abs(info.modified - before) < timedelta(seconds=30)


def test_a_put_of_the_same_bytes_renews_the_time(store: Store, address: StoreAddress) -> None:
    store.put("a", b"same")
    first = store.head("a")
    give_up = datetime.now(timezone.utc) + timedelta(seconds=5)
    while datetime.now(timezone.utc) < give_up:
        store.put("a", b"same")
        now = store.head("a")
        assert first is not None
        assert now is not None
        if now.modified > first.modified:
            return
    pytest.fail("the time stood still")


def test_some_ranges_of_an_object(store: Store) -> None:
    store.put("a", bytes(range(100)))
    parts = store.get_ranges("a", [(90, 10), (0, 1), (50, 2)])
    assert [bytes(part) for part in parts] == [bytes(range(90, 100)), b"\0", b"23"]
    assert store.get_ranges("a", []) == []


def test_a_range_beyond_the_end_gives_what_is_there(store: Store) -> None:
    store.put("a", b"0123456789")
    assert bytes(store.get_ranges("a", [(8, 10)])[0]) == b"89"


def test_a_range_outside_of_an_object_tells_that_it_is_damaged(store: Store) -> None:
    store.put("a", b"0123456789")
    with pytest.raises(IntegrityError):
        store.get_ranges("a", [(100, 10)])


def test_deleting_the_absent_is_no_error(store: Store) -> None:
    store.delete(["none", "no/ne"])
    store.delete([])


def test_deleting_goes_on_past_the_absent(store: Store) -> None:
    for name in ("a", "c", "x/y"):
        store.put(name, b"")
    store.delete(["a", "b", "c", "x/y"])
    assert store.list("") == []


def test_deleting_leaves_the_rest(store: Store) -> None:
    for name in ("a", "a2", "x/y", "x/y2"):
        store.put(name, b"")
    store.delete(["a", "x/y"])
    assert paths(store, "") == ["a2", "x/y2"]


def test_opening_twice_shows_the_same(store: Store, address: StoreAddress) -> None:
    store.put("a/b", b"one")
    assert bytes(open_store(address).get("a/b")) == b"one"


def test_what_is_larger_than_its_reader_wants_is_refused(store: Store) -> None:
    store.put("a", b"12345")
    assert bytes(store.get("a", most=5)) == b"12345"
    with pytest.raises(IntegrityError, match=r"too large \(5 bytes\)"):
        store.get("a", most=4)
    assert bytes(store.get("a")) == b"12345"


def test_put_new_does_not_fetch_what_somebody_else_made_large(store: Store) -> None:
    store.put("a", bytes(1 << 20))
    assert not store.put_new("a", b"one")

"""A dictionary that keeps the entries that were set last."""

from kit.newest import NewestEntries


def test_the_entry_that_was_not_set_for_longest_is_dropped() -> None:
    kept = NewestEntries[str, int](2)
    kept["a"], kept["b"] = 1, 2
    kept["a"] = 3
    kept["c"] = 4
    assert dict(kept) == {"a": 3, "c": 4}
    assert kept.pop("a") == 3
    kept["d"] = 5
    assert list(kept) == ["c", "d"]

"""The table of attacks adds up what the tests counted."""

import pytest

from tests.attempts import KEY, sums, table


def report(when: str, *counted: tuple[str, int, int]) -> pytest.TestReport:
    properties: list[tuple[str, object]] = [("other", 1), *((KEY, one) for one in counted)]
    return pytest.TestReport("test", ("", 0, ""), {}, "passed", None, when, user_properties=properties)  # type: ignore[arg-type]


def test_attempts_of_several_tests_add_up_and_count_once() -> None:
    one = [
        report(when, ("frames of /channel", 1000, 0), ("open redirects", 43, 1)) for when in ("call", "teardown")
    ]
    total = sums([*one, report("call", ("frames of /channel", 500, 2))])
    assert total == {"frames of /channel": (1500, 2), "open redirects": (43, 1)}
    assert table(total)[2:] == ["| frames of /channel | 1,500 | 2 |", "| open redirects | 43 | 1 |"]

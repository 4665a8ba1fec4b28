"""Values that count as a traceparent, and the traceparent of each further step."""

import logging
from contextvars import copy_context

from hub.logs import EventFormatter
from kit import trace

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


def test_what_is_not_valid_is_none() -> None:
    wrong = [
        "",
        "nonsense",
        GOOD.upper(),
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"{GOOD}-more",
        f"{GOOD}-",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-0g",
        f"0-{TRACE}-{SPAN}-01",
        f"01-{TRACE}-{SPAN}-01more",
        GOOD + "\n",
        "٠٠" + GOOD[2:],
        GOOD + "\0",
        GOOD * 1000,
    ]
    assert [value for value in wrong if trace.read([value])] == []
    assert trace.read([GOOD, GOOD]) == trace.read([]) == ""


def test_a_later_version_is_read_by_its_first_fields() -> None:
    for value, read in (
        (GOOD, GOOD),
        (f" {GOOD}\t", GOOD),
        (f"00-{TRACE}-{SPAN}-a5", f"00-{TRACE}-{SPAN}-a5"),
        (f"cc-{TRACE}-{SPAN}-ff-what-comes", f"00-{TRACE}-{SPAN}-03"),
        (f"01-{TRACE}-{SPAN}-01", GOOD),
    ):
        assert trace.read([value]) == read, value


def test_a_step_has_a_span_of_its_own_in_the_same_trace() -> None:
    steps = {trace.follow(GOOD) for _ in range(10)}
    assert len(steps) == 10
    assert GOOD not in steps
    for step in steps:
        assert trace.read([step]) == step
        assert (step[:36], step[52:]) == (GOOD[:36], "-01")
        assert trace.trace_id(step) == TRACE


def test_without_a_parent_a_trace_begins_that_is_not_sampled() -> None:
    begun = {trace.follow("") for _ in range(10)}
    assert len({trace.trace_id(one) for one in begun}) == 10
    assert all(trace.read([one]) == one and one.endswith("-00") for one in begun)


def test_log_lines_name_the_trace_of_the_request_they_are_about() -> None:
    record = logging.LogRecord("hub", logging.ERROR, "", 0, "it.broke", None, None)
    assert "trace_id" not in EventFormatter().format(record)

    def serve() -> str:
        trace.current_span.set(trace.follow(GOOD))
        return EventFormatter().format(record)

    assert copy_context().run(serve).endswith(f"trace_id='{TRACE}'")

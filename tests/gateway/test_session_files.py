"""`session.jsonl`: what an export holds, and which files are refused whole."""

import hashlib
import json
from typing import Any

import pytest

from gateway.service.session_entries import LogEntry
from gateway.service.session_files import MAX_LINES, MAX_SESSIONS, read_file, write_export
from gateway.wire.errors import FrameRefused
from lab.frames import Json

ENTRIES = [
    LogEntry(timestamp_ms=1_000, role="user", content="hallo, wie geht's? é", id="m-1"),
    LogEntry(timestamp_ms=2_000, role="agent", content={"plan": [1, 2]}),
]
LINE = {"timestamp": 1, "role": "user", "content": "hi", "sessionId": "s-1", "id": "m-1"}


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in values)


def export(head: Json | None = None, body: bytes | None = None) -> bytes:
    """An export of two entries, with keys of the header or the lines changed."""
    first, _, rest = write_export("alpha", "s-1", ENTRIES).partition(b"\n")
    body = rest if body is None else body
    return json.dumps(json.loads(first) | (head or {})).encode() + b"\n" + body


def refusal(data: bytes, index: bytes = b"") -> str:
    with pytest.raises(FrameRefused) as refused:
        read_file(data, "beta", index)
    assert refused.value.code == 4004, refused.value
    return refused.value.field


def test_an_export_has_a_header_with_count_and_sum() -> None:
    head, body = write_export("alpha", "s-1", ENTRIES).split(b"\n", 1)
    assert json.loads(head) == {
        "export": 1,
        "agent": "alpha",
        "sessionId": "s-1",
        "entries": 2,
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    assert [json.loads(line) for line in body.splitlines()] == [
        {"timestamp": 1000, "role": "user", "content": "hallo, wie geht's? é", "sessionId": "s-1", "id": "m-1"},
        {"timestamp": 2000, "role": "agent", "content": {"plan": [1, 2]}, "sessionId": "s-1"},
    ]
    (read,) = read_file(export(), "beta")
    assert (read.agent, read.session_id, read.entries) == ("alpha", "s-1", ENTRIES)


def test_a_plain_file_holds_several_sessions_and_its_torn_last_line_is_dropped() -> None:
    other = LINE | {"sessionId": "s-2", "timestamp": "2026-01-01T00:00:00Z"}
    whole = lines(LINE, other, LINE | {"id": "m-2"}, LINE)  # the last has an id that came before
    for torn in (b"", b'{"timestamp": 3, "role": "us', b'{"content": "\xc3'):
        first, second = read_file(whole + torn, "beta")
        assert (first.agent, first.session_id, [one.id for one in first.entries]) == (
            "beta",
            "s-1",
            ["m-1", "m-2"],
        )
        assert (second.session_id, second.entries[0].timestamp_ms) == ("s-2", 1_767_225_600_000)
    (unended,) = read_file(lines(LINE) + json.dumps(LINE | {"id": "m-9"}).encode(), "beta")
    assert [one.id for one in unended.entries] == ["m-1", "m-9"]
    twins = lines(*[{name: value for name, value in LINE.items() if name != "id"}] * 2)
    assert len(read_file(twins, "beta")[0].entries) == 2  # without an id there is nothing to tell


def test_lines_without_a_session_get_that_of_the_index() -> None:
    bare = lines({name: value for name, value in LINE.items() if name != "sessionId"})
    index = {"agent:alpha:main": {"sessionId": "s-7", "updatedAt": 1}, "agent:alpha:other": {"sessionId": "s-8"}}
    (read,) = read_file(bare, "beta", json.dumps(index).encode())
    assert (read.agent, read.session_id) == ("alpha", "s-7")
    index["agent:beta:main"] = {"sessionId": "s-9"}
    assert read_file(bare, "beta", json.dumps(index).encode())[0].session_id == "s-9"
    assert refusal(bare) == "line 1"
    for wrong in ("[]", "{}", "nope", '{"agent:beta:main": {}}', '{"agent:x:main": "a", "agent:y:main": "b"}'):
        assert refusal(bare, wrong.encode()) == "index"


def test_an_export_that_was_changed_is_refused() -> None:
    heads: list[Json] = [{"export": 2}, {"export": True}, {"entries": 3}, {"entries": None}, {"sha256": "0" * 64}]
    heads += [{"agent": "No Agent"}, {"sessionId": ""}, {"sessionId": "s-2"}]
    for data in (*map(export, heads), export(body=b""), export()[:-1], export()[:-9]):
        assert refusal(data).startswith("line ")


WRONG: dict[str, list[Any]] = {
    "timestamp": [None, "soon", True, 10**400],
    "role": ["owner", ["user"]],
    "content": [None, [1], "\x00", "\ud800"],
    "sessionId": ["", 7, "a\nb"],
    "id": [7, "x" * 129],
}
NO_ENTRIES = (b"", b"not json", b"[]", b"7", b"null", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"a": 1, "a": 2}')


def test_a_line_with_a_wrong_value_or_that_is_no_entry_is_named() -> None:
    bad = [lines(LINE | {name: value}) for name, values in WRONG.items() for value in values]
    for line in (*bad, *(one + b"\n" for one in NO_ENTRIES)):
        assert refusal(lines(LINE) + line + lines(LINE)) == "line 2", line[:80]


def test_any_byte_that_is_lost_or_changed_is_noticed() -> None:
    whole = export()
    for place in range(whole.index(b"\n"), len(whole), 3):
        for changed in (whole[:place] + whole[place + 1 :], whole[:place] + b"\x07" + whole[place + 1 :]):
            refusal(changed)


def test_a_file_holds_at_most_so_many_sessions_and_lines() -> None:
    sessions = lines(*(LINE | {"sessionId": f"s-{number}"} for number in range(MAX_SESSIONS + 1)))
    with pytest.raises(FrameRefused, match=f"at most {MAX_SESSIONS} sessions"):
        read_file(sessions, "beta")
    with pytest.raises(FrameRefused, match=f"at most {MAX_LINES} lines") as refused:
        read_file(b"\n" * (MAX_LINES + 1), "beta")
    assert refused.value.reason == "too_large"

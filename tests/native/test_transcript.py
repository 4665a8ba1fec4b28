"""Reading what happened in a session: events, op-messages and the timeline."""

from typing import Any

import pytest

from agents.models import Session
from tests.native.rows import Person, api, make_session, names
from tests.native.transcripts import add_events, add_file, add_messages, ago


def read(person: Person, session: Session, path: str) -> Any:
    answer = api(person.session).get(f"/api/v1/sessions/{session.public_id}/{path}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_an_event_shows_what_was_stored(alice: Person, session: Session) -> None:
    (event,) = add_events(session, kind="tail", type="PreToolUse", payload='{"tool_name":"Bash","n":[1,{}]}')
    body = read(alice, session, "events")
    assert set(body) == {"items", "firstId", "lastId", "hasMore"}
    (shown,) = body["items"]
    assert shown.pop("ts").endswith("Z")
    assert shown == {
        "id": event.pk,
        "sessionId": str(session.public_id),
        "kind": "tail",
        "type": "PreToolUse",
        "payload": {"tool_name": "Bash", "n": [1, {}]},
    }
    assert (body["firstId"], body["lastId"], body["hasMore"]) == (event.pk, event.pk, False)


def test_whatever_payload_was_stored_comes_out_as_it_is(alice: Person, session: Session) -> None:
    for payload in [
        '{"n":1' + "0" * 5000 + "}",
        '{"a":' * 20_000 + "1" + "}" * 20_000,
        '{"a":"\\ud800"}',
        '{"a":"\\u0000"}',
        '{"a":1e999}',
    ]:
        for path in ["events", "timeline"]:
            add_events(session, payload=payload)
            answer = api(alice.session).get(f"/api/v1/sessions/{session.public_id}/{path}")
            assert answer.status_code == 200, path
            assert answer["Content-Type"] == "application/json", path
            assert payload.encode() in answer.content, path


def test_an_op_message_shows_its_author_and_mentions(alice: Person, bob: Person, session: Session) -> None:
    (message,) = add_messages(session, author=bob.user, text="see @alice", mentions=["alice"])
    (shown,) = read(alice, session, "op-messages")["items"]
    assert shown.pop("ts").endswith("Z")
    assert shown == {
        "id": message.pk,
        "sessionId": str(session.public_id),
        "authorLogin": "bob",
        "text": "see @alice",
        "mentions": ["alice"],
        "editedAt": None,
        "deletedAt": None,
    }


def test_an_empty_transcript_is_an_empty_page(alice: Person, session: Session) -> None:
    for path in ("events", "op-messages"):
        assert read(alice, session, path) == {"items": [], "firstId": None, "lastId": None, "hasMore": False}
    assert read(alice, session, "timeline") == {"items": []}


@pytest.mark.parametrize(("path", "add"), [("events", add_events), ("op-messages", add_messages)])
def test_the_cursors_walk_all_rows_once_in_both_directions(
    alice: Person, session: Session, path: str, add: Any
) -> None:
    other = make_session(alice.user, "other")
    ids = []
    for _ in range(7):
        ids.append(add(session)[0].pk)
        add(other)
    forward, cursor = [], 0
    while True:
        page = read(alice, session, f"{path}?limit=3&after={cursor}")
        forward += names(page["items"], "id")
        if not page["hasMore"]:
            break
        cursor = page["lastId"]
    assert forward == ids
    page = read(alice, session, f"{path}?limit=3")
    backward = names(page["items"], "id")
    while page["hasMore"]:
        page = read(alice, session, f"{path}?limit=3&before={page['firstId']}")
        backward = names(page["items"], "id") + backward
    assert backward == ids


def test_without_a_cursor_the_newest_come_ascending(alice: Person, session: Session) -> None:
    ids = [event.pk for event in add_events(session, 5)]
    page = read(alice, session, "events?limit=2")
    assert (names(page["items"], "id"), page["hasMore"]) == (ids[3:], True)
    assert read(alice, session, f"events?after={ids[-1]}")["items"] == []


def test_a_limit_above_the_highest_gets_the_highest(alice: Person, session: Session) -> None:
    add_events(session, 210)
    assert len(read(alice, session, "events")["items"]) == 200
    assert len(read(alice, session, "events?limit=5000")["items"]) == 210
    add_messages(session, 110)
    assert len(read(alice, session, "op-messages")["items"]) == 100
    assert len(read(alice, session, "op-messages?limit=9999")["items"]) == 110


def test_events_are_chosen_by_kind_and_type(alice: Person, session: Session) -> None:
    add_events(session, kind="chat", type="reply")
    add_events(session, kind="chat", type="prompt")
    add_events(session, kind="tail", type="Stop")
    assert names(read(alice, session, "events?kind=chat")["items"], "type") == ["reply", "prompt"]
    assert names(read(alice, session, "events?limit=200&kind=chat&type=reply")["items"], "type") == ["reply"]
    assert read(alice, session, "events?kind=tail&type=reply")["items"] == []


def test_a_query_that_makes_no_sense_is_a_400(alice: Person, session: Session) -> None:
    for query in [
        "events?after=1&before=2",
        "events?after=x",
        "events?before=-1",
        "events?after=99999999999999999999",
        "events?limit=0",
        "events?kind=else",
        "events?type=%00",
        "op-messages?after=1&before=2",
        "op-messages?limit=no",
        "timeline?limit=0",
        "timeline?kinds=event,else",
        "timeline?kinds=%00",
    ]:
        answer = api(alice.session).get(f"/api/v1/sessions/{session.public_id}/{query}")
        assert answer.status_code == 400, query
        assert answer.json()["error"] == "validation_failed", query


def test_the_timeline_merges_all_by_time(alice: Person, bob: Person, session: Session) -> None:
    gone = add_file(session, b"old", uploaded_at=ago(50), deleted_at=ago(20), filename="old.txt")
    (event,) = add_events(session, ts=ago(40))
    (message,) = add_messages(session, ts=ago(30), author=bob.user)
    kept = add_file(session, b"new", uploaded_at=ago(10), uploader=bob.user)
    items = read(alice, session, "timeline")["items"]
    assert [(item["kind"], item["id"], item.get("action")) for item in items] == [
        ("file", gone.pk, "uploaded"),
        ("event", event.pk, None),
        ("op-message", message.pk, None),
        ("file", gone.pk, "deleted"),
        ("file", kept.pk, "uploaded"),
    ]
    assert set(items[1]) == {"kind", "id", "ts", "event"}
    ts = items[1]["ts"]
    assert items[1]["event"] == {"kind": "chat", "type": "reply", "payload": {"text": "hi"}, "ts": ts}
    assert set(items[2]) == {"kind", "id", "ts", "authorLogin", "text", "mentions"}
    assert (items[2]["authorLogin"], items[2]["text"], items[2]["mentions"]) == ("bob", "look", ["bob"])
    assert set(items[4]) == {"kind", "id", "ts", "action", "file"}
    assert items[4]["file"] == {
        "id": kept.pk,
        "filename": "a.txt",
        "size": 3,
        "mime": "text/plain",
        "uploaderLogin": "bob",
    }


def test_the_timeline_ends_with_the_newest_of_all_kinds(alice: Person, session: Session) -> None:
    for minute in range(60, 0, -2):
        add_events(session, ts=ago(minute))
        add_messages(session, ts=ago(minute - 1))
    items = read(alice, session, "timeline?limit=5")["items"]
    assert names(items, "kind") == ["op-message", "event", "op-message", "event", "op-message"]
    assert names(items, "ts") == sorted(names(items, "ts"))
    assert len(read(alice, session, "timeline")["items"]) == 50
    assert len(read(alice, session, "timeline?limit=5000")["items"]) == 60


def test_the_timeline_shows_the_kinds_asked_for(alice: Person, session: Session) -> None:
    add_events(session)
    add_messages(session)
    add_file(session)
    assert names(read(alice, session, "timeline?kinds=event,file")["items"], "kind") == ["event", "file"]
    assert names(read(alice, session, "timeline?kinds=op-message")["items"], "kind") == ["op-message"]
    assert len(read(alice, session, "timeline?kinds=")["items"]) == 3

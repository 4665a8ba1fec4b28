"""Events of a remote server; nothing of an agent's own JSON is changed."""

from typing import Any

import pytest

from agents.links.remote.dialects import event_from_03
from agents.links.remote.events import Malformed, RemoteMessage, RemoteTask, read_event
from agents.transcript.pieces import Part


def said(*parts: Any) -> Any:
    return {"message": {"role": "ROLE_AGENT", "messageId": "m", "parts": list(parts)}}


def test_nulls_are_absent_but_for_data() -> None:
    event = read_event(
        said(
            {"text": "a", "raw": None, "data": None, "metadata": None, "filename": None},
            {"data": None},
            {"data": {"a": None}, "mediaType": None, "metadata": {"b": None}},
        )
    )
    assert isinstance(event, RemoteMessage)
    assert event.parts == (Part(text="a"), Part(data=None), Part(data={"a": None}, metadata={"b": None}))


def test_a_task_of_nulls_is_a_task() -> None:
    status = {"state": "TASK_STATE_WORKING", "message": None, "timestamp": None}
    event = read_event(
        {"task": {"id": "t", "contextId": None, "status": status, "artifacts": None, "history": None}}
    )
    assert isinstance(event, RemoteTask)
    assert (event.id, event.status.message) == ("t", None)


def test_a_part_has_one_content(subtests: pytest.Subtests) -> None:
    for part in ({}, {"text": None}, {"text": "a", "raw": "b"}, {"text": 1}, "text", None, []):
        with subtests.test(part=part), pytest.raises(Malformed):
            read_event(said(part))


@pytest.mark.parametrize(
    ("older", "kind"),
    [
        ({"kind": "message", "parts": []}, "message"),
        ({"kind": "task", "id": "t", "status": {"state": "working"}}, "task"),
        ({"taskId": "t", "status": {"state": "working"}}, "statusUpdate"),
        ({"taskId": "t", "artifact": {"artifactId": "a", "parts": []}}, "artifactUpdate"),
        ({"id": "t", "status": {"state": "working"}}, "task"),
    ],
)
def test_older_events_are_recognised_with_and_without_their_kind(older: Any, kind: str) -> None:
    assert list(event_from_03(older)) == [kind]
    read_event(event_from_03(older))


def test_what_is_none_is_refused(subtests: pytest.Subtests) -> None:
    for older in (None, [], "x", {}, {"kind": "robot"}, {"kind": ["task"]}, {"kind": {}}):
        with subtests.test(event=older), pytest.raises(Malformed):
            read_event(event_from_03(older))

"""Envelopes of the older transport: both dialects, both ways, and the command that moves them."""

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from accounts.models import User
from agents.models import Session
from gateway.models import Letter
from gateway.service.seat import GATEWAY_LINK
from gateway.wire.errors import FrameRefused
from gateway.wire.frames import check_frame, read_type
from gateway.wire.redis_envelopes import from_legacy, to_legacy
from hub.management.commands import gateway_envelopes
from lab.frames import Json
from lab.hub_storage import DistributedStorages

HEAD = {"id": "m-1", "from": "alpha", "timestamp": 1_767_225_600_000}
TASK = {"messageId": "m-2", "from": "alpha", "to": "beta", "content": "do it", "type": "task"}

ENVELOPES: dict[str, tuple[Json, str, Json]] = {  # an envelope, the type of its frame, and its content
    "question": ({"type": "question", "to": "beta", "content": "why?"}, "message", {"role": "agent"}),
    "inbox": (
        {"type": "question", "channel": "agent:beta:inbox", "content": "why?"},
        "message",
        {"role": "agent"},
    ),
    "object": ({"type": "question", "to": "beta", "content": {"a": 1}}, "message", {"content": {"a": 1}}),
    "list": ({"type": "question", "to": "beta", "content": [1]}, "message", {"content": {"value": [1]}}),
    "everyone": ({"type": "question", "channel": "agent:a2a", "content": "all"}, "broadcast", {"message": "all"}),
    "request": ({"type": "request", "to": "beta", "content": "please"}, "message", {"content": "please"}),
    "service": (
        {"type": "request", "to": "beta", "content": {"service": "x"}},
        "request",
        {"service": "x"},
    ),
    "status": ({"type": "anything", "channel": "agent:status", "content": "busy"}, "status", {"status": "busy"}),
    "response": ({"type": "response", "to": "beta", "content": {"a": 1}}, "response", {"result": {"a": 1}}),
    "proposal": ({"type": "proposal", "channel": "agent:a2a", "content": {"proposal": "x"}}, "proposal", {}),
    "consensus": (
        {"type": "question", "to": "beta", "content": "x", "metadata": {"consensusNeeded": True}},
        "proposal",
        {"proposal": "x"},
    ),
    "vote": ({"type": "vote", "content": {"proposalId": "p", "vote": "approve"}}, "vote", {"vote": "approve"}),
    "decision": ({"type": "decision", "content": {"result": "approved"}}, "decision", {"result": "approved"}),
    "error": ({"type": "error", "to": "beta", "content": "broken"}, "error", {"message": "broken"}),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_becomes_a_sound_frame_and_comes_back(name: str) -> None:
    given, type_name, content = ENVELOPES[name]
    envelope = {**HEAD, "threadId": "t", "parentId": "p", "own": 1, **given}
    frame = from_legacy(envelope)
    checked = check_frame(frame, read_type(frame))
    assert (checked.type, checked.sender, checked.metadata["threadId"]) == (type_name, "alpha", "t")
    assert content.items() <= checked.content.items()
    assert checked.agent == ("beta" if "beta" in str(given) else "")
    back = to_legacy(frame, "envelope")
    if type_name not in ("status", "error") and name not in ("list", "consensus"):
        assert back["content"] == envelope["content"]
    for key in envelope.keys() - {"content", "metadata"}:
        assert back[key] == envelope[key]


def test_an_envelope_of_an_inbox_becomes_a_message_and_comes_back() -> None:
    envelope = {**TASK, "timestamp": "2026-01-01T00:00:00.000Z", "priority": "high", "inReplyTo": "m-1"}
    frame = from_legacy(envelope | {"metadata": {"requiresResponse": True}})
    checked = check_frame(frame, read_type(frame))
    assert (checked.type, checked.id, checked.agent) == ("message", "m-2", "beta")
    assert (checked.timestamp_ms, checked.wants_response) == (HEAD["timestamp"], True)
    assert (checked.metadata["priority"], checked.metadata["parentId"]) == ("high", "m-1")
    assert to_legacy(frame, "inbox") == envelope | {"metadata": {"requiresResponse": True}}
    told = from_legacy({**HEAD, "type": "question", "to": "beta", "content": {"a": 1}, "timestamp": 1_767_225_600})
    wanted = {"messageId": "m-1", "from": "alpha", "to": "beta", "type": "question", "priority": "normal"}
    wanted |= {"content": '{"a":1}', "timestamp": "2026-01-01T00:00:00.000Z"}
    assert to_legacy(told, "inbox") == wanted


@pytest.mark.parametrize(
    ("envelope", "code", "field"),
    [
        ({}, 2002, "type"),
        ({"type": 1}, 2003, "type"),
        ({"type": "question"}, 2002, "from"),
        ({"type": "question", "from": "a"}, 2002, "content"),
        ({"type": "question", "from": "a", "content": "x", "timestamp": "then"}, 2003, "timestamp"),
        ({"type": "question", "from": "a", "content": "x", "metadata": []}, 2003, "metadata"),
        ({"messageId": "m"}, 2002, "from"),
        ({"messageId": "m", "from": "a"}, 2002, "to"),
        ({"messageId": 1, "from": "a"}, 2003, "messageId"),
    ],
)
def test_an_envelope_that_is_not_in_order_is_refused(envelope: Json, code: int, field: str) -> None:
    with pytest.raises(FrameRefused) as refused:
        from_legacy(envelope)
    assert (refused.value.code, refused.value.field) == (code, field)


@pytest.fixture
def team(db: None) -> User:
    owner: User = User.objects.create(login="movers")
    for name in ("alpha", "beta", "gamma"):
        Session.objects.create(owner=owner, routing_name=name, link=GATEWAY_LINK)
    return owner


def run(direction: str, *options: str) -> str:
    """The report of the command."""
    err = TextIOWrapper(BytesIO())
    call_command("gateway_envelopes", direction, "--login", "movers", *options, stderr=err)
    err.seek(0)
    return err.read()


def waiting() -> list[tuple[str, str, str]]:
    rows = Letter.objects.order_by("pk").select_related("recipient")
    return [(one.sender, one.recipient.routing_name, one.message_id) for one in rows]


def test_messages_are_imported_once_and_bad_ones_are_reported(team: User, tmp_path: Path) -> None:
    lines: list[Any] = [
        {**HEAD, "type": "question", "to": "beta", "content": "one"},
        {**HEAD, "id": "m-9", "type": "question", "channel": "agent:a2a", "content": "all"},
        TASK,
        {**HEAD, "type": "vote", "content": {"vote": "approve"}},
    ]
    bad: list[Any] = [
        {**HEAD, "type": "question", "to": "stranger", "content": "x"},
        {**HEAD, "type": "question", "to": "beta", "content": "x", "from": "Not A Name"},
        [],
    ]
    file = tmp_path / "messages.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    assert run("import", "--file", str(file)).strip() == "3 stored, 0 there already, 1 of other types, 0 bad"
    expected = [("alpha", "beta", "m-1"), ("alpha", "beta", "m-9"), ("alpha", "gamma", "m-9")]
    assert waiting() == [*expected, ("alpha", "beta", "m-2")]
    file.write_text("\n".join([*map(json.dumps, lines + bad), "{", "x" * 1_048_600]) + "\n")
    with pytest.raises(CommandError, match="5 were not imported"):
        run("import", "--file", str(file))
    assert len(waiting()) == 4
    exported = tmp_path / "exported.jsonl"
    assert run("export", "--file", str(exported), "--dialect", "inbox").strip() == "4 written"
    shown = [json.loads(line) for line in exported.read_text().splitlines()]
    assert [(one["messageId"], one["to"]) for one in shown][-1] == ("m-2", "beta")
    assert shown[-1]["type"] == "task"
    assert shown[1]["to"] == "beta"
    assert len(waiting()) == 4
    with pytest.raises(CommandError, match="no user has the login"):
        call_command("gateway_envelopes", "export", "--login", "stranger")


@pytest.mark.parametrize("dialect", ["envelope", "inbox"])
def test_messages_travel_through_redis(
    team: User,
    distributed_storages: DistributedStorages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dialect: str,
) -> None:
    monkeypatch.setattr(gateway_envelopes, "AT_ONCE", 4)
    redis_url = distributed_storages.servers.redis_url(506)
    file = tmp_path / "messages.jsonl"
    many = [{**HEAD, "id": f"m-{n}", "type": "question", "to": "beta", "content": str(n)} for n in range(10)]
    file.write_text("\n".join(map(json.dumps, many)))
    run("import", "--file", str(file))
    server = Redis.from_url(redis_url)
    server.flushdb()
    assert run("export", "--redis", redis_url, "--dialect", dialect).strip() == "10 written"
    before = waiting()
    Letter.objects.all().delete()
    assert "10 stored" in run("import", "--redis", redis_url)
    assert waiting() == before
    server.rpush("openclaw:a2a:inbox:beta", b"\xff")
    with pytest.raises(CommandError, match="1 were not imported"):
        run("import", "--redis", redis_url)

"""ACL messages of FIPA: the table of performatives, round trips, and the entrance over HTTP."""

from itertools import product
from typing import Any

import pytest

from gateway.wire.errors import FrameRefused
from gateway.wire.fipa import FRAME_OF, as_information, from_acl, to_acl
from gateway.wire.frames import check_frame, read_type
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.gateway.client import EchoSeat, publish, session_id, team

NOW_MS = 1_767_225_600_000  # 2026-01-01
PATH = "/api/v1/gateway/fipa"

FRAMES: dict[str, tuple[str, Json]] = {  # each with its performative
    "message": ("inform", {"type": "message", "content": {"role": "user", "content": "hi"}}),
    "request": ("request", {"type": "request", "content": {"service": "agents.list"}}),
    "cancel": ("cancel", {"type": "request", "content": {"service": "cancel"}}),
    "approve": ("agree", {"type": "response", "content": {"result": {"vote": "approve"}}}),
    "reject": ("refuse", {"type": "response", "content": {"result": {"vote": "reject"}}}),
    "response": ("inform", {"type": "response", "content": {"result": [1]}}),
    "failed": ("failure", {"type": "response", "content": {"error": {"code": 3004}}}),
    "proposal": ("propose", {"type": "proposal", "content": {"proposal": "x"}}),
    "approved": ("accept-proposal", {"type": "decision", "content": {"result": "approved"}}),
    "rejected": ("reject-proposal", {"type": "decision", "content": {"result": "rejected"}}),
    "unknown": ("not-understood", {"type": "error", "content": {"code": 2004}}),
    "unsound": ("not-understood", {"type": "error", "content": {"code": 2005}}),
    "error": ("failure", {"type": "error", "content": {"code": 3002}}),
    "vote for": ("agree", {"type": "vote", "content": {"vote": "approve"}}),
    "vote against": ("refuse", {"type": "vote", "content": {"vote": "reject"}}),
    "abstention": ("inform", {"type": "vote", "content": {"vote": "abstain"}}),
    "broadcast": ("inform", {"type": "broadcast", "content": {"message": "stop"}}),
    "subscribe": ("subscribe", {"type": "subscribe", "content": {"channel": "agent:status"}}),
    "status": ("inform", {"type": "status", "content": {"status": "busy"}}),
}
PERFORMATIVES = {  # of FIPA's standard, each with the type of its frame
    **dict.fromkeys(("inform", "confirm", "disconfirm", "inform-if", "inform-ref", "proxy", "sing"), "message"),
    **dict.fromkeys(("request", "request-when", "request-whenever", "query-if", "query-ref", "cancel"), "request"),
    **dict.fromkeys(("agree", "refuse", "failure"), "response"),
    **dict.fromkeys(("propose", "cfp"), "proposal"),
    **dict.fromkeys(("accept-proposal", "reject-proposal"), "decision"),
    "not-understood": "error",
    "subscribe": "subscribe",
    "propagate": "broadcast",
}


def test_a_frame_has_its_performative(subtests: pytest.Subtests) -> None:
    about = {"from": "alpha", "agent": "beta", "metadata": {"correlationId": "c", "threadId": "t"}}
    for name, (performative, frame) in FRAMES.items():
        reply = "reply-with" if frame["type"] in ("request", "proposal") else "in-reply-to"
        expected = {"performative": performative, "sender": "alpha", "receiver": "beta", "conversation-id": "t"}
        expected |= {"content": frame["content"], "language": "json", "ontology": "heretek-v1", reply: "c"}
        with subtests.test(frame=name):
            assert expected.items() <= to_acl({**about, **frame}).items()


CONTENTS: list[Any] = ["hi", {"a": 1}, [1, 2], {"role": "user", "content": "hi"}, {"role": [1]}, {"role": "user"}]


def test_a_message_becomes_a_sound_frame_and_comes_back(subtests: pytest.Subtests) -> None:
    for performative, content in product(PERFORMATIVES, CONTENTS):
        with subtests.test(performative=performative, content=content):
            acl = {"performative": performative, "sender": "alice", "receiver": "beta", "content": content}
            acl |= {"language": "fipa-sl", "ontology": "planning", "protocol": "fipa-contract-net"}
            acl |= {"conversation-id": "t", "reply-with": "c", "X-own": {"kept": True}}
            frame = from_acl(acl, NOW_MS)
            assert frame["type"] == PERFORMATIVES[performative] == FRAME_OF.get(performative, "message")
            envelope = check_frame(frame, read_type(frame))
            assert (envelope.agent, envelope.sender, envelope.correlation_id) == ("beta", "alice", "c")
            back = to_acl(frame)
            for key in ("performative", "language", "ontology", "protocol", "X-own"):
                assert back[key] == acl[key], (acl, back)
            if frame["type"] in ("message", "request", "broadcast"):
                assert back == acl
            if isinstance(content, str) and frame["type"] not in ("response", "decision"):
                assert back["content"] == content


def test_times_ids_and_receivers_are_translated() -> None:
    acl = {"performative": "INFORM", "content": "hi", "receiver": {"name": "beta"}, "reply-with": "c"}
    frame = from_acl(acl | {"in-reply-to": "m", "reply-by": "2026-01-01T00:00:05Z"}, NOW_MS)
    assert frame["metadata"]["ttl"] == 5
    assert frame["metadata"]["parentId"] == "m"
    assert frame["metadata"]["requiresResponse"] is True
    assert to_acl(frame | {"timestamp": NOW_MS})["reply-by"] == "2026-01-01T00:00:05.000Z"
    answer = from_acl({"performative": "agree", "in-reply-to": "p"}, NOW_MS)
    assert answer["metadata"]["correlationId"] == "p"
    assert answer["content"] == {"result": {"vote": "approve", "reason": None}}
    proposal = from_acl({"performative": "cfp", "content": "x", "reply-by": NOW_MS + 1}, NOW_MS)
    assert proposal["content"] == {"proposal": "x", "deadline": NOW_MS + 1}
    many = from_acl({"performative": "inform", "content": "x", "receiver": ["a", {"name": "b"}]}, NOW_MS)
    assert (many["type"], "agent" in many, to_acl(many)["receiver"]) == ("broadcast", False, ["a", "b"])
    assert "reply-by" not in to_acl({"type": "message", "timestamp": 1, "metadata": {"ttl": 2**53}})


def test_a_message_that_is_not_in_order_is_refused(subtests: pytest.Subtests) -> None:
    inform = {"performative": "inform", "content": "x"}
    for acl, code, field in (
        ({}, 2002, "performative"),
        ({"performative": 1}, 2003, "performative"),
        ({"performative": "inform"}, 2002, "content"),
        (inform | {"receiver": 1}, 2003, "receiver"),
        (inform | {"receiver": ["a"] * 101}, 2005, "receiver"),
        (inform | {"sender": {"name": 1}}, 2003, "sender"),
        (inform | {"reply-by": "soon"}, 2003, "reply-by"),
        (inform | {"reply-by": NOW_MS}, 2005, "reply-by"),
        (inform | {"reply-by": 10**400}, 2003, "reply-by"),
        (inform | {"reply-with": []}, 2003, "reply-with"),
    ):
        with subtests.test(acl=acl):
            with pytest.raises(FrameRefused) as refused:
                from_acl(acl, NOW_MS)
            assert (refused.value.code, refused.value.field) == (code, field)


def test_a_decision_for_another_team_is_information() -> None:
    frame = from_acl({"performative": "accept-proposal", "receiver": "beta", "reply-with": "c"}, NOW_MS)
    told = as_information(check_frame(frame, read_type(frame)))
    assert (told.type, told.content["content"]["decision"]["result"]) == ("message", "approved")
    assert "requiresResponse" not in told.metadata


async def test_a_message_over_http_is_sent_and_its_answer_comes_back(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    headers = bearer(hub.mint("fipa", "session"))
    async with team(hub, "fipa", beta=EchoSeat) as (seat,), web(hub.urls[-1], headers=headers) as client:
        asked = {"performative": "query-ref", "content": "agents.list", "reply-with": "q", "sender": "fipa"}
        listed = (await client.post(PATH, json=asked)).json()
        assert (listed["performative"], listed["in-reply-to"], listed["receiver"]) == ("inform", "q", "fipa")
        assert [one["name"] for one in listed["content"]["result"]["agents"]] == ["beta"]
        inform = {"performative": "confirm", "receiver": "beta", "content": "hi", "reply-with": "c"}
        reply = (await client.post(PATH, json=inform | {"conversation-id": "t"})).json()
        assert (reply["performative"], reply["sender"], reply["in-reply-to"]) == ("inform", "beta", "c")
        assert (reply["content"], reply["conversation-id"]) == ({"role": "agent", "content": "echo: hi"}, "t")
        got = await seat.find("message")
        assert (got["metadata"]["fipa"]["performative"], got["from"]) == ("confirm", "fipa")
        proposed = {"performative": "propose", "content": "ship it", "reply-with": "p"}
        state = (await client.post(PATH, json=proposed)).json()
        assert (state["performative"], state["in-reply-to"]) == ("inform", "p")
        assert state["content"]["result"]["state"] in ("pending", "deliberating")
        told = await client.post(PATH, json={"performative": "inform", "receiver": "beta", "content": "told"})
        assert (told.status_code, told.content) == (204, b"")
        assert await seat.find("message", lambda frame: frame["content"]["content"] == "told")


REPLIES: dict[str, tuple[str, Json]] = {  # each with its frame
    "agree": ("response", {"result": {"vote": "approve", "reason": "why not"}}),
    "refuse": ("response", {"result": {"vote": "reject", "reason": "why not"}}),
    "failure": ("response", {"error": {"code": 3004, "error": "AGENT_ERROR", "message": "why not"}}),
    "accept-proposal": ("decision", {"result": "approved", "reason": "why not"}),
    "reject-proposal": ("decision", {"result": "rejected", "reason": "why not"}),
}


async def test_a_reply_over_http_reaches_the_agent_as_the_frame_of_the_table(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    hub = embedded_hub
    headers = bearer(hub.mint("fipa-replies", "session"))
    async with team(hub, "fipa-replies", "beta") as (seat,), web(hub.url, headers=headers) as client:
        for performative, (type_name, content) in REPLIES.items():
            said = {"performative": performative, "receiver": "beta", "content": "why not"}
            answer = await client.post(PATH, json=said | {"in-reply-to": performative})
            assert (answer.status_code, answer.content) == (204, b"")
            frame = await seat.find(type_name, lambda one: one["metadata"]["correlationId"] == performative)  # noqa: B023
            assert (frame["content"], frame["from"], frame["agent"]) == (content, "fipa-replies", "beta")
            assert to_acl(frame)["performative"] == performative
            many, absent = {"receiver": ["beta", "gamma"]}, {"receiver": "absent"}
            for receiver, code in (({}, 2002), (many, 2002), (absent, 3001)):
                refused = await client.post(PATH, json={"performative": performative, "content": "x"} | receiver)
                with subtests.test(performative=performative, receiver=receiver):
                    assert (refused.json()["performative"], refused.json()["content"]["code"]) == ("failure", code)


async def test_what_an_agent_could_take_for_a_frame_of_its_gateway_is_a_message_about_it(
    embedded_hub: HubProcess,
) -> None:
    """A decision and a reply from outside the agent's team, and an error from any caller."""
    hub = embedded_hub
    async with team(hub, "fipa-host", "oracle") as (seat,), web(hub.url) as client:
        handle = await publish(hub, "fipa-host", "oracle")
        hub.mint("fipa-friend", "session")
        owner = bearer(hub.mint("fipa-host", "session"))
        shares = f"/api/v1/sessions/{await session_id(client, owner, 'oracle')}/shares"
        share = {"login": "fipa-friend", "role": "prompter"}
        assert (await client.post(shares, json=share, headers=owner)).is_success
        for sender, receiver, performative, type_name in (
            ("fipa-guest", f"@{handle}", "accept-proposal", "decision"),
            ("fipa-guest", f"@{handle}", "agree", "response"),
            ("fipa-friend", "oracle", "accept-proposal", "decision"),
            ("fipa-host", "oracle", "not-understood", "error"),
        ):
            said = {"performative": performative, "receiver": receiver, "in-reply-to": "p"}
            said["note"] = f"{performative} of {sender}"
            answer = await client.post(PATH, json=said, headers=bearer(hub.mint(sender, "session")))
            assert answer.status_code == 204, answer.text
            note = await seat.find("message", lambda one: one["metadata"]["fipa"].get("note") == said["note"])  # noqa: B023
            assert type_name in note["content"]["content"]
            assert note["metadata"]["fipa"]["performative"] == performative
        assert {one["type"] for one in seat.frames} == {"auth-response", "message"}


async def test_the_same_proposal_again_is_answered_by_its_decision(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    headers = bearer(hub.mint("fipa-team", "session"))
    async with team(hub, "fipa-team", "alpha", "beta") as seats, web(hub.url, headers=headers) as client:
        votes = {"approve": "accept-proposal", "reject": "reject-proposal"}
        for number, (vote, performative) in enumerate(votes.items()):
            key = f"p-{number}"
            proposed = {"performative": "propose", "content": f"ship {key}", "reply-with": key}
            first = (await client.post(PATH, json=proposed)).json()
            assert (first["performative"], first["in-reply-to"]) == ("inform", key)
            for seat in seats:
                await seat.vote(key, vote)
            decided = (await client.post(PATH, json=proposed)).json()
            assert (decided["performative"], decided["in-reply-to"]) == (performative, key)
            assert decided["content"]["proposalId"] == key


async def test_what_is_refused_over_http_is_a_failure_or_not_understood(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    hub = embedded_hub
    headers = bearer(hub.mint("fipa2", "session"))
    async with team(hub, "fipa2", "beta") as (silent,), web(hub.url, headers=headers) as client:
        ask = {"performative": "inform", "receiver": "beta", "content": "hi", "reply-with": "c"}
        cases: list[tuple[Json, str, int]] = [
            ({"receiver": "stranger"}, "failure", 3001),
            ({"sender": "another"}, "failure", 5004),
            ({"performative": "agree", "receiver": "stranger"}, "failure", 3001),
            ({"performative": "subscribe"}, "not-understood", 2005),
            ({"performative": "request", "content": "x", "receiver": "stranger"}, "failure", 3001),
            ({"reply-by": "1999-01-01"}, "not-understood", 2005),
        ]
        for changed, performative, code in cases:
            with subtests.test(changed=changed):
                answer = (await client.post(PATH, json=ask | changed)).json()
                content, error = answer["content"], answer["content"]["error"]
                told_code = (error if isinstance(error, dict) else content)["code"]
                told = (answer["performative"], told_code, answer["in-reply-to"])
                assert told == (performative, code, "c")
        for body in (b"", b"[]", b"{"):
            with subtests.test(body=body):
                headers = {"content-type": "application/json"}
                assert (await client.post(PATH, content=body, headers=headers)).status_code == 400
        assert (await client.get(PATH)).status_code == 405
        client.headers.update(bearer(hub.mint("fipa2", "channel")))
        assert (await client.post(PATH, json=ask)).status_code == 401
        assert silent.of("message") == []

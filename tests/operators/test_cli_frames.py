"""`/cli`, frame by frame: subscriptions, presence, prompts, op messages, approvals, routes."""

import asyncio

from lab.agents import Chunker, Echo, Stall
from lab.callers import Json, bearer, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from tests.channel.agents import sql
from tests.operators.operator import Operator
from tests.operators.rows import request_permission, share, stored


def said(answer: Json, code: str) -> str:
    """Check an error frame; its sentence."""
    assert answer.keys() == {"type", "ok", "code", "message"}, answer
    assert (answer["type"], answer["ok"], answer["code"]) == ("error", False, code), answer
    message: str = answer["message"]
    assert message
    return message


async def test_who_comes_and_goes_is_seen_by_all(hub: HubProcess, alice: str) -> None:
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent:
        share(hub, agent.session_id, alice="viewer")
        async with Operator(hub.url, hub.mint("owner", "session")) as one:
            await one.subscribe(agent.session_id)
            async with Operator(hub.urls[-1], alice) as two:
                await two.subscribe(agent.session_id)
                came = await one.heard(lambda frame: frame.get("joined") == "alice")
                assert came["attached"] == ["alice", "owner"]
                assert (await two.heard("presence"))["attached"] == ["alice", "owner"]
                async with Operator(hub.url, alice) as again:
                    await again.subscribe(agent.session_id)
                    presence = await again.heard("presence")
                    assert "joined" not in presence
                    await again.answer("unsubscribe", sessionId=agent.session_id)
                await two.answer("unsubscribe", sessionId=agent.session_id)
                left = await one.heard(lambda frame: frame.get("left") == "alice")
                assert left["attached"] == ["owner"]
                await two.subscribe(agent.session_id)
            gone = await one.heard(lambda frame: frame.get("left") == "alice", count=2)
            about = {"type": "presence", "sessionId": agent.session_id}
            assert gone == about | {"attached": ["owner"], "left": "alice"}


async def test_a_second_subscribe_is_the_same_subscription_and_unsubscribed_means_silence(hub: HubProcess) -> None:
    async with (
        Echo(hub.url, hub.mint("owner", "channel")) as agent,
        Operator(hub.urls[-1], hub.mint("owner", "session")) as operator,
        Operator(hub.urls[-1], hub.mint("owner", "session")) as quiet,
    ):
        await quiet.subscribe(agent.session_id)
        for _ in range(2):  # each again is fine
            await operator.subscribe(agent.session_id)
            assert await quiet.answer("unsubscribe", sessionId=agent.session_id) == {"type": "ack", "ok": True}
        await operator.answer("prompt", sessionId=agent.session_id, text="hi")
        await operator.event("reply", text="echo: hi")
        assert len([one for one in operator.of("event") if one["event"]["type"] == "prompt"]) == 1
        assert quiet.of("event") == []


async def test_all_sees_the_prompt_its_author_too_and_the_reply_grow(hub: HubProcess, alice: str) -> None:
    async with Chunker(hub.url, hub.mint("owner", "channel"), pieces=["one ", "two"]) as agent:
        share(hub, agent.session_id, alice="viewer")
        async with (
            Operator(hub.url, hub.mint("owner", "session")) as author,
            Operator(hub.urls[-1], alice) as other,
        ):
            for one in (author, other):
                await one.subscribe(agent.session_id)
            answer = await author.answer("prompt", sessionId=agent.session_id, text="count")
            assert answer == {"type": "ack", "ok": True}
            for one in (author, other):
                seen = await one.event("prompt", authorLogin="owner", source="operator", text="count")
                assert seen.keys() == {"kind", "type", "payload", "ts"}
                reply = await one.event("reply", text="one two")
                pieces = one.of("chat_reply_chunk")
                assert {piece["chatId"] for piece in pieces} == {reply["payload"]["chatId"]}
                assert "".join(piece["text"] for piece in pieces) == "one two"


async def test_an_op_message_is_for_operators_and_kept(hub: HubProcess, alice: str) -> None:
    async with Echo(hub.url, hub.mint("owner", "channel")) as agent:
        share(hub, agent.session_id, alice="prompter")
        async with Operator(hub.url, hub.mint("owner", "session")) as one, Operator(hub.urls[-1], alice) as two:
            for each in (one, two):
                await each.subscribe(agent.session_id)
            await two.answer("op_message", sessionId=agent.session_id, text="@owner look, mail a@b.c or @alice!")
            await two.answer("op_message", sessionId=agent.session_id, text="again", mentions=["bob"])
            for each in (one, two):
                first = await each.heard("op_message")
                assert first.keys() == {"type", "sessionId", "authorLogin", "text", "mentions", "ts"}
                assert (first["authorLogin"], first["mentions"]) == ("alice", ["owner", "alice"])
                assert (await each.heard("op_message", count=2))["mentions"] == ["bob"]
        assert agent.prompts == []


async def test_the_first_decision_wins(hub: HubProcess, alice: str) -> None:
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent:
        share(hub, agent.session_id, alice="approver")
        request_permission(hub, agent.session_id, "r")
        async with Operator(hub.url, hub.mint("owner", "session")) as one, Operator(hub.urls[-1], alice) as two:
            for each in (one, two):
                await each.subscribe(agent.session_id)
            answers = await asyncio.gather(
                one.answer("approval", sessionId=agent.session_id, requestId="r", decision="allow"),
                two.answer("approval", sessionId=agent.session_id, requestId="r", decision="deny", message="no"),
            )
            assert sorted(answer.get("code", "ack") for answer in answers) == ["ack", "already_resolved"]
            winner = "owner" if answers[0]["type"] == "ack" else "alice"
            decision = "allow" if winner == "owner" else "deny"
            resolved = {"type": "permission_resolved", "sessionId": agent.session_id, "requestId": "r"}
            for each in (one, two):
                told = await each.heard("permission_resolved")
                assert told == resolved | {"decision": decision, "resolverLogin": winner}
            late = await one.answer("approval", sessionId=agent.session_id, requestId="r", decision=decision)
            said(late, "already_resolved")
            unknown = await one.answer("approval", sessionId=agent.session_id, requestId="s", decision="allow")
            said(unknown, "not_found")
        response = await agent.heard("permission_response")
        assert (response["requestId"], response["decision"]) == ("r", decision)


async def test_a_viewer_of_the_source_leaves_no_trace_in_it(hub: HubProcess, alice: str) -> None:
    async with (
        Echo(hub.url, hub.mint("alice", "channel")) as target,
        Echo(hub.url, hub.mint("owner", "channel")) as source,
        Operator(hub.urls[-1], alice) as operator,
    ):
        asked = {"sessionId": target.session_id, "sourceSessionId": source.session_id, "text": "hi"}
        said(await operator.answer("prompt", **asked), "not_found")
        share(hub, source.session_id, alice="viewer")
        await operator.subscribe(source.session_id)
        await operator.subscribe(target.session_id)
        assert (await operator.answer("prompt", **asked))["type"] == "ack"
        await operator.event("reply", text="echo: hi")
        assert {one["sessionId"] for one in operator.of("event")} == {target.session_id}
        assert "route_reply" not in {one["type"] for one in source.frames}


async def test_a_prompt_that_gets_no_reply_does_not_hold_the_socket_up(hub: HubProcess) -> None:
    async with (
        Stall(hub.url, hub.mint("owner", "channel")) as agent,
        Operator(hub.urls[-1], hub.mint("owner", "session")) as operator,
    ):
        for _ in range(3):
            assert (await operator.answer("prompt", sessionId=agent.session_id, text="x"))["type"] == "ack"
        for mode in ("ask", "tell"):
            routed = await operator.answer("route", peer=agent.routing_name, prompt="x", mode=mode)
            assert routed["type"] == "ack"
        await agent.heard("prompt", count=5)


async def test_who_is_no_longer_shared_with_sees_nothing_more(hub: HubProcess, alice: str) -> None:
    owner = hub.mint("owner", "session")
    async with (
        Echo(hub.url, hub.mint("owner", "channel")) as agent,
        Operator(hub.url, owner) as theirs,
        Operator(hub.urls[-1], alice) as operator,
    ):
        share(hub, agent.session_id, alice="approver")
        await theirs.subscribe(agent.session_id)
        await operator.subscribe(agent.session_id)
        async with web(hub.url) as client:
            path = f"/api/v1/sessions/{agent.session_id}/shares/alice"
            response = await client.delete(path, headers=bearer(owner))
        assert response.json()["removed"] == 1
        gone = await operator.heard("error")
        assert agent.session_id in said(gone, "forbidden")
        assert (await theirs.heard(lambda one: one.get("left") == "alice"))["attached"] == ["owner"]
        await theirs.answer("prompt", sessionId=agent.session_id, text="alone?")
        await theirs.event("reply", text="echo: alone?")
        assert operator.of("event") == []
        said(await operator.answer("prompt", sessionId=agent.session_id, text="hi"), "not_found")


async def test_a_share_that_went_without_a_word_is_noticed(hub: HubProcess, alice: str) -> None:
    """The message to the sockets may be lost between processes."""
    async with (
        Echo(hub.url, hub.mint("owner", "channel")) as agent,
        Operator(hub.urls[-1], alice) as operator,
    ):
        share(hub, agent.session_id, alice="viewer")
        await operator.subscribe(agent.session_id)
        session = "(SELECT id FROM agents_session WHERE public_id = ?)"
        sql(hub, f"DELETE FROM agents_share WHERE session_id = {session}", stored(hub, agent.session_id))
        gone = await operator.heard("error")
        assert (agent.session_id or "") in said(gone, "forbidden")

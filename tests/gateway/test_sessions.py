"""Sessions: what messages leave in them, over the socket and across processes and restarts."""

import asyncio
from typing import Any

from lab.frames import Json
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, GatewayClient, publish


async def ask(client: GatewayClient, service: str, **params: Any) -> Json:
    """The result of a service of sessions."""
    content = await client.request(f"sessions.{service}", **params)
    assert "result" in content, content
    result: Json = content["result"]
    return result


async def refused(client: GatewayClient, service: str, **params: Any) -> tuple[int, str]:
    """The code of its error, and the reason or the field."""
    error = (await client.request(f"sessions.{service}", **params))["error"]
    return error["code"], error.get("reason", error.get("field", ""))


async def said(client: GatewayClient, agent: str, session_id: str, count: int) -> list[tuple[str, object]]:
    """Role and content of the entries of a session, when it has so many."""

    async def read() -> list[Json]:
        content = await client.request("sessions.get", agent=agent, sessionId=session_id)
        entries: list[Json] = content.get("result", {}).get("entries", [])
        return entries

    await eventually(lambda: _is_long(read, count), f"{count} entries in {session_id} of {agent}")
    return [(one["role"], one["content"]) for one in await read()]


async def _is_long(read: Any, count: int) -> bool:
    return len(await read()) >= count


async def test_messages_of_a_team_are_entries_at_both_ends(hub: HubProcess) -> None:
    token, far = hub.mint("scribe", "channel"), hub.urls[-1]
    operator = GatewayClient(hub.url, hub.mint("scribe", "session"))
    alpha, beta = EchoSeat(hub.url, token, agentId="alpha"), EchoSeat(far, token, agentId="beta")
    async with alpha, beta, operator:
        await asyncio.gather(alpha.find("auth-response"), beta.find("auth-response"))
        await alpha.send_message("beta", "hi", session="s-1")
        await alpha.send_message("beta", {"plan": [1, 2]}, session="s-1")
        both = [("user", "hi"), ("agent", "echo: hi"), ("user", {"plan": [1, 2]}), ("agent", {"plan": [1, 2]})]
        for agent in ("alpha", "beta"):
            assert await said(operator, agent, "s-1", 4) == both
        await operator.send_message("beta", "from outside")
        listed = (await ask(operator, "list", agent="beta"))["sessions"]
        (own,) = [one["id"] for one in listed if one["id"] != "s-1"]
        await said(operator, "beta", own, 2)
        await operator.send_message("beta", "again")
        assert len(await said(operator, "beta", own, 4)) == 4  # one session for each pair
        assert [one["id"] for one in (await ask(beta, "list"))["sessions"]] == [one["id"] for one in listed]


async def test_an_entry_has_the_id_and_the_time_of_the_message_that_the_agent_got(hub: HubProcess) -> None:
    """The sender gave neither; also when the message waits for the agent first."""
    token, operator = hub.mint("stamper", "channel"), GatewayClient(hub.url, hub.mint("stamper", "session"))
    content = {"role": "user", "content": "no id"}
    async with operator:
        async with EchoSeat(hub.url, token, agentId="alpha") as alpha:
            await alpha.find("auth-response")
            await operator.send("message", content, agent="alpha", sessionId="s-1")
            sent = [await alpha.find("message")]
            assert await said(operator, "alpha", "s-1", 1) == [("user", "no id")]
        await operator.send("message", content, agent="alpha", sessionId="s-1", metadata={"ttl": 60})
        await operator.find("event", lambda frame: frame["event"] == "message.queued")
        async with EchoSeat(hub.url, token, agentId="alpha") as alpha:
            sent.append(await alpha.find("message"))
        await said(operator, "alpha", "s-1", 2)
        entries = (await ask(operator, "get", agent="alpha", sessionId="s-1"))["entries"]
        assert [(one["id"], one["timestamp"]) for one in entries] == [
            (one["id"], one["timestamp"]) for one in sent
        ]
        assert len({one["id"] for one in entries}) == 2
        assert all(one["id"].startswith("msg-") for one in entries)


async def test_an_agent_and_its_owner_use_the_services(hub: HubProcess) -> None:
    token = hub.mint("clerk", "channel")
    operator = GatewayClient(hub.url, hub.mint("clerk", "session"))
    alpha, beta = EchoSeat(hub.url, token, agentId="alpha"), EchoSeat(hub.url, token, agentId="beta")
    async with alpha, beta, operator:
        await asyncio.gather(alpha.find("auth-response"), beta.find("auth-response"))
        made = (await ask(alpha, "create"))["session"]
        assert (made["agent"], made["entries"], made["state"]) == ("alpha", 0, "active")
        assert await refused(alpha, "create", sessionId=made["id"]) == (2005, "id_taken")
        await beta.send_message("alpha", "one", session=made["id"])
        await beta.send_message("alpha", "two", session=made["id"])
        page = await ask(alpha, "get", sessionId=made["id"], limit=3)
        rest = await ask(alpha, "get", sessionId=made["id"], after=page["next"])
        said_there = [one["content"] for one in page["entries"] + rest["entries"]]
        assert said_there == ["one", "echo: one", "two", "echo: two"]
        assert "next" not in rest
        assert (await ask(alpha, "commit", sessionId=made["id"], lockMs=60_000))["session"]["entries"] == 4
        # A message that names a session that takes none is not delivered.
        error = await beta.send_message("alpha", "three", session=made["id"])
        assert error["content"]["code"] == 4003, error
        assert not [one for one in alpha.frames if one.get("content", {}).get("content") == "three"]
        assert await refused(operator, "delete", agent="alpha", sessionId=made["id"]) == (4003, "sessionId")
        await ask(alpha, "commit", sessionId=made["id"])
        exported = (await ask(alpha, "export", sessionId=made["id"]))["jsonl"]
        await ask(operator, "archive", agent="alpha", sessionId=made["id"])
        error = await beta.send_message("alpha", "three", session=made["id"])
        assert (error["content"]["code"], error["content"]["reason"]) == (4002, "archived")
        assert made["id"] not in [one["id"] for one in (await ask(alpha, "list"))["sessions"]]
        assert made["id"] in [one["id"] for one in (await ask(alpha, "list", archived=True))["sessions"]]
        await ask(operator, "delete", agent="alpha", sessionId=made["id"])
        assert await refused(alpha, "delete", sessionId=made["id"]) == (4001, "sessionId")
        (back,) = (await ask(operator, "import", agent="alpha", jsonl=exported))["sessions"]
        assert (back["id"], back["importedFrom"]) == (made["id"], f"alpha:{made['id']}")
        assert await refused(operator, "import", agent="alpha", jsonl=exported[:-5]) == (4004, "line 5")
        assert await refused(operator, "import", agent="gamma", jsonl=exported) == (3001, "")
        assert (await refused(beta, "get", agent="alpha", sessionId=made["id"]))[0] == 5004


async def test_parameters_of_services_are_checked(embedded_hub: HubProcess) -> None:
    async with GatewayClient(embedded_hub.url, embedded_hub.mint("clerk", "session")) as operator:
        await operator.find("auth-response")
        for service, params, expected in [
            ("get", {"agent": "alpha"}, (2002, "sessionId")),
            ("get", {"sessionId": "s"}, (2002, "agent")),
            ("get", {"agent": 7, "sessionId": "s"}, (2003, "agent")),
            ("get", {"agent": "No Name", "sessionId": "s"}, (2005, "agent")),
            ("get", {"agent": "alpha", "sessionId": "s\n"}, (2005, "sessionId")),
            ("get", {"agent": "alpha", "sessionId": "s", "limit": 501}, (2005, "limit")),
            ("get", {"agent": "alpha", "sessionId": "s", "after": 1.5}, (2003, "after")),
            ("list", {"archived": "yes"}, (2003, "archived")),
            ("archive", {}, (2002, "olderThan")),
            ("archive", {"olderThan": "soon"}, (2005, "olderThan")),
            ("commit", {"agent": "alpha", "sessionId": "s", "lockMs": 300_001}, (2005, "lockMs")),
            ("import", {"agent": "alpha"}, (2002, "jsonl")),
        ]:
            assert await refused(operator, service, **params) == expected, (service, params)
    async with GatewayClient(embedded_hub.url, embedded_hub.mint("clerk", "channel")) as nameless:
        await nameless.find("auth-response")
        assert await refused(nameless, "list") == (5004, "no_seat")


async def test_what_leaves_the_team_is_in_no_session(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    token, session = hub.mint("insider", "channel"), hub.mint("insider", "session")
    async with EchoSeat(hub.url, token, agentId="oracle") as seat, GatewayClient(hub.url, session) as operator:
        await seat.find("auth-response")
        handle = await publish(hub, "insider", "oracle")
        async with GatewayClient(hub.url, hub.mint("outsider", "session")) as outsider:
            reply = await outsider.send_message(f"@{handle}", "hello", session="s-1")
            assert reply["content"]["content"] == "echo: hello"
            assert (await refused(outsider, "get", agent="oracle", sessionId="s-1"))[0] == 3001
        await operator.send_message(f"@{handle}", "from the owner", session="s-2")
        assert [one["id"] for one in (await ask(operator, "list"))["sessions"]] == ["s-2"]


async def test_a_message_that_waits_after_all_is_one_entry(hub: HubProcess) -> None:
    """It was sent to a seat that took no messages, waited then, and was repeated in another process."""
    token, session = hub.mint("once", "channel"), hub.mint("once", "session")
    content, about = {"role": "user", "content": "wait"}, {"ttl": 60}
    async with EchoSeat(hub.url, token, agentId="beta") as beta, GatewayClient(hub.url, session) as operator:
        await beta.find("auth-response")
        await beta.shake_hands(supportedMessageTypes=["status"])
        await operator.send("message", content, agent="beta", id="m-1", sessionId="s-1", metadata=about)
        await operator.find("event", lambda frame: frame["event"] == "message.queued")
        assert await said(operator, "beta", "s-1", 1) == [("user", "wait")]
        async with GatewayClient(hub.urls[-1], session) as again:
            await again.send("message", content, agent="beta", id="m-1", sessionId="s-1", metadata=about)
            await again.find("event", lambda frame: frame["event"] == "message.queued")
            assert await said(again, "beta", "s-1", 1) == [("user", "wait")]


class ReadingSeat(GatewayClient):
    """An agent that answers each message with what it may read of its own sessions."""

    async def answer(self, message: Json) -> None:
        if message["metadata"].get("requiresResponse"):
            self.reading = asyncio.create_task(self._read_and_answer(message))

    async def _read_and_answer(self, message: Json) -> None:
        about = {"correlationId": f"r-{message['id']}", "parentId": message["id"]}
        await self.send("request", {"service": "sessions.list"}, metadata=about)
        found = await self.find(
            "response", lambda frame: frame["metadata"]["correlationId"] == about["correlationId"]
        )
        metadata = {"correlationId": message["metadata"]["correlationId"]}
        await self.send("response", {"result": found["content"]}, metadata=metadata)


async def test_an_agent_reads_no_sessions_for_a_caller_from_outside(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with ReadingSeat(hub.url, hub.mint("keeper", "channel"), agentId="oracle") as seat:
        await seat.find("auth-response")
        handle = await publish(hub, "keeper", "oracle")
        async with GatewayClient(hub.url, hub.mint("keeper", "session")) as operator:
            own = await operator.send_message("oracle", "what do you have?")
            assert "sessions" in own["content"]["content"]["result"]
        async with GatewayClient(hub.url, hub.mint("outsider", "session")) as outsider:
            foreign = await outsider.send_message(f"@{handle}", "what do you have?")
            error = foreign["content"]["content"]["error"]
            assert (error["code"], error["reason"]) == (5004, "isolated")


async def test_two_processes_add_to_one_session_at_once(two_process_hub: HubProcess) -> None:
    hub, each = two_process_hub, 20
    token = hub.mint("crowd", "channel")
    async with EchoSeat(hub.url, token, agentId="center") as center:
        await center.find("auth-response")
        clients = [GatewayClient(url, hub.mint("crowd", "session")) for url in (hub.urls[0], hub.urls[-1])]
        async with clients[0], clients[1]:
            for number in range(each):
                for name, client in zip("ab", clients, strict=True):
                    content = {"role": "user", "content": f"{name} {number}"}
                    await client.send("message", content, agent="center", sessionId="shared")
            texts = [str(content) for _, content in await said(clients[0], "center", "shared", 2 * each)]
            for name in "ab":  # all of them, in the order of their sender
                assert [one for one in texts if one[0] == name] == [f"{name} {number}" for number in range(each)]
            committed = await ask(clients[1], "commit", agent="center", sessionId="shared")
            assert committed["session"]["entries"] == 2 * each


async def test_sessions_survive_a_restart(make_storage: MakeStorage, start_hub: StartHub) -> None:
    hub = start_hub(make_storage("embedded"))
    token, session = hub.mint("alice", "channel"), hub.mint("alice", "session")
    async with EchoSeat(hub.url, token, agentId="alpha") as seat, GatewayClient(hub.url, session) as operator:
        await seat.find("auth-response")
        await operator.send_message("alpha", "before", session="s-1")
    hub.terminate()  # at once: what was taken is written while the hub stops
    assert await hub.exit_code() == 0
    hub.serve(0)
    async with EchoSeat(hub.url, token, agentId="alpha") as seat, GatewayClient(hub.url, session) as operator:
        await seat.find("auth-response")
        await operator.send_message("alpha", "after", session="s-1")
        texts = [content for _, content in await said(operator, "alpha", "s-1", 4)]
        assert texts == ["before", "echo: before", "after", "echo: after"]

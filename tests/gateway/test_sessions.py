"""Sessions: what messages leave in them, over the socket and across processes and restarts."""

from typing import Any

from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, GatewayClient, code_of, owner_of, publish, team


async def ask(client: GatewayClient, service: str, **params: Any) -> Json:
    """The result of a service of sessions."""
    result = await client.request(f"sessions.{service}", **params)
    assert "error" not in result, result
    return result


async def refused(client: GatewayClient, service: str, **params: Any) -> tuple[int, str]:
    """The code of its error, and the reason or the field."""
    error = (await client.request(f"sessions.{service}", **params))["error"]
    return error["code"], error.get("reason", error.get("field", ""))


async def said(client: GatewayClient, agent: str, session_id: str, count: int) -> list[tuple[str, object]]:
    """Role and content of the entries of a session, when it has so many."""
    found: list[Json] = []

    async def is_long() -> bool:
        found[:] = (await client.request("sessions.get", agent=agent, sessionId=session_id)).get("entries", [])
        return len(found) >= count

    await eventually(is_long, f"{count} entries in {session_id} of {agent}")
    return [(one["role"], one["content"]) for one in found]


async def test_messages_of_a_team_are_entries_at_both_ends(hub: HubProcess) -> None:
    async with (
        team(hub, "scribe", alpha=EchoSeat, beta=EchoSeat) as (alpha, beta),
        owner_of(hub, "scribe") as operator,
    ):
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


async def test_an_entry_has_the_id_and_the_time_of_the_message_that_the_agent_got(
    embedded_hub: HubProcess,
) -> None:
    """The sender gave neither; also when the message waits for the agent first."""
    hub = embedded_hub
    async with owner_of(hub, "stamper") as operator:
        async with team(hub, "stamper", "alpha") as (alpha,):
            await operator.tell("alpha", "no id", role="user", sessionId="s-1")
            sent = [await alpha.find("message")]
            assert await said(operator, "alpha", "s-1", 1) == [("user", "no id")]
        await operator.tell("alpha", "no id", role="user", sessionId="s-1", metadata={"ttl": 60})
        await operator.find("event", lambda frame: frame["event"] == "message.queued")
        async with team(hub, "stamper", "alpha") as (alpha,):
            sent.append(await alpha.find("message"))
        await said(operator, "alpha", "s-1", 2)
        entries = (await ask(operator, "get", agent="alpha", sessionId="s-1"))["entries"]
        shown, wanted = ([(one["id"], one["timestamp"]) for one in some] for some in (entries, sent))
        assert shown == wanted
        assert len({one for one, _ in shown if one.startswith("msg-")}) == 2


async def test_an_agent_and_its_owner_use_the_services(embedded_hub: HubProcess) -> None:
    """Each service reaches the function that `test_session_rows.py` tests."""
    async with (
        team(embedded_hub, "clerk", alpha=EchoSeat, beta=EchoSeat) as (alpha, beta),
        owner_of(embedded_hub, "clerk") as operator,
    ):
        made = (await ask(alpha, "create"))["session"]
        name = made["id"]
        assert (made["agent"], made["entries"], made["state"]) == ("alpha", 0, "active")
        assert await refused(alpha, "create", sessionId=name) == (2005, "id_taken")
        for text in ("one", "two"):
            await beta.send_message("alpha", text, session=name)
        page = await ask(alpha, "get", sessionId=name, limit=3)
        rest = await ask(alpha, "get", sessionId=name, after=page["next"])
        assert [one["content"] for one in rest["entries"]] == ["echo: two"]
        assert (await ask(alpha, "commit", sessionId=name, lockMs=60_000))["session"]["entries"] == 4
        # A message that names a session that takes none is not delivered.
        assert code_of(await beta.send_message("alpha", "three", session=name))[0] == 4003
        assert "three" not in [one["content"]["content"] for one in alpha.of("message")]
        assert await refused(operator, "delete", agent="alpha", sessionId=name) == (4003, "sessionId")
        await ask(alpha, "commit", sessionId=name)
        exported = (await ask(alpha, "export", sessionId=name))["jsonl"]
        await ask(operator, "archive", agent="alpha", sessionId=name)
        assert code_of(await beta.send_message("alpha", "three", session=name)) == (4002, "archived")
        assert name not in [one["id"] for one in (await ask(alpha, "list"))["sessions"]]
        assert name in [one["id"] for one in (await ask(alpha, "list", archived=True))["sessions"]]
        await ask(operator, "delete", agent="alpha", sessionId=name)
        (back,) = (await ask(operator, "import", agent="alpha", jsonl=exported))["sessions"]
        assert (back["id"], back["importedFrom"]) == (name, f"alpha:{name}")
        assert await refused(operator, "import", agent="alpha", jsonl=exported[:-5]) == (4004, "line 5")


async def test_parameters_of_services_are_checked(embedded_hub: HubProcess) -> None:
    async with owner_of(embedded_hub, "clerk") as operator:
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
    async with team(hub, "insider", oracle=EchoSeat), owner_of(hub, "insider") as operator:
        handle = await publish(hub, "insider", "oracle")
        async with owner_of(hub, "outsider") as outsider:
            reply = await outsider.send_message(f"@{handle}", "hello", session="s-1")
            assert reply["content"]["content"] == "echo: hello"
            assert (await refused(outsider, "get", agent="oracle", sessionId="s-1"))[0] == 3001
        await operator.send_message(f"@{handle}", "from the owner", session="s-2")
        assert [one["id"] for one in (await ask(operator, "list"))["sessions"]] == ["s-2"]


async def test_a_message_that_waits_after_all_is_one_entry(hub: HubProcess) -> None:
    """The message was sent to a seat that took none, waited then, and was repeated in another process."""
    async with team(hub, "once", "beta") as (beta,):
        await beta.shake_hands(supportedMessageTypes=["status"])
        for url in (hub.url, hub.urls[-1]):
            async with GatewayClient(url, hub.mint("once", "session")) as operator:
                await operator.tell("beta", "wait", role="user", id="m-1", sessionId="s-1", metadata={"ttl": 60})
                await operator.find("event", lambda frame: frame["event"] == "message.queued")
                assert await said(operator, "beta", "s-1", 1) == [("user", "wait")]


async def test_two_processes_add_to_one_session_at_once(two_process_hub: HubProcess) -> None:
    hub, each = two_process_hub, 20
    async with team(hub, "crowd", "center"):
        clients = [GatewayClient(url, hub.mint("crowd", "session")) for url in (hub.urls[0], hub.urls[-1])]
        async with clients[0], clients[1]:
            for number in range(each):
                for name, client in zip("ab", clients, strict=True):
                    await client.tell("center", f"{name} {number}", role="user", sessionId="shared")
            texts = [str(content) for _, content in await said(clients[0], "center", "shared", 2 * each)]
            for name in "ab":  # all of them, in the order of their sender
                assert [one for one in texts if one[0] == name] == [f"{name} {number}" for number in range(each)]
            committed = await ask(clients[1], "commit", agent="center", sessionId="shared")
            assert committed["session"]["entries"] == 2 * each

"""Messages that wait for an agent that is offline or busy: order, time, receipts, duplicates."""

import asyncio
import contextlib
import re
from typing import Any

from lab.callers import reply_text, send, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.gateway.client import EchoSeat, GatewayClient, code_of, owner_of, publish, seat, team


async def know(hub: HubProcess, owner: str, *names: str) -> str:
    """Let agents take their seats once; the owner's token."""
    token = hub.mint(owner, "channel")
    for name in names:
        async with GatewayClient(hub.url, token, agentId=name) as seat:
            await seat.find("auth-response")
    return token


async def tell(sender: GatewayClient, agent: str, number: object, **metadata: Any) -> None:
    """Send a message that wants no response; its id is `m-<number>`."""
    await sender.tell(agent, f"note {number}", id=f"m-{number}", metadata=metadata)


async def event(client: GatewayClient, name: str, message_id: str) -> Json:
    """An event about a message."""

    def is_it(frame: Json) -> bool:
        return frame["event"] == name and frame["content"]["messageId"] == message_id

    return await client.find("event", is_it)


def told(seat: GatewayClient) -> list[str]:
    return [one["id"] for one in seat.of("message")]


async def test_stored_messages_come_by_priority_with_the_time_they_have_left(hub: HubProcess) -> None:
    token = await know(hub, "waiters", "alpha", "beta")
    async with GatewayClient(hub.url, token, agentId="alpha") as alpha:
        for number, priority in enumerate(["low", "normal", "high", "normal", "critical"]):
            await tell(alpha, "beta", number, ttl=60, priority=priority, correlationId=f"c-{number}")
            queued = await event(alpha, "message.queued", f"m-{number}")
            assert queued["metadata"] == {"correlationId": f"c-{number}", "parentId": f"m-{number}"}
        async with GatewayClient(hub.urls[-1], token, agentId="beta") as beta:
            last = await beta.find("message", lambda frame: frame["id"] == "m-0")
            assert told(beta) == ["m-4", "m-2", "m-1", "m-3", "m-0"]
            assert (last["from"], last["content"]["content"]) == ("alpha", "note 0")
            assert 0 < last["metadata"]["ttl"] < 60
            delivered = await event(alpha, "message.delivered", "m-0")
            assert delivered["content"]["agent"] == "beta"
            # What comes now is sent at once.
            await tell(alpha, "beta", 5)
            await beta.find("message", lambda frame: frame["id"] == "m-5")
        assert alpha.of("error") == []


async def test_a_sender_that_wants_a_response_gets_it_when_the_agent_comes(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    token = await know(hub, "patient", "alpha", "beta")
    async with GatewayClient(hub.url, token, agentId="alpha") as alpha:
        waiting = asyncio.create_task(alpha.send_message("beta", "late?", ttl=60, threadId="t"))
        await alpha.find("event", lambda frame: frame["event"] == "message.queued")
        async with EchoSeat(hub.urls[-1], token, agentId="beta") as beta:
            reply = await waiting
            asked = await beta.find("message")
        assert (reply["type"], reply["content"]["content"]) == ("message", "echo: late?")
        assert (reply["metadata"]["threadId"], reply["from"], reply["agent"]) == ("t", "beta", "alpha")
        assert asked["metadata"]["correlationId"] == reply["metadata"]["correlationId"]


async def test_a_message_whose_stored_message_died_unsent_may_be_sent_again(embedded_hub: HubProcess) -> None:
    token = await know(embedded_hub, "died-unsent", "alpha", "beta")
    wanted = {"requiresResponse": True, "ttl": 1}
    async with GatewayClient(embedded_hub.url, token, agentId="alpha") as alpha:
        await tell(alpha, "beta", 1, ttl=1, correlationId="c-1")
        await alpha.tell("beta", "hi", id="m-2", metadata=wanted | {"correlationId": "c-2"})
        for correlation_id in ("c-1", "c-2"):
            assert code_of(await alpha.reply(correlation_id)) == (3002, "ttl_expired")
        async with EchoSeat(embedded_hub.url, token, agentId="beta") as beta:
            await tell(alpha, "beta", 1, ttl=60, correlationId="c-3")
            await beta.find("message", lambda frame: frame["id"] == "m-1")
            again = wanted | {"ttl": 60, "correlationId": "c-4"}
            await alpha.tell("beta", "hi", id="m-2", metadata=again)
            assert (await alpha.reply("c-4"))["content"]["content"] == "echo: hi"
            await tell(alpha, "beta", 1, ttl=60)  # these were delivered: they are not again
            await tell(alpha, "beta", 3)
            await beta.find("message", lambda frame: frame["id"] == "m-3")
            assert told(beta) == ["m-1", "m-2", "m-3"]


async def test_a_busy_agent_gets_its_stored_messages_when_it_is_free(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "worker", "alpha", "beta") as (alpha, beta):
        handle = await publish(embedded_hub, "worker", "beta")
        asking = asyncio.create_task(send(embedded_hub.url, handle, "work", embedded_hub.mint("alice", "session")))
        asked = await beta.find("message", lambda frame: frame["from"] == "alice")
        await tell(alpha, "beta", 1, correlationId="c-1")
        assert code_of(await alpha.reply("c-1")) == (3003, "busy")
        await tell(alpha, "beta", 2, ttl=60)
        await event(alpha, "message.queued", "m-2")
        await beta.respond(asked)
        assert reply_text(await asking) == "done"
        await beta.find("message", lambda frame: frame["id"] == "m-2")


async def test_messages_do_not_overtake_stored_ones_and_none_comes_twice_over_two_processes(
    hub: HubProcess,
) -> None:
    """The process of the sender delivers, too: what is sent while stored messages wait joins them."""
    token = await know(hub, "racers", "alpha", "beta")
    async with GatewayClient(hub.url, token, agentId="alpha") as alpha:
        for number in range(5):
            await tell(alpha, "beta", number, ttl=60)
        await event(alpha, "message.queued", "m-4")
        async with GatewayClient(hub.urls[-1], token, agentId="beta") as beta:
            for number in range(5, 15):
                await tell(alpha, "beta", number, ttl=60)
            await beta.find("message", lambda frame: frame["id"] == "m-14")
            assert told(beta) == [f"m-{number}" for number in range(15)]
        assert alpha.of("error") == []


async def test_a_seat_that_changes_hands_gets_each_stored_message_once(hub: HubProcess) -> None:
    token = await know(hub, "movers", "alpha", "beta")
    async with GatewayClient(hub.url, token, agentId="alpha") as alpha:
        for number in range(9):
            await tell(alpha, "beta", number, ttl=60)
        await event(alpha, "message.queued", "m-8")
        async with contextlib.AsyncExitStack() as stack:
            seats = []
            for url in (hub.url, hub.urls[-1], hub.url):
                seats.append(await stack.enter_async_context(GatewayClient(url, token, agentId="beta")))
                await seats[-1].find("auth-response")

            async def has_all() -> bool:
                return len({one for seat in seats for one in told(seat)}) == 9

            assert await eventually(has_all, "every letter comes")
            await event(alpha, "message.delivered", "m-8")
            got = [one for seat in seats for one in told(seat)]
        # A connection that ends takes what was on its way with it, unless it is known that it was not written.
        assert len(got) - len(set(got)) <= 2, got
        assert sorted(set(got)) == sorted(f"m-{number}" for number in range(9))


async def test_a_repeated_message_is_delivered_once_and_answered_as_before(embedded_hub: HubProcess) -> None:
    token = await know(embedded_hub, "repeaters", "alpha", "beta", "gone")
    wanted = {"requiresResponse": True, "correlationId": "c-1"}
    async with seat(embedded_hub.url, token, "beta", EchoSeat) as beta:
        for _ in range(2):  # the second time from a new connection
            async with seat(embedded_hub.url, token, "alpha") as alpha:
                await alpha.tell("beta", "once", id="q-1", metadata=wanted)
                assert (await alpha.reply("c-1"))["content"]["content"] == "echo: once"
        async with seat(embedded_hub.url, token, "alpha") as alpha:
            # Another content under the same id is another message.
            await alpha.tell("beta", "twice", id="q-1", metadata=wanted | {"correlationId": "c-2"})
            assert (await alpha.reply("c-2"))["content"]["content"] == "echo: twice"
            for _ in range(2):
                await tell(alpha, "gone", 1, ttl=60, correlationId="c-3")

            async def is_said_twice() -> bool:
                return len(alpha.of("event")) == 2

            assert await eventually(is_said_twice, "the earlier outcome is repeated")
            receipts = (await alpha.request("inbox.receipt", messageId="m-1"))["receipts"]
            assert len(receipts) == 1
        assert told(beta) == ["q-1", "q-1"]


async def test_who_sends_a_stored_message_and_leaves_at_once_has_no_subscription(embedded_hub: HubProcess) -> None:
    """Nor is it counted as a client."""
    token = await know(embedded_hub, "fleeting", "beta")
    async with web(embedded_hub.url) as client:

        async def counted() -> list[float]:
            text = (await client.get("/metrics")).text
            found = dict(re.findall(r"(?m)^clawbridge_gateway_(clients|subscriptions)\S* (\S+)$", text))
            return [float(found[name]) for name in ("clients", "subscriptions")]

        before = await counted()
        for number in range(20):
            async with owner_of(embedded_hub, "fleeting") as sender:
                await sender.ask("subscribe", {"channel": "agent:status"})
                assert min(await counted()) >= 1
                await tell(sender, "beta", number, ttl=60)
        async with GatewayClient(embedded_hub.url, token, agentId="beta") as beta:
            await beta.find("message", lambda frame: len(told(beta)) == 20)

        async def is_as_before() -> bool:
            return all(now <= then for now, then in zip(await counted(), before, strict=True))

        await eventually(is_as_before, "clients and subscriptions are as before", within_s=15)


async def test_who_leaves_and_repeats_its_message_gets_the_reply(embedded_hub: HubProcess) -> None:
    wanted = {"requiresResponse": True, "correlationId": "c-1"}
    async with team(embedded_hub, "returners", "beta") as (beta,):
        async with team(embedded_hub, "returners", "alpha") as (alpha,):
            await alpha.tell("beta", "slow", id="q-1", metadata=wanted)
            asked = await beta.find("message")
        await beta.sees("alpha", "offline")
        await beta.respond(asked)
        async with team(embedded_hub, "returners", "alpha") as (alpha,):
            await alpha.tell("beta", "slow", id="q-1", metadata=wanted)
            assert (await alpha.reply("c-1"))["content"]["content"] == "done"
        assert told(beta) == ["q-1"]


async def test_the_services_of_an_inbox(embedded_hub: HubProcess) -> None:
    token = await know(embedded_hub, "readers", "alpha", "beta")
    async with seat(embedded_hub.url, token, "alpha") as alpha, owner_of(embedded_hub, "readers") as owner:
        sent = await alpha.request("inbox.send", agent="beta", content="one", id="m-1", priority="high")
        assert sent == {"messageId": "m-1", "agent": "beta", "state": "queued"}
        await alpha.request("inbox.send", agent="beta", content={"n": 2}, id="m-2")
        receipt = (await alpha.request("inbox.receipt", messageId="m-1"))["receipts"][0]
        assert (receipt["state"], receipt["agent"], receipt["priority"]) == ("queued", "beta", "high")
        # The owner reads the inbox of each agent; an agent its own alone.
        seen = (await owner.request("inbox.get", agent="beta", limit=1))["messages"]
        assert [(one["messageId"], one["from"], one["content"]["content"]) for one in seen] == [
            ("m-2", "alpha", {"n": 2})
        ]
        listed = (await owner.request("inbox.list"))["inboxes"]
        assert [(one["agent"], one["queued"]) for one in listed] == [("alpha", 0), ("beta", 2)]
        refused = (await alpha.request("inbox.get", agent="beta"))["error"]
        assert refused["code"] == 5004
        assert (await owner.request("inbox.clear"))["error"]["code"] == 5004
        assert (await owner.request("inbox.get", agent="absent"))["error"]["code"] == 3001
        assert (await alpha.request("inbox.get", limit="all"))["error"]["code"] == 2003
        assert (await alpha.request("inbox.send", agent="beta"))["error"]["code"] == 2003
        async with GatewayClient(embedded_hub.url, token, agentId="beta") as beta:
            await beta.find("message", lambda frame: frame["id"] == "m-2")
            await event(alpha, "message.delivered", "m-2")
            assert (await beta.request("inbox.count")) == {"total": 2, "unread": 2, "queued": 0}
            assert (await beta.request("inbox.mark_read", ids=["m-1"])) == {"marked": 1}
            await event(alpha, "message.read", "m-1")
            unread = (await beta.request("inbox.unread"))["messages"]
            assert [one["messageId"] for one in unread] == ["m-2"]
            assert (await beta.request("inbox.clear")) == {"deleted": 2, "ended": 0}
            assert (await beta.request("inbox.count"))["total"] == 0
        receipts = await alpha.request("inbox.receipt", messageId="m-1")
        assert receipts["error"]["reason"] == "message_not_found"


async def test_a_stored_message_that_no_key_opens_dies_and_the_next_one_comes(embedded_hub: HubProcess) -> None:
    token = await know(embedded_hub, "forgetful", "alpha", "beta")
    async with GatewayClient(embedded_hub.url, token, agentId="alpha") as alpha:
        for number in (1, 2):
            await tell(alpha, "beta", number, ttl=600)
            await event(alpha, "message.queued", f"m-{number}")
        name = "(SELECT id FROM accounts_user WHERE login = 'forgetful')"
        lose = "UPDATE gateway_letter SET envelope = 'lost' WHERE message_id = 'm-1' AND owner_id = "
        sql(embedded_hub, lose + name)
        async with GatewayClient(embedded_hub.url, token, agentId="beta") as beta:
            await beta.find("message", lambda frame: frame["id"] == "m-2")
            assert code_of(await alpha.find("error")) == (3004, "unreadable")
            assert told(beta) == ["m-2"]

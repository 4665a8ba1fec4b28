"""Subscriptions: statuses, events and copies of messages, over one process and over two."""

import asyncio
import json
from typing import Any

import pytest

from accounts.models import Credential, User
from accounts.tokens import mint
from agents.core.post import LocalPost
from agents.core.waiting import WaitingTurns
from agents.links.sockets import SocketLink
from agents.models import Connection, Process, Session
from gateway.service.client import Gateway
from gateway.service.health import HealthReport
from gateway.service.pushes import Channels, find_watching
from gateway.service.seat import GATEWAY_LINK
from gateway.service.status_feed import StatusFeed
from kit.account_pace import AccountPaces
from kit.async_db import db_call
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.gateway.client import EchoSeat, GatewayClient, code_of, owner_of, publish, seat, team


async def subscribed(client: GatewayClient, channel: str, *agents: str) -> Json:
    """Subscribe; the acknowledgement, or the error."""
    return await client.ask("subscribe", {"channel": channel} | ({"agents": agents} if agents else {}))


def statuses_of(client: GatewayClient, agent: str) -> list[str]:
    """The statuses of an agent that a client was pushed, in order."""
    shown = [one["content"] for one in client.of("status")]
    return [one["status"] for one in shown if one["agent"] == agent]


async def test_subscribers_are_pushed_the_statuses_of_their_team(hub: HubProcess) -> None:
    async with owner_of(hub, "watched-team") as watcher, owner_of(hub, "stranger") as other:
        acknowledged = await subscribed(watcher, "agent:status")
        assert acknowledged["content"] == {"channel": "agent:status", "status": "subscribed"}
        await subscribed(other, "agent:status")
        async with seat(hub.urls[-1], hub.mint("watched-team", "channel"), "alpha") as alpha:
            came = (await watcher.find("status"))["content"]
            wanted = {"agent": "alpha", "status": "online", "previous": "offline", "lastSeen": came["lastSeen"]}
            assert came == wanted
            await alpha.send("status", {"agent": "alpha", "status": "busy"})
            busy = await watcher.find("status", lambda one: one["content"]["status"] == "busy")
            assert busy["content"]["previous"] == "online"
            async with owner_of(hub, "watched-team") as late:  # a snapshot follows the acknowledgement
                await subscribed(late, "agent:status", "alpha")
                assert (await late.find("status"))["content"]["status"] == "busy"
                await alpha.send("status", {"status": "idle"})
                await late.find("status", lambda one: one["content"]["status"] == "idle")
        gone = await watcher.find("status", lambda one: one["content"]["status"] == "offline")
        assert (gone["content"]["previous"], other.of("status")) == ("idle", [])


async def test_agents_narrow_a_subscription_and_the_next_one_replaces_them(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with team(hub, "narrow", "alpha", "beta") as (alpha, beta), owner_of(hub, "narrow") as watcher:

        async def set_each(status: str) -> None:
            await alpha.send("status", {"status": status})
            await beta.send("status", {"status": status})
            await asyncio.gather(alpha.discover(), beta.discover())  # both are published now

        await subscribed(watcher, "agent:status", "alpha")
        await set_each("idle")
        await subscribed(watcher, "agent:status", "beta")
        await watcher.find("status", lambda one: one["content"]["agent"] == "beta")
        await set_each("busy")
        await watcher.ask("unsubscribe", {"channel": "agent:status", "agents": ["beta"]})
        await set_each("idle")
        await subscribed(watcher, "agent:status")  # all, with a snapshot
        await watcher.find("status", lambda one: one["content"]["agent"] == "alpha")
        await watcher.ask("unsubscribe", {"channel": "agent:status", "agents": ["alpha"]})
        await set_each("error")
        await watcher.find("status", lambda one: one["content"]["status"] == "error")
        left = await watcher.ask("unsubscribe", {"channel": "agent:status"})
        assert left["content"] == {"channel": "agent:status", "status": "unsubscribed"}
        await set_each("online")
        again = await watcher.ask("unsubscribe", {"channel": "agent:status"})
        assert again["content"]["status"] == "unsubscribed"
        assert statuses_of(watcher, "alpha") == ["online", "idle", "idle"]
        assert statuses_of(watcher, "beta") == ["idle", "busy", "idle", "error"]


async def test_subscriptions_that_are_refused(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with team(hub, "refused-sub", "alpha", "beta") as (alpha, _), owner_of(hub, "refused-sub") as owner:
        wanted: list[tuple[GatewayClient, Json, int]] = [
            (alpha, {"channel": "agent:beta:inbox"}, 5004),
            (alpha, {"channel": "agent:absent:inbox"}, 5004),
            (owner, {"channel": "agent:absent:inbox"}, 3001),
            (alpha, {"channel": "nope"}, 2005),
            (alpha, {"channel": "agent:status:inbox:x"}, 2005),
            (alpha, {"channel": "triad:"}, 2005),
            (alpha, {"channel": "triad:absent"}, 2005),
            (alpha, {}, 2002),
            (alpha, {"channel": "agent:status", "agents": ["beta", "absent"]}, 3001),
            (alpha, {"channel": "agent:status", "agents": ["Not A Name"]}, 3001),
            (alpha, {"channel": "agent:status", "agents": [f"a{number}" for number in range(501)]}, 2005),
        ]
        codes = [code_of(await who.ask("subscribe", content))[0] for who, content, _ in wanted]
        assert codes == [code for *_, code in wanted]
        for who in (alpha, owner):
            assert (await subscribed(who, "agent:alpha:inbox"))["content"]["status"] == "subscribed"


async def test_a_connection_has_at_most_100_subscriptions(embedded_hub: HubProcess) -> None:
    async with owner_of(embedded_hub, "many-subs") as client:
        for number in range(0, 102, 2):  # each has two ids
            about = {"correlationId": f"p-{number}"}
            await client.ask("proposal", {"proposal": "p"}, id=f"p-{number + 1}", metadata=about)
        for number in range(101):
            await client.send("subscribe", {"channel": f"triad:p-{number}"})
        assert code_of(await client.find("error")) == (2005, "too_many_subscriptions")
        again = await subscribed(client, "triad:p-7")  # one that it has
        assert again["content"]["status"] == "subscribed"
        await client.ask("unsubscribe", {"channel": "triad:p-0"})
        assert (await subscribed(client, "triad:p-100"))["content"]["status"] == "subscribed"


async def test_events_reach_the_subscribers_of_their_channel(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    alpha = GatewayClient(hub.urls[-1], hub.mint("events-team", "channel"), agentId="alpha")
    async with owner_of(hub, "events-team") as owner, alpha:
        await alpha.find("auth-response")
        await subscribed(owner, "agent:a2a")
        await subscribed(alpha, "agent:activity")
        content = {"event": "plan.ready", "step": 3}
        await alpha.send("event", content, id="e-1", metadata={"threadId": "t"})
        pushed = await owner.find("event", lambda one: one["event"] == "plan.ready")
        assert (pushed["content"], pushed["from"], pushed["id"]) == (content, "alpha", "e-1")
        assert pushed["metadata"] == {"threadId": "t"}
        await owner.send("event", {"channel": "agent:activity", "note": "hi"}, event="note")
        seen = await alpha.find("event", lambda one: one["event"] == "note")
        assert (seen["from"], seen["content"]["note"]) == ("events-team", "hi")
        wanted = [
            ({"event": "gateway.restarts"}, 5004),
            ({"x": 1}, 2002),
            ({"event": 7}, 2003),
            ({"event": ""}, 2005),
            ({"event": "x", "channel": "agent:status"}, 2005),
        ]
        for content, code in wanted:
            assert code_of(await alpha.ask("event", content))[0] == code


async def test_messages_of_seats_are_copied_without_their_text(hub: HubProcess) -> None:
    async with (
        owner_of(hub, "copied") as owner,
        owner_of(hub, "copied") as inbox,
        team(hub, "copied", "alpha", beta=EchoSeat) as (alpha, _),
    ):
        await subscribed(owner, "agent:message")
        await subscribed(inbox, "agent:beta:inbox")
        reply = await alpha.send_message("beta", "the secret plan")
        assert reply["content"]["content"] == "echo: the secret plan"
        copy = await owner.find("event", lambda one: one["event"] == "message.delivered")
        shown = {key: copy["content"][key] for key in ("agent", "from", "requiresResponse")}
        assert shown == {"agent": "beta", "from": "alpha", "requiresResponse": True}
        assert copy["content"]["id"].startswith("msg-corr-")
        assert "the secret plan" not in str(owner.frames)
        whole = await inbox.find("event")
        assert whole["content"]["message"] == {"role": "user", "content": "the secret plan"}


async def test_types_that_a_client_does_not_take_are_not_pushed(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "filtered", "alpha") as (alpha,), owner_of(embedded_hub, "filtered") as owner:
        await owner.shake_hands(supportedMessageTypes=["event"])
        await subscribed(owner, "agent:status", "alpha")
        await subscribed(owner, "agent:a2a")
        await alpha.send("status", {"status": "idle"})
        await alpha.send("event", {"event": "after"})
        await owner.find("event")
        assert "idle" not in statuses_of(owner, "alpha")


async def test_an_agent_that_works_for_another_owner_reaches_nothing_of_its_team(embedded_hub: HubProcess) -> None:
    async with (
        team(embedded_hub, "lent", "oracle", "colleague") as (oracle, colleague),
        owner_of(embedded_hub, "borrower") as caller,
    ):
        before = len(colleague.frames)
        handle = await publish(embedded_hub, "lent", "oracle", isolated=False)
        asking = asyncio.create_task(caller.send_message(f"@{handle}", "hi"))
        await oracle.find("message")
        for type_name, content in (
            ("subscribe", {"channel": "agent:activity"}),
            ("event", {"event": "x"}),
            ("workspace", {"action": "list"}),
            ("broadcast", {"message": "stop"}),
        ):
            assert code_of(await oracle.ask(type_name, content)) == (5004, "works_for_another")
        for service in ("get", "unread", "count", "list", "mark_read", "clear"):
            refused = (await oracle.request(f"inbox.{service}"))["error"]
            assert (refused["code"], refused["reason"]) == (5004, "works_for_another"), service
        assert code_of(await oracle.send_message("broadcast", "stop")) == (5004, "works_for_another")
        assert colleague.frames[before:] == []
        asking.cancel()


class Subscriber:
    """Keeps the contents of what it is pushed."""

    def __init__(self) -> None:
        self.contents: list[Json] = []

    def push(self, type_name: str, frame: bytes) -> bool:
        self.contents.append(json.loads(frame)["content"])
        return True

    def statuses(self) -> list[tuple[str, str, str]]:
        """The agents, each with the status before and the one after."""
        return [(one["agent"], one["previous"], one["status"]) for one in self.contents]


def make_owner() -> int:
    """A user, and the row of the process that has the subscribers."""
    Process.objects.create(id="p", host="test", pid=1)
    return int(User.objects.create(login="subscribed-often").pk)


@pytest.mark.django_db(transaction=True)
async def test_ten_thousand_subscriptions_are_dropped_with_their_connections() -> None:
    channels = Channels("p", LocalPost(), is_alone=True)
    owner_id = await db_call(make_owner)()
    clients = [Subscriber() for _ in range(100)]
    for client in clients:
        for number in range(100):
            await channels.subscribe(owner_id, f"triad:{number}", client)
    await channels.publish(owner_id, "triad:7", {"type": "event", "content": {}})
    assert [client.contents for client in clients] == [[{}]] * 100
    assert await db_call(find_watching)(owner_id) == ["p"]
    for client in clients:
        await channels.leave(client)
    assert not channels.may_reach(owner_id)
    assert [channels.count(owner_id, "triad:7"), await db_call(find_watching)(owner_id)] == [0, []]


async def test_a_client_that_left_while_the_database_is_away_has_no_subscriptions() -> None:
    channels, client = Channels("p", LocalPost(), is_alone=True), Subscriber()
    for owner_id in (1, 2, 3):
        with pytest.raises(RuntimeError, match="Database access not allowed"):
            await channels.subscribe(owner_id, "agent:status", client)
    assert channels.total == 3
    with pytest.raises(RuntimeError, match="Database access not allowed"):
        await channels.leave(client)
    assert (channels.total, channels.subscriptions(client)) == (0, {})


async def _release(chat_id: str, late: str, usage: object) -> None:
    raise AssertionError("no turn runs here")


def build_gateway(a_second: int = 0) -> Gateway:
    """The parts of a process that serves no socket."""
    dispatcher: Any = None  # nothing is asked
    link = SocketLink(process_id="p", post=LocalPost(), waiting=WaitingTurns(_release))
    return Gateway.build(
        process_id="p",
        link=link,
        dispatcher=dispatcher,
        post=LocalPost(),
        is_alone=True,
        health=HealthReport("", ""),
        paces=AccountPaces(a_second),
    )


def connect_alpha() -> int:
    """An agent of a team that is connected to a process which lives; the team's owner."""
    owner_id = make_owner()
    owner = User.objects.get(pk=owner_id)
    session = Session.objects.create(owner=owner, routing_name="alpha", link=GATEWAY_LINK)
    credential = mint(owner, Credential.Kind.CHANNEL, "alpha").credential
    Connection.objects.create(session=session, process_id="p", credential=credential)
    return owner_id


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["by the clock", "when one more subscribes"])
async def test_a_change_that_no_process_published_is_pushed(how: str) -> None:
    now = [0.0]
    gateway = build_gateway()
    feed = StatusFeed(gateway.channels, gateway.router, lambda: now[0])
    owner_id = await db_call(connect_alpha)()
    first, second = Subscriber(), Subscriber()
    assert (await feed.subscribe(owner_id, first, ()))["alpha"].status == "online"
    await db_call(Connection.objects.all().delete)()  # as when a process died
    if how == "by the clock":
        await feed.look()
    else:
        now[0] += 60
        assert (await feed.subscribe(owner_id, second, ()))["alpha"].status == "offline"
    assert first.statuses() == [("alpha", "online", "offline")]
    await feed.look()
    assert (first.statuses()[1:], second.statuses()) == ([], [])
    await gateway.channels.leave(first)
    await gateway.channels.leave(second)
    await feed.look()  # nothing is looked after any more
    assert gateway.channels.count(owner_id, "agent:status") == 0
    assert not gateway.channels.may_reach(owner_id)

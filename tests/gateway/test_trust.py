"""Agents reach their team also after a lost connection; while they work for a stranger they reach no agent."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lab.callers import reply_text, send
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.gateway.client import GatewayClient, change_policy, code_of, owner_of, publish, seat, team

_numbers = itertools.count(1)
ACTS = ("discover", "tell", "inbox", "sessions", "broadcast", "propose", "vote")
ISOLATED = dict.fromkeys(ACTS, "isolated")
REACHED = dict.fromkeys(ACTS, "")


def outcome(frame: Json) -> str:
    """The reason of a refusal, or empty."""
    code, reason = code_of(frame)
    return reason or str(code or "")


async def told(sender: GatewayClient, recipient: GatewayClient, name: str = "alpha") -> str:
    """Tell another agent something; the reason of the refusal, empty when the message arrives."""
    key = f"m-{next(_numbers)}"
    await sender.tell(name, key, id=key, metadata={"correlationId": key})
    comes = asyncio.create_task(recipient.find_any(lambda frame: frame.get("id") == key))
    fails = asyncio.create_task(sender.reply(key, "error"))
    try:
        await asyncio.wait([comes, fails], return_when=asyncio.FIRST_COMPLETED)
        return "" if comes.done() else outcome(fails.result())
    finally:
        comes.cancel()
        fails.cancel()
        await asyncio.gather(comes, fails, return_exceptions=True)


async def reach(client: GatewayClient, alpha: GatewayClient) -> dict[str, str]:
    """Try each act of an agent in its team; the reason of each refusal, or empty."""
    key = f"p-{next(_numbers)}"
    await alpha.propose(key)
    vote = await client.vote(key, "approve")
    proposed = await client.propose(f"{key}-own")
    found = [await client.ask("discovery", {"action": "list"})]
    tell = await told(client, alpha)
    found += [await client.ask("request", {"service": one}) for one in ("inbox.count", "sessions.list")]
    found.append(await client.ask("broadcast", {"message": "hello"}))
    discover, *others = map(outcome, found)
    reasons = [discover, tell, *others, proposed.get("reason", ""), vote.get("reason", "")]
    return dict(zip(ACTS, reasons, strict=True))


@asynccontextmanager
async def back(
    hub: HubProcess, owner: str, old: GatewayClient, name: str, *, by_taking_over: bool
) -> AsyncIterator[GatewayClient]:
    """Take the seat again with a new connection: after the old connection broke, or in its place."""
    if not by_taking_over:
        old.socket.transport.abort()
        await old.closed()
    async with seat(hub.urls[-1], hub.mint(owner, "channel"), name) as again:
        yield again


async def test_an_agent_that_comes_back_reaches_its_team_at_once(hub: HubProcess) -> None:
    """Earlier messages of the team, and the way the connection ended, do not matter."""
    async with team(hub, "trust-back", "alpha") as (alpha,):
        for before, by_taking_over in itertools.product(("told", "asked", "answered"), (False, True)):
            name = f"{before}-{by_taking_over}".lower()
            wanted = {} if before == "told" else {"requiresResponse": True, "correlationId": name}
            async with seat(hub.urls[-1], hub.mint("trust-back", "channel"), name) as beta:
                await alpha.tell(name, "what?", role="user", metadata=wanted)
                asked = await beta.find("message")
                if before == "answered":
                    await beta.respond(asked, "here you are")
                    assert (await alpha.reply(name))["content"]["content"] == "here you are"
                async with back(hub, "trust-back", beta, name, by_taking_over=by_taking_over) as again:
                    assert await reach(again, alpha) == REACHED | {"vote": "not_triad_member"}, name


async def test_an_agent_that_comes_back_is_isolated_by_what_a_stranger_asked_until_it_answers(
    hub: HubProcess,
) -> None:
    alice = hub.mint("alice", "session")
    for by_taking_over in (False, True):
        owner = f"trusted-{by_taking_over}"
        async with team(hub, owner, "alpha", "beta", "front") as (alpha, beta, _):
            handle = await publish(hub, owner, "beta")
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(send(hub.url, handle, "open", alice))
                asked = await beta.find("message")
                assert await reach(beta, alpha) == ISOLATED
                await beta.respond(asked, "here you are")
                assert await reach(beta, alpha) == REACHED
            assert reply_text(asking.result()) == "here you are"
            async with back(hub, owner, beta, "beta", by_taking_over=by_taking_over) as again:
                assert await reach(again, alpha) == REACHED
                async with asyncio.TaskGroup() as group:
                    group.create_task(send(hub.url, handle, "open", alice))
                    await again.find("message", lambda frame: frame["from"] == "alice")
                    async with back(hub, owner, again, "beta", by_taking_over=by_taking_over) as last:
                        assert await reach(last, alpha) == ISOLATED


async def test_a_late_answer_to_a_stranger_ends_the_isolation_too(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "trust-late", "alpha", "beta") as (alpha, beta):
        handle = await publish(embedded_hub, "trust-late", "beta")
        async with owner_of(embedded_hub, "alice") as alice:
            failed = await alice.send_message(f"@{handle}", "now", ttl=0.3)
            assert code_of(failed) == (3004, "response_timeout")
        asked = await beta.find("message")
        assert await reach(beta, alpha) == ISOLATED
        await beta.respond(asked)
        assert await reach(beta, alpha) == REACHED


async def test_an_agent_that_its_team_told_something_asks_its_team_for_a_stranger(
    embedded_hub: HubProcess,
) -> None:
    async with team(embedded_hub, "trust-told", "alpha", "beta") as (alpha, beta):
        handle = await publish(embedded_hub, "trust-told", "beta", isolated=False)
        target = await publish(embedded_hub, "trust-told", "alpha", isolated=False)
        assert await told(alpha, beta, "beta") == ""
        async with asyncio.TaskGroup() as group:
            group.create_task(send(embedded_hub.url, handle, "ask alpha", embedded_hub.mint("alice", "session")))
            asked = await beta.find("message", lambda frame: frame["from"] == "alice")
            onward = group.create_task(beta.send_message(f"@{target}", "help", parentId=asked["id"]))
            part = await alpha.find("message")
            await alpha.respond(part, "the part")
            assert (await onward)["content"]["content"] == "the part"
            await beta.respond(asked)


async def test_what_a_strangers_agent_asks_for_the_owner_is_not_passed_on_as_the_owners_own(
    embedded_hub: HubProcess,
) -> None:
    owner = "trust-passed"
    async with (
        team(embedded_hub, owner, "alpha", "beta", "gamma") as (alpha, beta, gamma),
        team(embedded_hub, "trust-else", "foreign") as (foreign,),
        owner_of(embedded_hub, owner) as client,
    ):
        await change_policy(embedded_hub, owner, storesTold=False)
        handle = await publish(embedded_hub, owner, "beta", isolated=False)
        elsewhere = await publish(embedded_hub, "trust-else", "foreign", isolated=False)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.send_message(f"@{elsewhere}", "ask beta"))
            asked = await foreign.find("message")
            group.create_task(foreign.send_message(f"@{handle}", "go on", parentId=asked["id"]))
            passed = await beta.find("message")
            apart = dict.fromkeys(REACHED, "works_for_another") | {"discover": "", "tell": ""}
            assert await reach(beta, alpha) == apart
            # It tells gamma: gamma works for a stranger, too.
            assert await told(beta, gamma, "gamma") == ""
            assert await reach(gamma, alpha) == apart
            await beta.respond(passed)
            await foreign.respond(asked)


async def test_an_agent_that_an_own_agent_asks_for_a_stranger_is_isolated(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with team(hub, "trust-chain", "alpha", "beta", "front") as (alpha, beta, front):
        handles = [
            await publish(hub, "trust-chain", "beta"),
            await publish(hub, "trust-chain", "front", isolated=False),
        ]
        async with asyncio.TaskGroup() as group:
            group.create_task(send(hub.url, handles[1], "ask beta", hub.mint("alice", "session")))
            asked = await front.find("message")
            metadata = {"requiresResponse": True, "correlationId": "c-1", "parentId": asked["id"]}
            await front.tell(f"@{handles[0]}", "open", role="user", metadata=metadata)
            await beta.find("message")
            assert await reach(beta, alpha) == ISOLATED
            async with back(hub, "trust-chain", beta, "beta", by_taking_over=False) as again:
                assert await reach(again, alpha) == ISOLATED
            await front.respond(asked)


async def test_an_agent_tells_its_asker_how_far_it_is_and_does_not_make_it_wait(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "trust-progress", "alpha", "beta", "charlie") as (alpha, beta, charlie):
        asking = asyncio.create_task(alpha.send_message("beta", "do it", ttl=60))
        asked = await beta.find("message")
        about = {"parentId": asked["id"]}
        for text in ("half of it is done", "which colour?"):
            await beta.tell("alpha", text, metadata=about)
            got = await alpha.find("message", lambda frame: frame["content"].get("content") == text)  # noqa: B023
            assert got["from"] == "beta"
        await alpha.tell("beta", "blue")
        await beta.find("message", lambda frame: frame["content"]["content"] == "blue")
        assert code_of(await beta.send_message("alpha", "shall I?", parentId=asked["id"])) == (2005, "cycle")
        # Nor in a longer circle: charlie works for beta, which alpha waits for.
        onward = asyncio.create_task(beta.send_message("charlie", "a part of it", ttl=60))
        part = await charlie.find("message")
        assert code_of(await charlie.send_message("alpha", "shall I?")) == (2005, "cycle")
        assert await told(charlie, alpha) == ""
        await charlie.respond(part, "the part")
        assert (await onward)["content"]["content"] == "the part"
        await beta.respond(asked, "done")
        assert (await asking)["content"]["content"] == "done"


async def test_an_agent_that_was_too_slow_reaches_its_asker_and_its_team(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "trust-slow", "alpha", "beta") as (alpha, beta):
        assert code_of(await alpha.send_message("beta", "now", ttl=0.3)) == (3004, "response_timeout")
        asked = await beta.find("message")
        assert await reach(beta, alpha) == REACHED
        await beta.tell("alpha", "late", metadata={"parentId": asked["id"]})
        await alpha.find("message", lambda frame: frame["content"].get("content") == "late")

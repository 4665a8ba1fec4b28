"""Requests of an agent to the hub for its owner: each request and its answer."""

import pytest

from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import Agent, Echoing, agent, events_of, route_name, rows

TOLD = "(tell mode — no reply)"


async def test_agents_are_listed_with_what_their_owner_sees(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with (
        agent(hub, "owner") as mine,
        agent(hub, "alice", fields={"tagline": "knows Rust", "isolated": False}) as other,
        agent(hub, "alice", fields={"status": "draft"}) as draft,
    ):
        listed = await mine.agents()
        assert listed["callerLogin"] == "owner"
        by_handle = {one["handle"]: one for one in listed["agents"]}
        shown = {
            "handle": other.handle,
            "ownerLogin": "alice",
            "name": other.agent["name"],
            "tagline": "knows Rust",
        }
        assert by_handle[other.handle] == shown | {"online": True, "mine": False, "isolated": False}
        assert by_handle[mine.handle]["mine"]
        assert draft.handle not in by_handle
        assert [one["handle"] for one in (await mine.agents(other.handle))["agents"]] == [other.handle]
        assert (await mine.agents("no \0 such"))["agents"] == []


async def test_a_dispatch_reaches_another_owners_agent_and_is_audited(hub: HubProcess) -> None:
    async with agent(hub, "owner") as mine, agent(hub, "alice", Echoing, at=-1) as other:
        assert await mine.dispatch(other.handle) == "echo: hello?"
        assert await mine.route(f"@{other.handle}") == "echo: hello?"  # a route finds agents too
        routed, dispatched = await rows(hub, "alice", other.agent["id"])
        assert (dispatched["askerLogin"], dispatched["ok"], routed["askerLogin"]) == ("owner", True, "owner")


@pytest.mark.parametrize("kind", ["route", "dispatch"])
async def test_the_reply_to_what_was_told_comes_back_as_a_note(embedded_hub: HubProcess, kind: str) -> None:
    hub = embedded_hub
    async with agent(hub, "owner") as mine, agent(hub, "owner", at=-1) as other:
        name = route_name("owner", other) if kind == "route" else other.handle
        for text in ("first", "second"):
            assert await (mine.route if kind == "route" else mine.dispatch)(name, text, "tell") == TOLD
        first, second = await other.heard("prompt"), await other.heard("prompt", count=2)
        await other.reply(second["chatId"], "second done")
        note = await mine.heard("route_reply")
        await other.reply(first["chatId"], "first done")
        shown = {"type": "route_reply", "routeId": second["chatId"], "fromName": name, "text": "second done"}
        assert note == shown | {"origin": "mcp", "ts": note["ts"]}
        assert (await mine.heard("route_reply", count=2))["text"] == "first done"
        answers = [payload for _, type_, payload in events_of(hub, mine) if type_ == "reply"]
        assert [(one["text"], one["source"], one["peerLogin"]) for one in answers] == [
            ("second done", "peer-reply", name),
            ("first done", "peer-reply", name),
        ]


async def test_a_told_peer_that_does_not_reply_is_reported_too(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner") as mine:
        async with agent(hub, "owner", publishes=False) as lost, agent(hub, "owner", publishes=False) as silent:
            await mine.route(route_name("owner", silent), mode="tell")
            await silent.heard("prompt")
            await silent.stop()
            assert (await mine.heard("route_reply"))["text"] == "(the turn ended without a reply)"
            await mine.route(route_name("owner", lost), mode="tell")
            await lost.heard("prompt")
        note = await mine.heard("route_reply", count=2)
        assert note["text"] == f"error: @{route_name('owner', lost)} went offline before it replied"
        assert (await mine.route("no-such", mode="tell")).startswith("error: ")
        assert [type_ for _, type_, _ in events_of(hub, mine)] == []
        assert sum(frame["type"] == "route_reply" for frame in mine.frames) == 2


async def test_questions_of_one_agent_to_one_peer_arrive_in_order_without_waiting(hub: HubProcess) -> None:
    async with agent(hub, "owner") as mine, agent(hub, "alice", at=-1, fields={"concurrencyCap": 20}) as other:
        sent = [f"question {number}" for number in range(18)]
        for number, text in enumerate(sent):
            if number % 3:
                await mine.request("route", peer=other.handle, prompt=text, mode="ask" if number % 2 else "tell")
            else:
                await mine.request("probe", peers=[f"@{other.handle}"], prompt=text)
        await other.heard("prompt", count=len(sent))
        assert [prompt["text"] for prompt in other.prompts] == sent


REFUSED = [
    ("route", {"peer": "unknown/nothing"}, "error: there is no @unknown/nothing that may be asked"),
    ("route", {"peer": ""}, "error: there is no @ that may be asked"),
    ("route", {"peer": "x\0y"}, "error: there is no @x\0y that may be asked"),
    ("dispatch", {"handle": "@owner/none-such"}, "error: there is no @owner/none-such that may be asked"),
    ("dispatch", {"handle": "{own}"}, "error: the question came through @{own} already"),
    ("dispatch", {"handle": "{own}", "prompt": " "}, "error: the prompt is empty"),
    ("dispatch", {"handle": "{own}", "prompt": "a\0"}, "error: the prompt holds a NUL"),
    ("dispatch", {"handle": "{own}", "prompt": "x" * 1_100_000}, "error: the prompt is over 1048576 bytes"),
]


async def test_a_request_that_cannot_be_served_says_why(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    async with agent(embedded_hub, "owner") as mine:
        for kind, fields, reply in REFUSED:
            filled = {name: value.replace("{own}", mine.handle) for name, value in fields.items()}
            with subtests.test(kind=kind, fields=fields):
                sent = await mine.request(kind, **({"prompt": "hello?", "mode": "ask"} | filled))
                assert (await mine.answer_to("route", sent))["reply"].startswith(
                    reply.replace("{own}", mine.handle)
                )


async def test_a_probe_asks_all_who_are_online_at_once_and_ends(hub: HubProcess) -> None:
    async with agent(hub, "dora", publishes=False) as gone:
        pass
    async with (
        agent(hub, "dora", publishes=False) as mine,
        agent(hub, "dora", Echoing, at=-1, publishes=False) as one,
        agent(hub, "dora", Echoing, publishes=False) as two,
    ):
        all_replies = {route_name("dora", one): "echo: hello?", route_name("dora", two): "echo: hello?"}

        async def has_left() -> bool:
            listed = await mine.answer_to("list_peers", await mine.request("list_peers"))
            return {peer["login"]: peer["online"] for peer in listed["peers"]}[route_name("dora", gone)] is False

        await eventually(has_left, "one more peer is known, and offline")
        assert await mine.probe(None) == all_replies
        named = await mine.probe([f"@{route_name('dora', one)}", "no-such", route_name("dora", one)])
        assert named == {
            route_name("dora", one): "echo: hello?",
            "no-such": "error: there is no @no-such that may be asked",
        }


async def test_at_most_twenty_requests_are_open_at_once(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner") as mine, agent(hub, "alice", fields={"concurrencyCap": 20}) as other:
        for number in range(20):
            await mine.request("dispatch", handle=other.handle, prompt=f"q{number}", mode="ask")
        await other.heard("prompt", count=20)
        assert await mine.dispatch(other.handle) == (
            "error: too many requests of this agent are open, wait for one of them"
        )
        await mine.request("list_peers")
        await mine.errors("too_many_requests")
        await other.reply(other.prompts[0]["chatId"], "done")
        await mine.heard("route_response", count=2)
        assert (await mine.agents())["callerLogin"] == "owner"


async def test_an_agent_that_leaves_while_it_waits_ends_its_wait_not_the_turn(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "alice") as other:
        async with agent(hub, "owner") as mine:
            await mine.request("dispatch", handle=other.handle, prompt="?", mode="ask")
            prompt = await other.heard("prompt")
        await other.reply(prompt["chatId"], "to no caller")
        async with agent(hub, "owner") as again:
            await again.request("dispatch", handle=other.handle, prompt="?", mode="ask")
            prompt = await other.heard("prompt", count=2)
            await other.reply(prompt["chatId"], "to a caller")
            assert (await again.heard("route_response"))["reply"] == "to a caller"
        assert [row["ok"] for row in await rows(hub, "alice", other.agent["id"])] == [True, True]


HOSTILE = [
    {"type": "list_agents_request"},
    {"type": "list_agents_request", "correlationId": 5},
    {"type": "list_agents_request", "correlationId": ""},
    {"type": "list_agents_request", "correlationId": "x" * 129},
    {"type": "list_peers_request", "correlationId": None},
    {"type": "route_request", "correlationId": "c", "peer": 5, "prompt": "x"},
    {"type": "route_request", "correlationId": "c", "peer": "x", "prompt": "x", "mode": "shout"},
    {"type": "dispatch_request", "correlationId": "c", "handle": "x" * 2000, "prompt": "x"},
    {"type": "probe_request", "correlationId": "c", "prompt": "x", "peers": "all"},
    {"type": "probe_request", "correlationId": "c", "prompt": "x", "peers": ["p"] * 501},
    {"type": "permission_request", "requestId": "x" * 129, "tool": "t", "inputPreview": ""},
    {"type": "permission_request", "requestId": "a\0b", "tool": "t", "inputPreview": ""},
    {"type": "permission_request", "requestId": "r", "tool": 5},
]


async def test_a_malformed_request_is_an_error_frame_and_no_more(embedded_hub: HubProcess) -> None:
    async with agent(embedded_hub, "owner", Agent) as mine:
        for number, frame in enumerate(HOSTILE, 1):
            await mine.send(**frame)
            assert (await mine.heard("error", count=number))["code"] == "bad_frame", frame
        assert (await mine.agents())["callerLogin"] == "owner"

"""`POST /sessions/{id}/prompt`: who may, whom it reaches, and what the transcripts show of it."""

import re

from lab.agents import Echo, Held, online
from lab.callers import bearer, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from tests.operators.operator import Operator, post, prompt, refused
from tests.operators.rows import archive, share


async def test_the_owner_prompts_and_the_answer_does_not_wait(hub: HubProcess) -> None:
    owner = hub.mint("owner", "session")
    async with Held(hub.url, hub.mint("owner", "channel")) as agent:
        response = await prompt(hub, owner, agent.session_id, "hello")
        body = response.json()
        assert body.keys() == {"ok", "chatId", "ts"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", body["ts"])
        got = await agent.heard("prompt")
        assert (got["chatId"], got["text"], got["askerUser"]) == (body["chatId"], "hello", "owner")


async def test_an_archived_session_takes_no_prompts(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent:
        archive(hub, agent.session_id)
        refused(await prompt(hub, hub.mint("owner", "session"), agent.session_id, "hello"), 409, "conflict")


async def test_an_empty_text_needs_an_attachment(hub: HubProcess) -> None:
    owner = hub.mint("owner", "session")
    async with Echo(hub.url, hub.mint("owner", "channel")) as agent:
        path = f"/sessions/{agent.session_id}"
        assert "text" in refused(await prompt(hub, owner, agent.session_id, ""), 400, "validation_failed")
        async with web(hub.url) as client:
            files = {"file": ("a.txt", b"bytes", "text/plain")}
            upload = await client.post(f"/api/v1{path}/files", files=files, headers=bearer(owner))
        file_id = upload.json()["id"]
        assert (await post(hub.url, f"{path}/prompt", owner, {"attachments": [file_id]})).status_code == 200
        assert (await agent.heard("prompt"))["text"] == f"fileId={file_id}"
        said = f"see fileId={file_id}"
        assert (await prompt(hub, owner, agent.session_id, said, attachments=[file_id])).status_code == 200
        assert (await agent.heard("prompt", count=2))["text"] == said


async def test_a_named_agent_is_asked_instead_and_both_transcripts_show_it(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent, Echo(hub.url, hub.mint("alice", "channel")) as mine:
        async with Operator(hub.urls[-1], alice) as operator:
            await operator.subscribe(mine.session_id)
            response = await prompt(hub, alice, mine.session_id, f"@{agent.handle} what now?")
            assert response.json()["routedToAgent"] == agent.handle
            chat_id = response.json()["chatId"]
            asked = await operator.event("prompt", source="operator-route", peerLogin=agent.handle)
            assert (asked["payload"]["text"], asked["payload"]["authorLogin"]) == ("what now?", "alice")
            await operator.event("reply", source="peer-reply", peerLogin=agent.handle, text="echo: what now?")
        note = await mine.heard("route_reply")
        assert (note["routeId"], note["fromName"], note["origin"]) == (chat_id, agent.handle, "operator")
        assert note["text"] == "echo: what now?"
        assert mine.prompts == []


async def test_a_named_session_is_reached_when_no_agent_has_that_name(hub: HubProcess, alice: str) -> None:
    async with (
        Echo(hub.url, hub.mint("owner", "channel")) as theirs,
        Echo(hub.url, hub.mint("alice", "channel")) as mine,
    ):
        named = f"@owner/{theirs.routing_name.removeprefix('@')} hi"
        refused(await prompt(hub, alice, mine.session_id, named), 404, "agent_not_found")
        share(hub, theirs.session_id, alice="viewer")
        assert "prompter" in refused(await prompt(hub, alice, mine.session_id, named), 403, "forbidden")
        share(hub, theirs.session_id, alice="prompter")
        response = await prompt(hub, alice, mine.session_id, named)
        assert response.status_code == 200, response.text
        assert "routedToAgent" not in response.json()
        assert (await theirs.heard("prompt"))["text"] == "hi"


async def test_an_agent_not_open_to_the_caller_is_absent(hub: HubProcess, alice: str) -> None:
    async with Echo(hub.url, hub.mint("alice", "channel")) as mine:
        message = refused(await prompt(hub, alice, mine.session_id, "@owner/unknown hi"), 404, "agent_not_found")
        async with online(hub, Echo, agent={"status": "draft"}) as draft:
            told = refused(
                await prompt(hub, alice, mine.session_id, f"@{draft.handle} hi"), 404, "agent_not_found"
            )
        assert told.replace(draft.handle, "owner/unknown") == message


async def test_only_a_text_that_begins_with_a_name_goes_elsewhere(hub: HubProcess) -> None:
    texts = ["@owner hi", "@owner/x", "see @owner/x hi", "@/x hi"]
    async with Echo(hub.url, hub.mint("owner", "channel")) as agent:
        for number, text in enumerate(texts, 1):
            assert (await prompt(hub, hub.mint("owner", "session"), agent.session_id, text)).status_code == 200
            await agent.heard("prompt", count=number)
        assert [one["text"] for one in agent.prompts] == texts


async def test_the_budget_of_a_named_agent_is_spent(hub: HubProcess, alice: str) -> None:
    async with (
        online(hub, Echo, agent={"dailyBudgetQueries": 1}) as agent,
        Echo(hub.url, hub.mint("alice", "channel")) as mine,
    ):
        named = f"@{agent.handle} hi"
        assert (await prompt(hub, alice, mine.session_id, named)).status_code == 200
        await mine.heard("route_reply")
        refused(await prompt(hub, alice, mine.session_id, named), 429, "budget_exhausted")
        owner = hub.mint("owner", "session")
        assert (await prompt(hub, owner, agent.session_id, "one's own costs nothing")).status_code == 200


async def test_over_the_rate_says_when_to_come_back(start_hub: object, make_storage: object) -> None:
    hub: HubProcess = start_hub(make_storage("embedded"), CALLER_RATE_PER_MINUTE=1)  # type: ignore[operator]
    owner = hub.mint("owner", "session")
    async with Echo(hub.url, hub.mint("owner", "channel")) as agent:
        assert (await prompt(hub, owner, agent.session_id, "one")).status_code == 200
        response = await prompt(hub, owner, agent.session_id, "two")
        refused(response, 429, "rate_limited")
        assert 0 < int(response.headers["retry-after"]) <= 60

"""`POST /sessions/{id}/prompt`: who may, whom it reaches, and what the transcripts show of it."""

import re

from lab.agents import Echo, Held, online
from lab.callers import bearer, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from tests.operators.operator import post, prompt, refused
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

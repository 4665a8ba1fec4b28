"""The tools of MCP, on both kinds of hub and in both generations of the protocol."""

import asyncio

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from lab.agents import Chunker, Echo, Held, TaskPeer, online
from lab.callers import mint_app
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.channel.test_caller_approvals import Careful
from tests.mcp.clients import HANDSHAKE, MODES, mcp_client, task_id_of, text_of


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_is_found_and_asked(hub: HubProcess, alice: str, mode: str) -> None:
    async with online(hub, Echo) as agent, mcp_client(hub.urls[-1], alice, mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "list_agents", "ask_agent", "get_task", "answer_task", "cancel_task", "rate_answer",
        }  # fmt: skip
        slug = agent.handle.partition("/")[2]
        listed = text_of(await client.call_tool("list_agents", {"query": slug, "online_only": True}))
        assert listed.startswith(f"- {agent.handle} (online):")
        answer = await client.call_tool("ask_agent", {"handle": f"@{agent.handle}", "message": "hello"})
        assert not answer.is_error
        assert text_of(answer).startswith("echo: hello\ntask_id: task-")
        again = await client.call_tool("get_task", {"task_id": task_id_of(answer)})
        assert text_of(again) == text_of(answer)
        surfaces = sql(hub, f"SELECT surface FROM agents_turn WHERE agent_id = {agent.agent['id']}")
    assert surfaces == [("mcp",)]


@pytest.mark.parametrize("mode", MODES)
async def test_chunks_are_reported_as_progress(hub: HubProcess, alice: str, mode: str) -> None:
    seen: list[tuple[float, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    pieces = ["one ", "two ", "three"]
    async with online(hub, Chunker, pieces=pieces) as agent, mcp_client(hub.urls[-1], alice, mode) as client:
        asked = {"handle": agent.handle, "message": "count"}
        answer = await client.call_tool("ask_agent", asked, progress_callback=report)
    assert text_of(answer).startswith("one two three\n")
    assert "".join(message or "" for _, message in seen) == "one two three"
    assert [progress for progress, _ in seen] == sorted({progress for progress, _ in seen})


async def test_what_was_made_before_a_question_or_a_failure_is_shown(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, TaskPeer) as agent, mcp_client(embedded_hub.url, token) as client:
        for end in ("ask which?", "fail no paper"):
            steps = f"say half of it | raw notes hello | {end}"
            result = await client.call_tool("ask_agent", {"handle": agent.handle, "message": steps})
            assert "half of it" in text_of(result)
            assert end.partition(" ")[2] in text_of(result)
            [file] = [one for one in result.content if isinstance(one, types.EmbeddedResource)]
            assert isinstance(file.resource, types.BlobResourceContents)
            assert file.resource.blob == "aGVsbG8="


async def test_artifacts_are_images_files_links_and_text(embedded_hub: HubProcess) -> None:
    steps = 'say see: | raw notes hello | url plan https://example.com/plan.pdf | data d {"a": 1}'
    async with (
        online(embedded_hub, TaskPeer) as agent,
        mcp_client(embedded_hub.url, embedded_hub.mint("alice", "app")) as client,
    ):
        answer = await client.call_tool("ask_agent", {"handle": agent.handle, "message": steps})
    kinds = [type(one) for one in answer.content]
    assert kinds == [
        types.TextContent, types.EmbeddedResource, types.ResourceLink, types.TextContent, types.TextContent,
    ]  # fmt: skip
    link = answer.content[2]
    assert isinstance(link, types.ResourceLink)
    assert (link.uri, link.name) == ("https://example.com/plan.pdf", "plan")


async def test_files_reach_the_agent(embedded_hub: HubProcess) -> None:
    files = [{"name": "a.txt", "media_type": "text/plain", "data": "aGVsbG8="}, {"url": "https://example.com/b"}]
    takes = {"defaultInputModes": ["text/plain", "application/octet-stream"]}
    async with (
        online(embedded_hub, Echo, agent=takes) as agent,
        mcp_client(embedded_hub.url, embedded_hub.mint("alice", "session")) as client,
    ):
        await client.call_tool("ask_agent", {"handle": agent.handle, "message": "read", "files": files})
        parts, text = agent.prompts[0]["parts"], agent.prompts[0]["text"]
    assert text.startswith("read\n\nfile (part 2)")
    assert '"a.txt", "text/plain", 5 bytes' in text
    assert '"https://example.com/b"' in text
    assert [part.get("raw") or part.get("url") for part in parts[1:]] == ["aGVsbG8=", "https://example.com/b"]


async def test_an_image_to_an_agent_that_takes_text_is_refused(embedded_hub: HubProcess) -> None:
    image = {"media_type": "image/png", "data": "aGk="}
    async with (
        online(embedded_hub, TaskPeer) as agent,
        mcp_client(embedded_hub.url, embedded_hub.mint("alice", "session")) as client,
    ):
        asked = await client.call_tool("ask_agent", {"handle": agent.handle, "message": "ask which one?"})
        for tool, named in (
            ("ask_agent", {"handle": agent.handle}),
            ("answer_task", {"task_id": task_id_of(asked)}),
        ):
            refused = await client.call_tool(tool, named | {"message": "see", "files": [image]})
            assert refused.is_error
            assert text_of(refused).startswith(
                "Error: files[0] is not supported: the agent takes text/plain, application/json.\nSend it as text,"
            )
        assert len(agent.prompts) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_elicits_asks_its_user(embedded_hub: HubProcess, mode: str) -> None:
    questions: list[str] = []
    declined, accepted = types.ElicitResult(action="decline"), {"answer": "the second"}
    results = iter([declined, types.ElicitResult(action="accept", content=accepted)])

    async def elicit(_: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        questions.append(params.message)
        return next(results)

    token = embedded_hub.mint("alice", "session")
    async with (
        online(embedded_hub, TaskPeer) as agent,
        mcp_client(embedded_hub.url, token, mode, elicitation_callback=elicit) as client,
    ):
        asked = {"handle": agent.handle, "message": "ask which one?"}
        assert "still waits" in text_of(await client.call_tool("ask_agent", asked))  # the user declined
        answer = await client.call_tool("ask_agent", asked | {"context_id": "anew"})
    assert questions == [f"@{agent.handle} asks back: which one?"] * 2
    assert text_of(answer).startswith("you said: the second\n")


async def test_what_an_agent_asks_back_is_answered_by_its_task(embedded_hub: HubProcess) -> None:
    """By a client that shows its user no questions."""
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, TaskPeer) as agent, mcp_client(embedded_hub.url, token) as client:
        asked = await client.call_tool("ask_agent", {"handle": agent.handle, "message": "ask which one?"})
        assert not asked.is_error
        assert "which one?" in text_of(asked)
        assert "answer_task" in text_of(asked)
        answer = await client.call_tool("answer_task", {"task_id": task_id_of(asked), "message": "the first"})
    assert text_of(answer).startswith("you said: the first\n")


async def test_a_caller_approves_what_an_agent_may_do(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with (
        online(embedded_hub, Careful, agent={"callerApprovals": True}) as agent,
        mcp_client(embedded_hub.url, token) as client,
    ):
        asked = await client.call_tool("ask_agent", {"handle": agent.handle, "message": "clean up"})
        assert "rm -r build" in text_of(asked)
        answer = await client.call_tool("answer_task", {"task_id": task_id_of(asked), "message": "approve"})
    assert text_of(answer).startswith("let me see. allow\n")


async def test_a_conversation_goes_on_by_its_context(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent, mcp_client(embedded_hub.url, token) as client:
        await client.call_tool("ask_agent", {"handle": agent.handle, "message": "one", "context_id": "talk-1"})
        await client.call_tool("ask_agent", {"handle": agent.handle, "message": "two", "context_id": "talk-1"})
        await client.call_tool("ask_agent", {"handle": agent.handle, "message": "one"})
        first, second, new = [prompt["contextId"] for prompt in agent.prompts]
    assert first == second != new


async def test_a_task_is_canceled(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent, mcp_client(hub.urls[-1], alice) as client:
        asked = await client.call_tool("ask_agent", {"handle": agent.handle, "message": "ask which one?"})
        canceled = await client.call_tool("cancel_task", {"task_id": task_id_of(asked)})
        assert text_of(canceled) == f"The task {task_id_of(asked)} is canceled."
        late = await client.call_tool("answer_task", {"task_id": task_id_of(asked), "message": "the first"})
        assert late.is_error
        assert "it is canceled" in text_of(late)


async def test_a_running_question_is_canceled_by_another_request(hub: HubProcess, alice: str) -> None:
    async with (
        online(hub, TaskPeer) as agent,
        mcp_client(hub.urls[0], alice) as asking,
        mcp_client(hub.urls[-1], alice) as canceling,
    ):
        asked = {"handle": agent.handle, "message": "note begun | wait", "wait_s": 60}
        call = asyncio.create_task(asking.call_tool("ask_agent", asked))
        await agent.heard("prompt")
        task_id = agent.prompts[0]["taskId"]

        async def canceled() -> bool:
            return not (await canceling.call_tool("cancel_task", {"task_id": task_id})).is_error

        await eventually(canceled, "the task is known in the other process, and canceled")
        answer = await call
    assert answer.is_error
    assert text_of(answer).startswith("Canceled: canceled by its caller.")


async def test_a_question_that_takes_too_long_is_read_later(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent, mcp_client(hub.urls[-1], alice) as client:
        asked = {"handle": agent.handle, "message": "say begun | hold | say , done", "wait_s": 1}
        early = await client.call_tool("ask_agent", asked)
        assert not early.is_error
        assert "get_task" in text_of(early)
        agent.release.set()

        async def answered() -> bool:
            shown = await client.call_tool("get_task", {"task_id": task_id_of(early)})
            return text_of(shown).startswith("begun, done\n")

        await eventually(answered, "the whole answer can be read")


async def test_the_same_question_meanwhile_joins_the_first(hub: HubProcess, alice: str) -> None:
    async with (
        online(hub, Held) as agent,
        mcp_client(hub.urls[0], alice) as one,
        mcp_client(hub.urls[-1], alice) as other,
    ):
        asked = {"handle": agent.handle, "message": "once"}
        first = asyncio.create_task(one.call_tool("ask_agent", asked))
        await agent.heard("prompt")
        second = await other.call_tool("ask_agent", asked | {"wait_s": 1})
        agent.release.set()
        assert task_id_of(second) == task_id_of(await first)
        assert len(agent.prompts) == 1


async def test_a_refusal_says_what_to_do(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with mcp_client(embedded_hub.url, token) as client:
        async with online(embedded_hub, Echo, agent={"dailyBudgetQueries": 1}) as agent:
            asked = {"handle": agent.handle, "message": "hello"}
            assert not (await client.call_tool("ask_agent", asked)).is_error
            spent = await client.call_tool("ask_agent", asked | {"message": "and again"})
        assert spent.is_error
        assert text_of(spent) == (
            f"Not answered: agent @{agent.handle} hit its daily budget (1). The day's questions are used up."
            " They come back at midnight UTC."
        )
        unknown = await client.call_tool("ask_agent", {"handle": "owner/nothing", "message": "hello"})
        assert unknown.is_error
        assert "list_agents" in text_of(unknown)


async def test_agents_are_tools_of_their_own_where_the_address_says_so(hub: HubProcess, alice: str) -> None:
    async with (
        online(hub, Echo) as agent,
        online(hub, Echo, agent={"access": "private"}) as private,
        mcp_client(hub.urls[-1], alice, query="?agents=tools") as client,
    ):
        page = await client.list_tools()
        tools = {tool.name: tool for tool in page.tools}
        while page.next_cursor:
            page = await client.list_tools(cursor=page.next_cursor)
            tools |= {tool.name: tool for tool in page.tools}
        name = "ask_" + agent.handle.replace("/", "_")
        assert tools[name].input_schema["required"] == ["message"]
        assert "ask_" + private.handle.replace("/", "_") not in tools
        assert text_of(await client.call_tool(name, {"message": "hello"})).startswith("echo: hello\n")
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("ask_" + private.handle.replace("/", "_"), {"message": "hello"})


async def test_a_limited_token_lists_and_asks_its_one_agent(embedded_hub: HubProcess) -> None:
    session = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent, online(embedded_hub, Echo) as other:
        limits = {"scopes": [f"ask:{agent.handle}"], "format": "jwt", "expires_in": 600}
        token = await mint_app(embedded_hub.url, session, "one agent", **limits)
        async with mcp_client(embedded_hub.url, token, HANDSHAKE) as client:
            assert text_of(await client.call_tool("list_agents", {})).startswith(f"- {agent.handle} (online)")
            asked = {"handle": agent.handle, "message": "hello"}
            assert not (await client.call_tool("ask_agent", asked)).is_error
            refused = await client.call_tool("ask_agent", asked | {"handle": other.handle})
            assert refused.is_error
            assert "scope `ask`" in text_of(refused)

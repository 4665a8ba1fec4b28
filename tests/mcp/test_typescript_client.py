"""The official TypeScript client of MCP, unmodified, as a program of its own."""

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from tests.mcp.clients import run_typescript


async def test_the_typescript_client_lists_asks_elicits_and_cancels(embedded_hub: HubProcess) -> None:
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    async with online(hub, TaskPeer) as agent:
        run = await run_typescript("client.mjs", f"{hub.urls[-1]}/mcp", alice, agent.handle)
        asked = [prompt["text"] for prompt in agent.prompts]
        canceled_chats = [(await agent.heard("cancel", count=count))["chatId"] for count in (1, 2)]
    assert asked == ["say one | say , two", "ask which one?", "the second", "note begun | wait", "wait"]
    assert canceled_chats == [prompt["chatId"] for prompt in agent.prompts[-2:]]
    assert run.one("server").value["name"] == "clawbridge"
    assert run.one("server").value["capabilities"] == {
        "completions": {},
        "prompts": {"listChanged": False},
        "resources": {"subscribe": False, "listChanged": False},
        "tools": {"listChanged": False},
    }
    assert run.one("tools").value[:2] == ["list_agents", "ask_agent"]
    assert "".join(said.value for said in run.at("progress")) == "one, two"
    answer = run.one("answer").value
    assert answer["content"][0]["text"] == "one, two"
    assert run.one("elicited").value == f"@{agent.handle} asks back: which one?"
    assert run.one("asked back").value["content"][0]["text"] == "you said: the second"
    assert "no longer wanted" in run.one("gave up").value
    canceled = run.one("canceled").value["content"][0]["text"]
    assert canceled.startswith("The task task-")
    assert canceled.endswith(" is canceled.")
    assert run.one("refused").value["isError"]

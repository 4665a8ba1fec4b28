"""Programs that ask agents as tools of `/mcp`: the inspector, mcp-remote and fastmcp."""

import json
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.clients.running import PROGRAMS, environment, run


@pytest.mark.deep
async def test_the_inspector_lists_and_calls_the_tools(embedded_hub: HubProcess, tmp_path: Path) -> None:
    inspector = await environment("js-mcp-clients") / "node_modules" / ".bin" / "mcp-inspector"
    async with online(embedded_hub, Echo) as agent:
        token = embedded_hub.mint("ann", "app")
        command = (inspector, "--cli", f"{embedded_hub.url}/mcp", "--transport", "http")
        headers = ("--header", f"Authorization: Bearer {token}")
        listed = await run(*command, "--method", "tools/list", *headers, cwd=tmp_path)
        assert listed.code == 0, listed.errors
        assert "ask_agent" in {tool["name"] for tool in json.loads(listed.output)["tools"]}
        call = ("--method", "tools/call", "--tool-name", "ask_agent")
        arguments = ("--tool-arg", f"handle={agent.handle}", "message=hello")
        asked = await run(*command, *call, *arguments, *headers, cwd=tmp_path)
        assert json.loads(asked.output)["content"][0]["text"] == "echo: hello", asked.errors


@pytest.mark.deep
async def test_mcp_remote_joins_a_client_of_standard_input(embedded_hub: HubProcess, tmp_path: Path) -> None:
    folder = await environment("js-mcp-clients")
    async with online(embedded_hub, Echo) as agent:
        token = embedded_hub.mint("ann", "app")
        program = str(folder / "node_modules" / ".bin" / "mcp-remote")
        arguments = [f"{embedded_hub.url}/mcp", "--allow-http", "--header", f"Authorization: Bearer {token}"]
        server = StdioServerParameters(command=program, args=arguments, env={"HOME": str(tmp_path)}, cwd=tmp_path)
        async with Client(stdio_client(server)) as client:
            answer = await client.call_tool("ask_agent", {"handle": agent.handle, "message": "hello"})
            assert answer.content[0].text == "echo: hello"


@pytest.mark.deep
async def test_fastmcp_asks(embedded_hub: HubProcess, tmp_path: Path) -> None:
    python = await environment("python-mcp") / "bin" / "python"
    async with online(embedded_hub, Echo) as agent:
        where = (f"{embedded_hub.url}/mcp", embedded_hub.mint("ann", "app"), agent.handle)
        ended = await run(python, PROGRAMS / "fastmcp_client.py", *where, cwd=tmp_path)
        assert ended.code == 0, ended.errors
        seen = json.loads(ended.output)
        assert "get_task" in seen["tools"]
        assert seen["answer"] == "echo: hello"


@pytest.mark.deep
async def test_opencode_lists_the_hub_and_has_an_agent_as_its_model(
    embedded_hub: HubProcess, tmp_path: Path
) -> None:
    folder = await environment("js-mcp-clients")
    opencode = folder / "node_modules" / "opencode-linux-x64" / "bin" / "opencode"
    async with online(embedded_hub, Echo) as agent:
        token, model = embedded_hub.mint("ann", "app"), f"agent/{agent.handle}"
        options = {"baseURL": f"{embedded_hub.url}/v1", "apiKey": token}
        models = {model: {"name": "an agent", "tool_call": False}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "hub", "options": options, "models": models}
        headers = {"Authorization": f"Bearer {token}"}
        server = {"type": "remote", "url": f"{embedded_hub.url}/mcp", "oauth": False, "headers": headers}
        config = {
            "autoupdate": False,
            "model": f"hub/{model}",
            "small_model": f"hub/{model}",
            "provider": {"hub": provider},
            "mcp": {"hub": server},
        }
        (tmp_path / "opencode.json").write_text(json.dumps(config))
        listed = await run(opencode, "mcp", "list", cwd=tmp_path)
        assert "connected" in listed.output + listed.errors, listed
        asked = await run(opencode, "run", "--format", "json", "hello there", cwd=tmp_path)
        events = [json.loads(line) for line in asked.output.splitlines()]
        [text] = [one["part"]["text"] for one in events if one["type"] == "text"]
        assert text.rstrip('"').endswith("hello there"), asked.errors

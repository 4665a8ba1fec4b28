"""Claude Code, Codex and Gemini CLI ask an agent of the hub by its tool; a scripted model tells them to."""

import json
import os
from pathlib import Path

import pytest

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.clients.running import environment, run
from tests.connect.model_server import Say, UseTool, serving_model
from tests.connect.test_coding_agents import program_environment

pytestmark = pytest.mark.deep

CLAUDE_TOOL = "mcp__clawbridge__ask_agent"
COMMANDS = {
    "claude": ("-p", "--allowedTools", CLAUDE_TOOL, "--strict-mcp-config", "--mcp-config", "mcp.json", "--"),
    "codex": ("exec", "--skip-git-repo-check"),
    "gemini": ("-p",),
}


def ask(name: str, handle: str) -> UseTool:
    """The steps that the model of each program asks for."""
    arguments = {"handle": handle, "message": "which day?"}
    if name == "codex":
        return UseTool("ask_agent", arguments, namespace="mcp__clawbridge")
    return UseTool(CLAUDE_TOOL if name == "claude" else "mcp_clawbridge_ask_agent", arguments)


def connect(name: str, home: Path, hub: str, token: str) -> None:
    url, headers = f"{hub}/mcp", {"Authorization": f"Bearer {token}"}
    if name == "claude":
        servers = {"clawbridge": {"type": "http", "url": url, "headers": headers}}
        (home / "work" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    elif name == "codex":
        server = f'[mcp_servers.clawbridge]\nurl = "{url}"\nbearer_token_env_var = "CLAWBRIDGE_TOKEN"\n'
        server += 'required = true\ndefault_tools_approval_mode = "approve"\n'
        file = home / ".codex" / "config.toml"
        file.write_text(file.read_text() + server)
    else:
        file = home / ".gemini" / "settings.json"
        servers = {"clawbridge": {"httpUrl": url, "headers": headers, "trust": True}}
        file.write_text(json.dumps(json.loads(file.read_text()) | {"mcpServers": servers}))


@pytest.mark.parametrize("name", COMMANDS)
async def test_it_asks_an_agent_and_its_model_gets_the_answer(
    embedded_hub: HubProcess, tmp_path: Path, name: str
) -> None:
    programs = await environment("js-coding-agents") / "node_modules" / ".bin"
    work = tmp_path / "work"
    work.mkdir()
    async with online(embedded_hub, Echo) as agent:
        with serving_model(ask(name, agent.handle), Say("It says so.")) as model:
            env = program_environment(tmp_path, work, model.url)
            token = embedded_hub.mint("ann", "app")
            connect(name, tmp_path, embedded_hub.url, token)
            env |= {"CLAWBRIDGE_TOKEN": token, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
            ended = await run(programs / name, *COMMANDS[name], "Ask which day it is.", cwd=work, **env)
        assert "It says so." in ended.output, ended
        assert "echo: which day?" in json.dumps(model.requests[1])
        assert [prompt["text"] for prompt in agent.prompts] == ["which day?"]

"""The texts that an owner copies to connect an agent."""

import json

from accounts import settings


def mcp_json(token: str) -> str:
    """The `.mcp.json` of a project whose coding session becomes an agent of this hub."""
    hub = settings.PUBLIC_URL.replace("http", "ws", 1)
    env = {"CLAWBORRATOR_HUB_URL": hub, "CLAWBORRATOR_TOKEN": token}
    server = {"command": "npx", "args": ["-y", "clawborrator-mcp"], "env": env}
    return json.dumps({"mcpServers": {"clawborrator": server}}, indent=2, ensure_ascii=False)


def environment(token: str) -> str:
    """The token where `connect.pyz` reads it, as a shell takes it: others can read a command line."""
    return f"export CLAWBRIDGE_TOKEN={token}"


def fetch_command() -> str:
    """How the hub's connector comes into the current directory."""
    return f"curl -fO {settings.PUBLIC_URL}/connect.pyz"


def command(name: str) -> str:
    """A first agent under a routing name, by the hub's connector: it answers each question with the question."""
    return f"{fetch_command()} && python3 connect.pyz --hub {settings.PUBLIC_URL} --name {name} --echo"


def preset_command(name: str, preset: str, *, is_read_only: bool) -> str:
    """A coding agent under a routing name, in the directory where the command is run."""
    access = "" if is_read_only else " --access write"
    hub = settings.PUBLIC_URL
    return f"python3 connect.pyz --preset {preset} --directory .{access} --hub {hub} --name {name}"

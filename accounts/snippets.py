"""What an owner copies to connect an agent of theirs."""

import json

from accounts.settings import get_settings


def mcp_json(token: str) -> str:
    """The `.mcp.json` of a project whose coding session becomes an agent of this hub."""
    hub = get_settings().public_url.replace("http", "ws", 1)
    env = {"CLAWBORRATOR_HUB_URL": hub, "CLAWBORRATOR_TOKEN": token}
    server = {"command": "npx", "args": ["-y", "clawborrator-mcp"], "env": env}
    return json.dumps({"mcpServers": {"clawborrator": server}}, indent=2, ensure_ascii=False)


def environment(token: str) -> str:
    """The token where `connect.pyz` reads it, as a shell takes it: others can read a command line."""
    return f"export CLAWBRIDGE_TOKEN={token}"


def command(name: str) -> str:
    """A first agent under a routing name, by the hub's connector: it answers each question with the question."""
    hub = get_settings().public_url
    return f"curl -fO {hub}/connect.pyz && python3 connect.pyz --hub {hub} --name {name} --echo"


def preset_command(name: str, preset: str, *, is_read_only: bool) -> str:
    """A coding agent under a routing name, in the directory where the command is run."""
    hub = get_settings().public_url
    access = "" if is_read_only else " --access write"
    connector = f"curl -fO {hub}/connect.pyz && python3 connect.pyz --hub {hub} --name {name}"
    return f"{connector} --preset {preset} --directory .{access}"

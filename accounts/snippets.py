"""What an owner copies to connect an agent of theirs."""

import json

from django.conf import settings


def mcp_json(token: str) -> str:
    """The `.mcp.json` of a project whose coding session becomes an agent of this hub."""
    env = {"CLAWBORRATOR_HUB_URL": settings.PUBLIC_URL.replace("http", "ws", 1), "CLAWBORRATOR_TOKEN": token}
    server = {"command": "npx", "args": ["-y", "clawborrator-mcp"], "env": env}
    return json.dumps({"mcpServers": {"clawborrator": server}}, indent=2, ensure_ascii=False)


def environment(token: str) -> str:
    """The token where `connect.pyz` reads it, as a shell takes it: others can read a command line."""
    return f"export CLAWBRIDGE_TOKEN={token}"


def command(name: str) -> str:
    """A first agent under a routing name, by the hub's connector: it answers each question with the question."""
    hub = settings.PUBLIC_URL
    return f"curl -fO {hub}/connect.pyz && python3 connect.pyz --hub {hub} --name {name} --echo"

"""What an owner copies to connect an agent of theirs."""

import json

from django.conf import settings


def mcp_json(token: str) -> str:
    """The `.mcp.json` of a project whose coding session becomes an agent of this hub."""
    env = {"CLAWBORRATOR_HUB_URL": settings.PUBLIC_URL.replace("http", "ws", 1), "CLAWBORRATOR_TOKEN": token}
    server = {"command": "npx", "args": ["-y", "clawborrator-mcp"], "env": env}
    return json.dumps({"mcpServers": {"clawborrator": server}}, indent=2, ensure_ascii=False)


def environment(token: str) -> str:
    """The variables that `python -m connect` reads, as a shell takes them."""
    return f"export CLAWBRIDGE_HUB={settings.PUBLIC_URL}\nexport CLAWBRIDGE_TOKEN={token}"


def command(name: str) -> str:
    """A first agent under a routing name: it answers each question with the question."""
    return f"python -m connect --name {name} --session-file ~/.{name}-session --echo"

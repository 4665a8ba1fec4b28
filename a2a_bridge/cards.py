"""The AgentCard of a published agent (section 2 of the bridge page)."""

from typing import Any

from agents.models import Agent

ISOLATED_NOTE = (
    "this agent answers from its own context only; cross-session routing tools (route_to_peer / probe_peers /"
    " list_peers) are disabled while it's working on your request"
)
COMPOSABLE_NOTE = "this agent may ask other sessions while answering you, with your access, never its owner's"
ASK_DESCRIPTION = "Send a natural-language question; receive a textual answer."
BEARER = {
    "type": "http",
    "scheme": "Bearer",
    "bearerFormat": "cw_sess_<32hex>",
    "description": "clawborrator session token from /api/v1/auth/oauth/token",
}


def card(agent: Agent, *, public_url: str, queries_today: int, online: bool) -> dict[str, Any]:
    """The card as JSON; every address in it is built from PUBLIC_URL alone."""
    return {
        "name": agent.name,
        "description": agent.description or agent.tagline,
        "version": "1",
        "url": f"{public_url}/api/a2a/v1/agents/{agent.handle}",
        "provider": {"organization": "clawborrator hub_v1", "url": public_url},
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "ask", "name": "ask", "description": ASK_DESCRIPTION, "tags": ["chat"]}],
        "securitySchemes": {"bearerSession": BEARER},
        "security": [{"bearerSession": []}],
        "_clawborrator": {
            "handle": agent.handle,
            "ownerLogin": agent.handle.partition("/")[0],
            "queriesToday": queries_today,
            "dailyBudget": agent.daily_budget,
            "online": online,
            "isolated": agent.isolated,
            "isolationNote": ISOLATED_NOTE if agent.isolated else COMPOSABLE_NOTE,
        },
    }

"""Addresses of the admin, what is typed into its form of an agent, and how its actions are sent."""

from typing import Any

from django.test import Client

AGENTS = "/admin/agents/agent/"
TURNS = "/admin/agents/turn/"
CREDENTIALS = "/admin/accounts/credential/"
SETTINGS = {
    **{"name": "Helper", "tagline": "", "description": "", "status": "draft", "isolated": "on"},
    **{"access": "public", "allowed_logins": ""},
    **{"daily_budget": "1000", "concurrency_cap": "5", "suggested_prompts": "", "claude_md": ""},
    **{"caller_budget": "", "caller_budgets": "", "wait_s": "", "agent_style": "hybrid"},
    **{"queue_max": "0", "queue_wait_s": "60"},
    "personalization_prompt": "",
}


def act(client: Client, path: str, action: str, *rows: Any, **more: str) -> Any:
    chosen = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    return client.post(path, chosen, follow=True)

"""Addresses of the admin, what is typed into its form of an agent, and how its actions are sent."""

from typing import Any

from django.test import Client

from tests.native.desk import FIELDS

AGENTS = "/admin/agents/agent/"
TURNS = "/admin/agents/turn/"
CREDENTIALS = "/admin/accounts/credential/"
SETTINGS = FIELDS | {"status": "draft", "tagline": "", "description": "", "suggested_prompts": ""}


def act(client: Client, path: str, action: str, *rows: Any, **more: str) -> Any:
    chosen = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    return client.post(path, chosen, follow=True)

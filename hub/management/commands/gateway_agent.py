"""`manage.py gateway_agent`: the agents of a team, one of them, its settings, and a restart of its connection."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from accounts.models import User
from gateway.models import TeamAgent
from gateway.service.registry import load_own_agents
from gateway.service.team_rules import end_connection
from gateway.wire.frames import Json
from hub.management.command import HubCommand, add_login, owner_of


class Command(HubCommand):
    help = (
        "Show the agents of a user's team (list), one of them (status NAME), or its settings (config NAME get), or"
        " close its connection so that its program connects again (restart NAME). Works while the hub runs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="list|status|config|restart")
        for name in ("list", "status", "config", "restart"):
            action = actions.add_parser(name)
            if name != "list":
                action.add_argument("name", help="of the agent")
            if name == "config":
                action.add_argument("verb", choices=["get"], help="settings are changed over REST")
            add_login(action)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what was asked for."""
        owner = owner_of(options)
        agents = {one["name"]: one for one in load_own_agents(owner.pk)}
        if options["action"] == "list":
            for one in agents.values():
                self.stdout.write(_line(one))
            return
        name = options["name"]
        if name not in agents:
            raise CommandError(f"3001 AGENT_NOT_FOUND: {owner.login} has no agent {name}")
        match options["action"]:
            case "status":
                self.stdout.write(_line(agents[name]))
            case "config":
                self.stdout.write(json.dumps(_settings_of(owner, agents[name]), indent=2))
            case _:
                if not end_connection(owner.pk, name):
                    raise CommandError(f"3002 AGENT_OFFLINE: {name} is not connected to the gateway")
                self.stdout.write(f"{name}: its connection ends within seconds")


def _line(agent: Mapping[str, Any]) -> str:
    enrolled = "active" if agent["active"] else "inactive"
    return f"{agent['name']:<24} {agent['status']:<8} {agent['role']:<16} {enrolled:<8} {agent['workspace']}"


def _settings_of(owner: User, agent: Json) -> Json:
    row = TeamAgent.objects.filter(owner=owner, name=agent["name"]).first()
    given = row.config if row is not None else {}
    return {"name": agent["name"], "role": agent["role"], "active": agent["active"], "config": given}

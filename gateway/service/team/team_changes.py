"""The changes of an owner to a team: agents, rules, the connection of an agent, and agents that a file names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from django.db import transaction

from accounts import quotas
from accounts.quotas import QuotaExceeded
from agents.core import presence
from agents.models import Connection
from gateway import limits
from gateway.models import TeamAgent, TeamPolicy
from gateway.models.team import MOST_PEERS_NAMED, MOST_VOTERS
from gateway.service.seats.seat import DEFAULT_ROLE, GATEWAY_LINK, MAX_CONFIG_BYTES, make_seat, read_role
from gateway.wire.frame_types import is_agent_name, is_target
from kit.names import NameRule

WANTED_NAME = "want lower-case letters, digits and hyphens"
PEERS = NameRule(is_target, WANTED_NAME, most=MOST_PEERS_NAMED, most_chars=160)
VOTERS = NameRule(is_agent_name, WANTED_NAME, most=MOST_VOTERS, most_chars=160)
DEFAULT_TEAM = Path(__file__).with_name("data") / "default_team.json"
MAX_FILE_BYTES = 1_048_576
MOST_LOADED = 500


def change_agent(agent: TeamAgent, fields: dict[str, Any]) -> bool:
    """Change a row; an agent that becomes inactive loses its connection within seconds. False: the row is gone."""
    if fields and not TeamAgent.objects.filter(pk=agent.pk).update(**fields):
        return False
    for name, value in fields.items():
        setattr(agent, name, value)
    if not agent.is_active:
        end_connection(agent.owner_id, agent.name)
    return True


def end_connection(owner_id: int, name: str) -> bool:
    """End the connection of an agent; False when it has none.

    Its row is removed. The process that holds the socket closes it within seconds, with `disconnect` and `error`,
    and the program comes back.
    """
    theirs = Connection.objects.filter(session__owner_id=owner_id, session__routing_name=name)
    found = theirs.filter(session__link=GATEWAY_LINK).values_list("pk", flat=True).first()
    if found is not None:
        presence.remove_connection(found)
    return found is not None


def get_policy(owner_id: int) -> TeamPolicy:
    """The rules of a team; the defaults, not stored, where its owner has set none."""
    return TeamPolicy.objects.filter(owner_id=owner_id).first() or TeamPolicy(owner_id=owner_id)


class BadPolicy(Exception):
    """The rules contradict each other; the text is public. Nothing was written."""


@transaction.atomic
def change_policy(owner_id: int, fields: dict[str, Any]) -> TeamPolicy:
    """Change rules of a team.

    Raises:
        BadPolicy: no agent is named that breaks ties, or it votes itself.
    """
    quotas.lock_owner(owner_id)
    policy = get_policy(owner_id)
    for name, value in fields.items():
        setattr(policy, name, value)
    if policy.breaks_ties and not policy.steward:
        raise BadPolicy("name the agent that breaks ties")
    if policy.breaks_ties and policy.steward in policy.members:
        raise BadPolicy("the agent that breaks ties cannot be a voter")
    policy.save()
    return policy


class BadTeamFile(Exception):
    """The file names no sound team; the text is public. Nothing was written."""


class FileAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent of a file."""

    name: str
    role: str = DEFAULT_ROLE
    config: dict[str, Any] = {}


class TeamFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file."""

    agents: list[FileAgent]


def read_team(path: Path) -> list[FileAgent]:
    """The agents of a file, each once, with their roles as the wire writes them.

    Raises:
        BadTeamFile, OSError.
    """
    with path.open("rb") as file:
        text = file.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise BadTeamFile(f"a team file has at most {MAX_FILE_BYTES} bytes")
    try:
        given = msgspec.json.decode(text, type=TeamFile).agents
    except (msgspec.DecodeError, RecursionError) as bad:
        raise BadTeamFile(f"this is no team file: {bad}") from None
    if len(given) > MOST_LOADED:
        raise BadTeamFile(f"a team file names at most {MOST_LOADED} agents")
    agents = [_check(one) for one in given]
    if len({one.name for one in agents}) < len(agents):
        raise BadTeamFile("a team file names each agent once")
    return agents


@transaction.atomic
def load_team(owner_id: int, agents: Sequence[FileAgent]) -> int:
    """Enroll agents with the roles and settings of a file; how many are new. Again changes nothing.

    Raises:
        BadTeamFile: the owner has no room for them; nothing was written.
    """
    count = 0
    try:
        for one in agents:
            make_seat(owner_id, one.name)
            row = TeamAgent.objects.filter(owner_id=owner_id, name=one.name).first()
            if row is None:
                limits.TEAM_AGENTS.check(owner_id)
                TeamAgent.objects.create(owner_id=owner_id, name=one.name, role=one.role, config=one.config)
                count += 1
            elif (row.role, row.config) != (one.role, one.config or row.config):
                row.role, row.config = one.role, one.config or row.config
                row.save(update_fields=["role", "config"])
    except QuotaExceeded as full:
        raise BadTeamFile(str(full)) from None
    return count


def _check(agent: FileAgent) -> FileAgent:
    role = read_role(agent.role)
    if not is_agent_name(agent.name):
        raise BadTeamFile(f"{agent.name[:64]!r} is no name: want lower-case letters, digits and hyphens")
    if role is None:
        raise BadTeamFile(f"{agent.name}: {agent.role[:64]!r} is no role: want 32 letters, digits and hyphens")
    if len(msgspec.json.encode(agent.config)) > MAX_CONFIG_BYTES:
        raise BadTeamFile(f"{agent.name}: config has at most {MAX_CONFIG_BYTES} bytes")
    return FileAgent(agent.name, role, agent.config)

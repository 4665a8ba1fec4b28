"""The rows of a team's agents: who is enrolled, in which role, and the status that each said it has."""

import re
from typing import Any

from agents.core.presence import MayNotConnect
from gateway import limits
from gateway.models import TeamAgent
from kit.clock import db_now

MAX_CONFIG_BYTES = 16_384
ROLE = re.compile(r"[a-z][a-z0-9-]{0,31}")
DEFAULT_ROLE = "agent"
ONLINE = TeamAgent.Status.ONLINE.value
SAID = frozenset(TeamAgent.Status.values)


def read_role(text: str) -> str | None:
    """A role as the wire writes it; `triad_member` is `triad-member`. None: the text is no role."""
    role = text.replace("_", "-")
    return role if ROLE.fullmatch(role) else None


def enroll(owner_id: int, name: str) -> None:
    """Note that an agent takes its seat: it has a row, and is `online` until it says otherwise.

    Call it in the transaction that registers the connection.

    Raises:
        MayNotConnect: the owner has made it inactive.
        accounts.quotas.QuotaExceeded: the team has as many agents as one may have.
    """
    row = TeamAgent.objects.filter(owner_id=owner_id, name=name).first()
    if row is None:
        limits.TEAM_AGENTS.check(owner_id)
        TeamAgent.objects.create(owner_id=owner_id, name=name, status_at=db_now())
        return
    if not row.is_active:
        raise MayNotConnect("not_active", "the owner of this agent has made it inactive")
    row.status, row.status_at = ONLINE, db_now()
    row.save(update_fields=["status", "status_at"])


def set_status(owner_id: int, name: str, status: str) -> str:
    """Store what an agent says of itself; what it said before."""
    agent: dict[str, Any] = {"owner_id": owner_id, "name": name}
    previous = TeamAgent.objects.filter(**agent).values_list("status", flat=True).first()
    # Its owner may have deleted the row while the agent is connected.
    TeamAgent.objects.update_or_create(**agent, defaults={"status": status, "status_at": db_now()})
    return previous or ONLINE

"""How sessions are right now."""

from collections.abc import Collection
from typing import Literal

from agents.models import Turn
from agents.models.reachable import online_sessions
from kit.clock import db_now

State = Literal["online", "busy", "offline"]


def states_of(session_ids: Collection[int]) -> dict[int, State]:
    """The state of each of these sessions, in two queries; busy: a turn holds it."""
    online = online_sessions(session_ids)
    held = Turn.objects.holding().filter(session_id__in=online, claim_until__gt=db_now())
    busy = set(held.values_list("session_id", flat=True)) if online else set()
    return {one: "offline" if one not in online else "busy" if one in busy else "online" for one in session_ids}

"""The rule that says who may read one ask, and as whom: `find_viewed_ask` is the only way to one.

The caller reads what the caller sent and got. The owner of the agent, and maintainers and auditors of the group
that owns the agent, read what the agent did. An ask that an agent made is the ask of this agent's owner.
"""

from dataclasses import dataclass

from a2a_bridge.models import RecordedExchange
from a2a_bridge.wire.recorded_text import hide_push_configs
from accounts.models import Membership
from agents.models import Agent, QueuedAsk, Turn

RELATED = ("agent__owner", "session__owner", "source_session", "caller", "problem")
# Bodies of these protocols are what the agent was asked. Bodies of others, such as chat completions, have a whole
# conversation with instructions and tools, of which the agent got a part.
SENT_TO_AGENTS = ("MCP", "AGNT")
SENT_TO_AGENTS_OVER = (" over JSON-RPC", " over HTTP+JSON")
MAX_ID_CHARS = 64
READING_ROLES = (Membership.Role.MAINTAINER, Membership.Role.AUDITOR)


@dataclass(frozen=True, slots=True)
class ViewedAsk:
    """An ask, and the user who looks at it.

    `is_caller`: the ask is the user's. `is_owner`: the user may read what the agent did. `is_askable`: the user
    may ask the agent now. `is_queued`: the ask waits for a free agent, and has no row but that of its place;
    `turn` is not stored then.
    """

    turn: Turn
    user_id: int
    is_caller: bool
    is_owner: bool
    is_askable: bool
    is_queued: bool = False

    @property
    def may_read_response(self) -> bool:
        """True if the response may be shown: a caller who may not ask the agent any more reads none."""
        return self.is_owner or (self.is_caller and (self.is_askable or self.turn.agent_id is None))

    def may_read_request(self, exchange: RecordedExchange) -> bool:
        """True if the body of the request may be shown: all of it was sent to the agent, or the user sent it."""
        protocol = exchange.protocol
        return self.is_caller or protocol in SENT_TO_AGENTS or protocol.endswith(SENT_TO_AGENTS_OVER)


def owner_id_of(turn: Turn) -> int:
    """The account that owns the agent, or the session, that was asked."""
    return turn.agent.owner_id if turn.agent else turn.session.owner_id


def caller_id_of(turn: Turn) -> int | None:
    """The account whose ask it is: the caller's, or that of the owner of the agent that made the ask."""
    if turn.depth:
        return turn.source_session.owner_id if turn.source_session else None
    return turn.caller_id


def find_viewed_ask(ask_id: str, user_id: int) -> ViewedAsk | None:
    """An ask that the user may read, by its chat id, or by the id of a task of the user's: its last ask.

    None for an ask that is absent, and for one that the user may not read.
    """
    if not 0 < len(ask_id) <= MAX_ID_CHARS or not ask_id.isprintable():
        return None
    turns = Turn.objects.select_related(*RELATED)
    turn = turns.filter(chat_id=ask_id).first() or turns.last_of_task(ask_id, user_id)
    if turn is None:
        return _find_queued(ask_id, user_id)
    is_caller, is_owner = caller_id_of(turn) == user_id, may_audit(owner_id_of(turn), user_id)
    if not (is_caller or is_owner):
        return None
    return ViewedAsk(turn, user_id, is_caller, is_owner, is_askable(turn.agent_id, user_id))


def may_audit(owner_id: int, user_id: int) -> bool:
    """True if a user may read the audit of what an account owns: of the own account, or by a role in its group."""
    if owner_id == user_id:
        return True
    roles = Membership.objects.filter(group=owner_id, user=user_id, role__in=READING_ROLES)
    return bool(roles.filter(group__account__is_active=True).exists())


def is_askable(agent_id: int | None, user_id: int) -> bool:
    """True if a user may ask the agent now."""
    return bool(agent_id and Agent.objects.askable_by(user_id).filter(pk=agent_id).exists())


def find_exchanges(viewed: ViewedAsk, most: int) -> list[RecordedExchange]:
    """The recorded exchanges of an ask, oldest first; none of other callers.

    Requests have what the viewer may read alone: no body, or no push config, if they are the caller's.
    """
    rows = RecordedExchange.objects.filter(chat_id=viewed.turn.chat_id, caller=viewed.turn.caller_id)
    found = list(rows.order_by("pk")[:most])
    if not viewed.is_caller:
        for one in found:
            is_shown = viewed.may_read_request(one)
            one.request_body = hide_push_configs(one.request_body) if is_shown else ""
    return found


def _find_queued(ask_id: str, user_id: int) -> ViewedAsk | None:
    places = QueuedAsk.objects.select_related("agent__owner", "session__owner", "caller")
    place = places.filter(chat_id=ask_id).first() or places.filter(task_id=ask_id, caller=user_id).first()
    if place is None:
        return None
    is_caller, is_owner = place.caller_id == user_id, may_audit(place.agent.owner_id, user_id)
    if not (is_caller or is_owner):
        return None
    turn = Turn(
        chat_id=place.chat_id,
        agent=place.agent,
        session=place.session,
        caller=place.caller,
        surface="a2a",
        question=place.question,
        asked_at=place.queued_at,
        task_id=place.task_id,
    )
    return ViewedAsk(turn, user_id, is_caller, is_owner, is_askable(place.agent_id, user_id), is_queued=True)

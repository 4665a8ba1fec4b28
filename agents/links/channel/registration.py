"""Registers an agent from its register frame, and restores its unfinished prompts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from accounts.authn import Identity, presented
from agents.core.post import Prompt
from agents.core.registration import Registered, Registration, register_connection
from agents.links.channel.frames import Register
from agents.links.channel.prompts import LONGEST_TURN_S, REPLY_GRACE_S
from agents.models import Event, Turn
from agents.models.choices import AGENTS_OWN_WORDS, Failure, Outcome
from kit.clock import db_now

MOST_UNFINISHED = 100


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A question from an earlier connection that the agent's program may still be working on."""

    prompt: Prompt
    for_s: float


@dataclass(frozen=True, slots=True)
class RegisteredAgent:
    """A registered connection."""

    registered: Registered
    unfinished: Sequence[Unfinished]


def register_agent(registration: Registration, *, process_id: str) -> RegisteredAgent:
    """Register a connection, and read the unfinished prompts of its session."""
    registered = register_connection(registration, process_id=process_id)
    if registered.is_new:
        return RegisteredAgent(registered, ())
    return RegisteredAgent(registered, unfinished_of(registered.session_id))


def unfinished_of(session_id: int) -> list[Unfinished]:
    """What was asked in the last 15 minutes and whose turn was not reported over since.

    A program goes on with a question when its socket is lost: it must not act for its owner then.
    """
    now = db_now()
    recent = Turn.objects.filter(
        Q(agent__session_id=session_id) | Q(agent=None),
        session_id=session_id,
        asked_at__gt=now - timedelta(seconds=LONGEST_TURN_S),
        connection_id__isnull=False,
        caller__isnull=False,
    ).exclude(reason=Failure.NOT_DELIVERED)
    # Most sessions come back without a question of late: one query instead of three.
    if not recent.exists():
        return []
    stops = Event.objects.filter(session_id=session_id, kind="tail", type="Stop").order_by("-pk")
    last_stop = stops.values_list("ts", flat=True).first()
    newest = recent.filter(_not_over(last_stop, now)).select_related("agent", "caller").order_by("-asked_at")
    # The newest ones, but the oldest of them first: `PendingPrompts` goes by the order in which prompts went out.
    return [_unfinished(turn, now) for turn in reversed(newest[:MOST_UNFINISHED])]


def digest_in(frame: Register) -> str:
    """The digest of the token in a register frame, the header's fallback."""
    token = presented({"authorization": f"Bearer {frame.token or ''}"})
    return token.digest if token else ""


def registration_of(frame: Register, identity: Identity) -> Registration:
    """What an agent said of itself, as a database keeps it."""

    def clean(text: str | None) -> str:
        return (text or "").replace("\0", "")

    return Registration(
        user_id=identity.user_id,
        credential_id=identity.credential_id,
        session_id=frame.session_id,
        routing_name=frame.routing_name,
        host=clean(frame.host),
        cwd=clean(frame.cwd),
        os_user=clean(frame.os_user),
        pid=frame.pid,
        channel_version=clean(frame.channel_version),
    )


def _not_over(last_stop: datetime | None, now: datetime) -> Q:
    """Turns whose end the program did not report; without reports, those not replied to some time ago."""
    if last_stop is not None:
        return Q(settled_at=None) | Q(settled_at__gt=last_stop)
    moment_ago = now - timedelta(seconds=REPLY_GRACE_S)
    is_answered = Q(outcome=Outcome.COMPLETED) | Q(reason__in=AGENTS_OWN_WORDS)
    return Q(settled_at=None) | ~is_answered | Q(settled_at__gte=moment_ago)


def _unfinished(turn: Turn, now: datetime) -> Unfinished:
    """How an onward ask came here is not kept, so it may go no further."""
    isolated = turn.depth > 0 or (turn.agent is not None and turn.agent.isolated)
    prompt = Prompt(
        chat_id=turn.chat_id,
        connection_id=0,
        home="",
        asker=turn.caller.login if turn.caller else "",
        text="",
        wait_s=0.0,
        asker_id=turn.caller_id or 0,
        isolated=isolated,
        chain=(turn.session_id,),
        traceparent=turn.traceparent,
    )
    return Unfinished(prompt, LONGEST_TURN_S - (now - turn.asked_at).total_seconds())

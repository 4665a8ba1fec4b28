"""The notes of callers to owners: what was wrong with an ask."""

from django.db import IntegrityError, transaction

from accounts.models import User
from agents.limits import PROBLEM_NOTES
from agents.models import Agent, ProblemNote, Turn
from agents.transcript.recording import kept_text
from webhooks.service import outbox
from webhooks.service.outbox import OutboxEvent

MAX_NOTE_CHARS = 2_000


class AlreadyReported(Exception):
    """The ask has a note already; nothing was written."""


class EmptyNote(ValueError):
    """The note has no words; nothing was written."""


@transaction.atomic
def report_problem(turn: Turn, agent: Agent, caller: User, text: str) -> ProblemNote:
    """Keep the caller's note about an ask of this agent, and queue the webhook event for the agent's owner.

    Raises:
        EmptyNote: there is nothing to read.
        AlreadyReported: the ask has a note.
        accounts.quotas.QuotaExceeded: the caller has as many notes as one may.
    """
    text = kept_text(text.strip(), MAX_NOTE_CHARS)
    if not text:
        raise EmptyNote
    PROBLEM_NOTES.check(caller.pk)
    try:
        with transaction.atomic():
            note = ProblemNote.objects.create(turn=turn, agent=agent, caller=caller, text=text)
    except IntegrityError:
        raise AlreadyReported from None
    if outbox.has_subscriptions():
        outbox.record([_event(note, turn)])
    return note


def _event(note: ProblemNote, turn: Turn) -> OutboxEvent:
    return OutboxEvent(
        type="problem.reported",
        audience={note.agent.owner_id},
        payload={
            "handle": note.agent.handle,
            "agentId": note.agent.pk,
            "askerLogin": note.caller.login,
            "routeId": turn.chat_id,
            "note": note.text,
        },
        session_id=str(turn.session.public_id),
        routing_name=f"@{turn.session.routing_name}",
        traceparent=turn.traceparent,
    )

"""The rows of asks: a turn (audit record, claim, accounting entry and outcome of one ask), and a queued ask."""

from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from agents.models.agent import Agent
from agents.models.choices import GROUPED_REASONS, Outcome, Surface
from agents.models.failure import FailureGroup
from agents.models.session import Session
from kit import trace

SURFACE_NAMES = {
    Surface.A2A: "A2A",
    Surface.PROMPT: "REST prompt",
    Surface.CLI: "operator's socket",
    Surface.ROUTE: "REST route",
    Surface.PROBE: "probe",
    Surface.DISPATCH: "another agent",
    Surface.MCP: "MCP",
    Surface.CHAT: "chat completions",
    Surface.GATEWAY: "gateway message",
    Surface.AGNT: "AGNT envelope",
    Surface.EVALUATION: "saved question",
}
SURFACES = [(one.value, SURFACE_NAMES[one]) for one in Surface]
PUBLIC_ASKER = "(public)"
LATELY = 10_000  # a caller's asks among which one is looked up by its task
OUTCOMES = [(one.value, one.value.capitalize()) for one in Outcome]


class TurnQuerySet(models.QuerySet["Turn"]):
    def open(self) -> "TurnQuerySet":
        """The turns that have not ended yet.

        An open turn always holds its claim; the condition on `released_at` lets the database use the small partial
        index.
        """
        return self.filter(outcome=None, released_at=None)

    def open_in(self, process_id: str) -> "TurnQuerySet":
        """The open turns that a process waits for.

        The turns are chosen by their keys: with other conditions beside those of `open`, SQLite may read all turns
        by another index.
        """
        return self.filter(pk__in=Turn.objects.open().filter(home=process_id).values("pk"))

    def owned_by(self, user_id: int) -> "TurnQuerySet":
        """The asks of this user's agents, and the asks of the user's sessions without an agent; each part has its
        index.
        """
        of_agents = Turn.objects.filter(agent__owner=user_id).values("pk")
        of_sessions = Turn.objects.filter(agent=None, session__owner=user_id).values("pk")
        return self.filter(pk__in=of_agents.union(of_sessions, all=True))

    def asked_by(self, user_id: int) -> "TurnQuerySet":
        """The questions of this user to agents, without questions that agents asked other agents for the user."""
        return self.filter(caller=user_id, depth=0, agent__isnull=False)

    def last_of_task(self, task_id: str, user_id: int) -> "Turn | None":
        """The last ask of a task among the user's newest `LATELY` asks; the table has no index of tasks."""
        newest = Turn.objects.asked_by(user_id).order_by("-asked_at", "-pk").values("pk")[:LATELY]
        found: Turn | None = self.filter(pk__in=newest, task_id=task_id).order_by("-pk").first()
        return found

    def release_ended(self, now: datetime) -> None:
        """Release the claims that turns still hold after their end."""
        self.filter(outcome__isnull=False, released_at=None).update(released_at=now)

    def holding(self) -> "TurnQuerySet":
        """The turns whose claim was not released; the claim may have expired all the same."""
        return self.filter(released_at=None)


class Turn(models.Model):
    """A row for every ask, allowed or denied; the native API calls the table the agent query log.

    Open while `outcome` is null. The turn holds its session for its caller until `released_at`, or until
    `claim_until` passes. `usage_day` is the day whose budget counts the turn; null if the turn was never counted,
    or was given back.
    `question` and `failure_text` are blanked after the time for which the owner keeps questions
    (`agents.jobs.blank_questions`).
    """

    chat_id = models.CharField(max_length=64, unique=True, help_text="Also the audit's route id.")
    agent = models.ForeignKey(
        Agent,
        models.CASCADE,
        null=True,
        related_name="turns",
        db_index=False,
        help_text="Null for an ask to a session of one's own, or shared: it has no budget.",
    )
    session = models.ForeignKey(Session, models.CASCADE, related_name="turns", db_index=False)
    source_session = models.ForeignKey(
        Session,
        models.SET_NULL,
        null=True,
        related_name="turns_asked",
        db_index=False,
        help_text="The session it was asked from.",
    )
    depth = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="0: asked by a person or program; 1 and more: by an agent for them."
    )
    caller = models.ForeignKey(User, models.SET_NULL, null=True, related_name="turns", db_index=False)
    surface = models.CharField(max_length=16, choices=SURFACES)
    question = models.TextField()
    asked_at = models.DateTimeField()
    outcome = models.CharField(max_length=9, choices=OUTCOMES, null=True)  # noqa: DJ001  null is "still open"
    reason = models.CharField(max_length=20, blank=True)
    settled_at = models.DateTimeField(null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    waited_ms = models.PositiveIntegerField(
        null=True, help_text="In line for a free agent, before `asked_at`; null: the ask did not wait."
    )
    delivered_ms = models.PositiveIntegerField(
        null=True, help_text="When the agent had the prompt, from the start of `latency_ms`; null: not known."
    )
    first_piece_ms = models.PositiveIntegerField(
        null=True, help_text="When the first piece of a reply in pieces came, from the start of `latency_ms`."
    )
    usage_day = models.DateField(null=True)
    input_tokens = models.BigIntegerField(null=True, help_text="As its agent reported it; null: not reported.")
    output_tokens = models.BigIntegerField(null=True)
    cost_microusd = models.BigIntegerField(null=True, help_text="In millionths of a US dollar.")
    released_at = models.DateTimeField(null=True)
    claim_until = models.DateTimeField(null=True)
    home = models.CharField(max_length=32, blank=True, help_text="The process whose caller waits.")
    connection_id = models.BigIntegerField(null=True, help_text="The connection that got the prompt.")
    traceparent = models.CharField(
        max_length=55,
        blank=True,
        default="",
        db_default="",
        help_text="Its span, in the trace of the caller (W3C Trace Context).",
    )
    message_key = models.CharField(
        max_length=32, blank=True, default="", db_default="", help_text="The same for identical messages."
    )
    task_id = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="Of the task it is of."
    )
    context_id = models.TextField(blank=True, default="", db_default="", help_text="The A2A context it is in.")
    repeats = models.PositiveIntegerField(default=1, help_text="Like refusals within one minute share a row.")
    failure_text = models.TextField(null=True, help_text="The agent's own words, if it failed.")  # noqa: DJ001
    failure_group = models.ForeignKey(
        FailureGroup,
        models.SET_NULL,
        null=True,
        related_name="turns",
        db_index=False,
        help_text="Null until it is counted.",
    )

    objects: ClassVar[Any] = TurnQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__isnull=False) | Q(claim_until__isnull=False), name="an_open_turn_has_a_lease"
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(settled_at__isnull=False), name="an_ended_turn_has_an_end"
            ),
        ]
        indexes = [
            models.Index(fields=["agent", "asked_at"], name="turn_by_agent"),
            models.Index(fields=["session"], condition=Q(released_at=None), name="turn_holding_a_session"),
            models.Index(fields=["session", "asked_at"], condition=Q(agent=None), name="turn_of_a_session"),
            models.Index(
                fields=["source_session"], condition=Q(source_session__isnull=False), name="turn_asked_from"
            ),
            models.Index(fields=["caller", "id"], name="turn_by_caller"),
            models.Index(
                fields=["caller", "asked_at", "id"],
                condition=Q(agent__isnull=False),
                name="turn_of_agents_by_caller",
            ),
            models.Index(
                fields=["session", "caller", "reason", "asked_at"],
                condition=Q(outcome="denied"),
                name="turn_denied_lately",
            ),
            models.Index(
                fields=["id"],
                condition=Q(failure_group=None, agent__isnull=False, reason__in=GROUPED_REASONS),
                name="turn_to_group",
            ),
            models.Index(
                fields=["failure_group", "id"],
                condition=Q(failure_group__isnull=False),
                name="turn_by_failure_group",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.chat_id}"

    @property
    def trace_id(self) -> str:
        """The id of the trace of which the turn is part; empty for turns that are older than tracing."""
        return trace.trace_id(self.traceparent)

    @property
    def asker(self) -> str:
        """The login of the caller."""
        return self.caller.login if self.caller else PUBLIC_ASKER

    @property
    def asked(self) -> str:
        """The addressee of the question: the agent's handle, or the name of the session."""
        return self.agent.handle if self.agent else f"@{self.session.routing_name}"


class ProblemNote(models.Model):
    """The note of a caller to the agent's owner: what was wrong with an ask. An ask has at most one.

    The database does not check `turn`: with a cascade each deletion of turns would first read them. A job deletes
    the notes whose turn was deleted.
    """

    turn = models.OneToOneField(Turn, models.DO_NOTHING, related_name="problem", db_constraint=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="problem_notes")
    caller = models.ForeignKey(User, models.CASCADE, related_name="problem_notes")
    text = models.TextField()
    reported_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return f"problem note {self.pk}"


class FollowUp(models.Model):
    """A reply that an agent sent after the reply that ended its turn; kept for a day (docs/adr/0174).

    `task_id`: the task that the hub makes of it; empty when its turn has no task. `followed_id`: the task of its
    turn. `shown_at`: when the follow-up was shown to an ask in the same context; null until then.
    """

    chat_id = models.CharField(max_length=64, db_index=True, help_text="Of its turn.")
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, related_name="follow_ups", db_index=False)
    caller = models.ForeignKey(User, models.CASCADE, related_name="follow_ups")
    context_id = models.TextField(blank=True)
    followed_id = models.CharField(max_length=64, blank=True)
    task_id = models.CharField(max_length=64, blank=True)
    text = models.TextField()
    sent_at = models.DateTimeField()
    shown_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["agent"], condition=Q(shown_at=None), name="follow_up_to_show"),
            models.Index(fields=["sent_at"], name="follow_up_by_age"),
        ]

    def __str__(self) -> str:
        return f"follow-up {self.pk}"


class QueuedAsk(models.Model):
    """An ask that waits in the process `home`, in the order of the ids (docs/adr/0073).

    The row counts until `waits_until`, and while its process lives. Written by SQL (`agents.core.ledger`), taken
    away in the transaction that admits or refuses it; the reaper makes a failed turn of it when its process died.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="queued_asks", db_index=False)
    session = models.ForeignKey(Session, models.CASCADE, related_name="queued_asks")
    caller = models.ForeignKey(User, models.CASCADE, related_name="queued_asks")
    chat_id = models.CharField(max_length=64, unique=True)
    home = models.CharField(max_length=32)
    task_id = models.CharField(max_length=64)
    message_key = models.CharField(max_length=32, blank=True)
    question = models.TextField()
    queued_at = models.DateTimeField()
    waits_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"queued ask {self.pk}"

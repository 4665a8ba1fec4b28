"""A published way to ask a session, and what limits it: who may ask, and how often."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import Membership, User
from agents.models.session import Session
from kit.asgi import MAX_BODY_BYTES
from kit.clock import approximate_now
from kit.full_text import KIND, NAME, TEXT, FullText, search
from kit.money import MICRO

HUB_MODES = ("text/plain", "application/json")  # where an owner names none; callers can always ask for these
MAX_BUDGET = 100_000
MAX_CAP = 20
MAX_NAMED_CALLERS = 200  # in a list of logins: whom access is limited to, who has a budget of their own
MAX_WAIT_S = 3600
MAX_PAPER_CHARS = 65_536
MIN_BODY_BYTES = 1_024
MAX_QUEUE = 50
QUEUE_WAIT_S = 60
MAX_QUEUE_WAIT_S = 600
MAX_LIMIT_USD = 1_000_000
COST_LIMITS = (MinValueValidator(0), MaxValueValidator(MAX_LIMIT_USD * MICRO))


AGENT_WORDS = FullText(  # as the last `AddFullText` of the migrations has it
    "agents_agent",
    {"handle": NAME, "name": NAME, "tagline": KIND, "skills": KIND, "description": TEXT},
    json=["skills"],
)


class AgentQuerySet(models.QuerySet["Agent"]):
    def owned_by(self, user: User) -> "AgentQuerySet":
        return self.filter(owner=user)

    def kept(self) -> "AgentQuerySet":
        """The agents that are not deleted."""
        return self.filter(deleted_at=None)

    def published(self) -> "AgentQuerySet":
        """Open to callers: published, kept, and the owner not suspended."""
        return self.kept().filter(PUBLISHED)

    def askable_by(self, user_id: int | None) -> "AgentQuerySet":
        """Published and open to this user (None: any user); absent for all others."""
        return self.published().filter(_open_to(user_id))

    def visible_to(self, user: User) -> "AgentQuerySet":
        """The agents that this user may ask, and all of the user's own, drafts too."""
        return self.kept().filter(Q(owner=user) | (PUBLISHED & _open_to(user.pk)))

    def audited_by(self, user: User) -> "AgentQuerySet":
        """The agents whose audit this user reads: own ones, and those of groups that they maintain or audit."""
        groups = Membership.objects.auditing().filter(user=user).values("group_id")
        return self.kept().filter(Q(owner=user) | Q(owner_id__in=groups))

    def matching(self, text: str) -> "AgentQuerySet":
        """The agents that have the words of a text, by relevance, then by handle. Call it last: it may ask."""
        return search(self, AGENT_WORDS, text, "handle_key")

    def at(self, handle: str) -> "AgentQuerySet":
        """The agents of a handle, `owner/slug`, in any case; none for a text that a database may refuse."""
        return self.filter(handle_key=handle.lower()) if handle.isprintable() else self.none()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentActivity:
    """The presence of an agent, and its usage.

    `last_query_at`: the time of the last ask that was not refused.
    """

    is_online: bool
    queries_today: int
    queries_all_time: int
    cost_today_microusd: int
    last_query_at: datetime | None


class Agent(models.Model):
    """A session others may ask, as `@owner/slug`. The handle is fixed when the row is made.

    Labels and hints of the columns that an owner writes are those of the forms (`kit.columns`).
    `load_agent_activity` of `agents.core.directory` sets `activity`.
    """

    activity: AgentActivity

    class Status(models.TextChoices):
        DRAFT = "draft"
        PUBLISHED = "published"

    class Access(models.TextChoices):
        PUBLIC = "public", "any signed-in user"
        LIMITED = "limited", "its owner and the named"
        PRIVATE = "private", "its owner alone"

    class Style(models.TextChoices):
        HYBRID = "hybrid", "answers plain questions with a message"
        TASK_GENERATING = "task-generating", "makes a task of every question"

    class TaskStore(models.TextChoices):
        MEMORY = "memory", "a memory that may be lost"
        JOURNAL = "journal", "the database, over restarts"

    session = models.ForeignKey(Session, models.CASCADE, related_name="agents")
    owner = models.ForeignKey(User, models.CASCADE, related_name="agents")
    handle = models.CharField(max_length=160, editable=False)
    handle_key = models.CharField(max_length=160, editable=False, help_text="The handle in lower case.")
    name = models.CharField(max_length=120)
    tagline = models.CharField(max_length=160, blank=True, help_text="One line for the directory.")
    description = models.TextField(
        blank=True,
        validators=[MaxLengthValidator(4096)],
        help_text="Markdown, shown to those who want to ask.",
    )
    tags = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text="By which callers find it in the directory, one on a line, at most 10: lower-case letters,"
        " digits and hyphens.",
    )
    status = models.CharField(max_length=9, choices=Status, default=Status.DRAFT)
    access = models.CharField(
        max_length=7,
        choices=Access,
        default=Access.PUBLIC,
        db_default=Access.PUBLIC,
        help_text="Others do not see a private agent.",
    )
    isolated = models.BooleanField(
        default=True, help_text="While it answers another user than you, it cannot reach other sessions."
    )
    caller_approvals = models.BooleanField(
        "callers may approve",
        default=False,
        db_default=False,
        help_text="A2A callers see what it asks permission for, tool and input, and may approve or deny it, as you"
        " may.",
    )
    caller_sharing = models.BooleanField(
        "callers may share answers",
        default=True,
        db_default=True,
        help_text="Callers may show what it answered to others, by name or by a link. Off: what they shared is not"
        " shown any more.",
    )
    daily_budget = models.PositiveIntegerField(
        default=1000,
        validators=[MaxValueValidator(MAX_BUDGET)],
        help_text="Questions accepted on one UTC day, of all callers together.",
    )
    caller_budget = models.PositiveIntegerField(
        "daily budget of each caller",
        null=True,
        blank=True,
        validators=[MaxValueValidator(MAX_BUDGET)],
        help_text="Of these, questions of one caller. Empty: as many as there are.",
    )
    daily_limit_microusd = models.BigIntegerField(
        "cost of a day in US dollars",
        null=True,
        blank=True,
        validators=COST_LIMITS,
        help_text="Of all callers together, as the agent reports it. The next question is refused once it is"
        " reached. Empty: no limit.",
    )
    caller_limit_microusd = models.BigIntegerField(
        "cost of each caller in US dollars",
        null=True,
        blank=True,
        validators=COST_LIMITS,
        help_text="Of this, the questions of one caller on one UTC day. Empty: all of it.",
    )
    concurrency_cap = models.PositiveSmallIntegerField(
        "open questions per caller",
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_CAP)],
        help_text="Questions one caller may have open at once.",
    )
    wait_s = models.PositiveSmallIntegerField(
        "wait for a reply, in seconds",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_WAIT_S)],
        help_text="How long it may take for callers who stream or come back for the answer: up to 3600. Empty: the"
        " hub's own limit, as for those who wait.",
    )
    agent_style = models.CharField(
        "answers to A2A 0.3",
        max_length=15,
        choices=Style,
        default=Style.HYBRID,
        db_default=Style.HYBRID,
        help_text="Whether A2A 0.3 callers get a plain answer as a message, or always a task.",
    )
    suggested_prompts = models.JSONField(default=list, blank=True, help_text="One on a line, at most 6.")
    skills = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text="Each from its id line on: id, name, description, and any number of tag, example, input and"
        " output lines. Two spaces at the start go on with the line above. Empty: the one skill ask.",
    )
    input_modes = models.JSONField(
        "takes",
        default=list,
        db_default=[],
        blank=True,
        help_text="Media types, one on a line, text/plain or application/json among them. Empty: both of these,"
        " and no files. A program that reads text alone gets one line about a file.",
    )
    output_modes = models.JSONField(
        "answers with",
        default=list,
        db_default=[],
        blank=True,
        help_text="Media types, one on a line, text/plain or application/json among them. Empty: both of these.",
    )
    max_body_bytes = models.PositiveIntegerField(
        "longest request in bytes",
        null=True,
        blank=True,
        validators=[MinValueValidator(MIN_BODY_BYTES), MaxValueValidator(MAX_BODY_BYTES)],
        help_text="Over A2A: 1024 to 1048576. A longer one is refused with 413. Empty: 1048576.",
    )
    queue_max = models.PositiveSmallIntegerField(
        "questions that may wait",
        default=0,
        db_default=0,
        validators=[MaxValueValidator(MAX_QUEUE)],
        help_text="Over A2A, while the agent is at work for others: up to 50, in their order. 0: they are refused"
        " at once.",
    )
    queue_wait_s = models.PositiveSmallIntegerField(
        "seconds they wait",
        default=QUEUE_WAIT_S,
        db_default=QUEUE_WAIT_S,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_QUEUE_WAIT_S)],
        help_text="1 to 600. A question that has waited so long is refused.",
    )
    task_store = models.CharField(
        "tasks are kept",
        max_length=7,
        choices=TaskStore,
        blank=True,
        default="",
        db_default="",
        help_text="From the next task on. In memory a restart may lose them; in the database they are kept for"
        " days, and each piece of a streamed answer is a write.",
    )
    claude_md = models.TextField(  # noqa: DJ001  the native API tells "never written" from "empty"
        "CLAUDE.md",
        null=True,
        blank=True,
        validators=[MaxLengthValidator(MAX_PAPER_CHARS)],
        help_text="Notes for callers: every user who may ask the agent can read them.",
    )
    personalization_prompt = models.TextField(  # noqa: DJ001
        null=True,
        blank=True,
        validators=[MaxLengthValidator(MAX_PAPER_CHARS)],
        help_text="The same: every user who may ask the agent can read it.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    revised_at = models.DateTimeField(
        default=timezone.now, db_default=Now(), editable=False, help_text="When a setting last changed."
    )
    published_at = models.DateTimeField(null=True, blank=True, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    full_text: ClassVar = AGENT_WORDS
    objects: ClassVar[Any] = AgentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["handle_key"], condition=Q(deleted_at=None), name="one_kept_agent_per_handle"
            ),
            models.UniqueConstraint(
                fields=["session"], condition=Q(deleted_at=None), name="one_kept_agent_per_session"
            ),
        ]
        indexes = [models.Index(fields=["owner"], name="agent_by_owner")]

    def __str__(self) -> str:
        return f"@{self.handle}"

    @property
    def slug(self) -> str:
        """The part of the handle after the owner."""
        return self.handle.partition("/")[2]

    @property
    def taken_modes(self) -> list[str]:
        """The media types that the agent or one of its skills takes, by its card."""
        return self._modes(self.input_modes, "inputModes")

    @property
    def given_modes(self) -> list[str]:
        """The media types that the agent or one of its skills gives, by its card."""
        return self._modes(self.output_modes, "outputModes")

    def _modes(self, own: list[str], of_skill: str) -> list[str]:
        of_skills = [mode for skill in self.skills for mode in skill.get(of_skill, ())]
        return [*dict.fromkeys([*(own or HUB_MODES), *of_skills])]

    def set_status(self, status: str) -> None:
        """Publish or unpublish; the first publishing is remembered."""
        self.status = status
        if status == self.Status.PUBLISHED and self.published_at is None:
            self.published_at = approximate_now()

    def soft_delete(self) -> None:
        """Free the handle and stop every ask from the next request on; the log stays."""
        type(self).objects.filter(pk=self.pk, deleted_at=None).update(deleted_at=Now(), status=self.Status.DRAFT)


PUBLISHED = Q(status=Agent.Status.PUBLISHED, owner__is_active=True)


def _open_to(user_id: int | None) -> Q:
    if user_id is None:
        return Q(access=Agent.Access.PUBLIC)
    groups = Membership.objects.asking().filter(user_id=user_id).values("group_id")
    granted = AgentGrant.objects.filter(Q(user_id=user_id) | Q(user_id__in=groups)).values("agent_id")
    limited = Q(access=Agent.Access.LIMITED, pk__in=granted)
    return Q(access=Agent.Access.PUBLIC) | Q(owner_id=user_id) | Q(owner_id__in=groups) | limited


class AgentGrant(models.Model):
    """A user whom a limited agent answers, or the account of a group whose members it answers."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="grants")
    user = models.ForeignKey(User, models.CASCADE, related_name="agent_grants")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "user"], name="one_grant_per_agent_and_user")]

    def __str__(self) -> str:
        return f"grant {self.pk}"

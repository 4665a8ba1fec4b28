"""A published way to ask a session, and what limits it: who may ask, how often, and what is halted."""

from typing import Any, ClassVar

from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import User
from agents.models.session import Session
from kit.asgi import MAX_BODY_BYTES
from kit.clock import approximate_now
from kit.money import MICRO
from kit.search import match_words

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


class AgentQuerySet(models.QuerySet["Agent"]):
    def owned_by(self, user: User) -> "AgentQuerySet":
        return self.filter(owner=user)

    def kept(self) -> "AgentQuerySet":
        """Not deleted."""
        return self.filter(deleted_at=None)

    def published(self) -> "AgentQuerySet":
        """Open to callers: published, kept, and the owner not suspended."""
        return self.kept().filter(PUBLISHED)

    def askable_by(self, user_id: int | None) -> "AgentQuerySet":
        """Published and open to this user (None: any user); absent for all others."""
        return self.published().filter(_open_to(user_id))

    def visible_to(self, user: User) -> "AgentQuerySet":
        """What this user may ask, and whatever they have themselves, drafts too."""
        return self.kept().filter(Q(owner=user) | (PUBLISHED & _open_to(user.pk)))

    def matching(self, text: str) -> "AgentQuerySet":
        """The agents whose handle, name or tagline have the words of a text (`kit.search`)."""
        return self.filter(match_words(text, "handle", "name", "tagline"))

    def at(self, handle: str) -> "AgentQuerySet":
        """Those of a handle, `owner/slug`, in any case."""
        return self.filter(handle_key=handle.lower())


class Agent(models.Model):
    """A session others may ask, as `@owner/slug`. The handle is fixed when the row is made."""

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
    tagline = models.CharField(max_length=160, blank=True)
    description = models.TextField(blank=True, validators=[MaxLengthValidator(4096)])
    status = models.CharField(max_length=9, choices=Status, default=Status.DRAFT)
    access = models.CharField(
        max_length=7, choices=Access, default=Access.PUBLIC, db_default=Access.PUBLIC, help_text="Who may ask it."
    )
    isolated = models.BooleanField(default=True)
    caller_approvals = models.BooleanField(
        default=False, db_default=False, help_text="Whether A2A callers may decide what it asks permission for."
    )
    daily_budget = models.PositiveIntegerField(default=1000, validators=[MaxValueValidator(MAX_BUDGET)])
    caller_budget = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(MAX_BUDGET)],
        help_text="Questions of one caller accepted on one UTC day; empty: as many as the daily budget has.",
    )
    daily_limit_microusd = models.BigIntegerField(
        null=True,
        blank=True,
        validators=COST_LIMITS,
        help_text="What the asks of one UTC day may cost, as the agent reports it; empty: anything.",
    )
    caller_limit_microusd = models.BigIntegerField(
        null=True,
        blank=True,
        validators=COST_LIMITS,
        help_text="Of this, the asks of one caller; empty: all.",
    )
    concurrency_cap = models.PositiveSmallIntegerField(
        default=5, validators=[MinValueValidator(1), MaxValueValidator(MAX_CAP)]
    )
    agent_style = models.CharField(
        max_length=15,
        choices=Style,
        default=Style.HYBRID,
        db_default=Style.HYBRID,
        help_text="Whether A2A 0.3 callers get a plain answer as a message, or always a task.",
    )
    wait_s = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_WAIT_S)],
        help_text="Seconds it may take for callers who stream or do not wait; empty: the hub's own limit.",
    )
    suggested_prompts = models.JSONField(default=list, blank=True)
    skills = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text="In its A2A card; empty: the skill `ask` alone.",
    )
    input_modes = models.JSONField(
        default=list, db_default=[], blank=True, help_text="Media types it takes; empty: the hub's."
    )
    output_modes = models.JSONField(
        default=list, db_default=[], blank=True, help_text="Media types it answers with; empty: the hub's."
    )
    max_body_bytes = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(MIN_BODY_BYTES), MaxValueValidator(MAX_BODY_BYTES)],
        help_text="The longest request it takes over A2A; empty: the hub's own limit.",
    )
    task_store = models.CharField(
        max_length=7,
        choices=TaskStore,
        blank=True,
        default="",
        db_default="",
        help_text="Where its A2A tasks are kept; empty: where the hub keeps them.",
    )
    queue_max = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        validators=[MaxValueValidator(MAX_QUEUE)],
        help_text="A2A questions that may wait until it is free, of all callers together; 0: none.",
    )
    queue_wait_s = models.PositiveSmallIntegerField(
        default=QUEUE_WAIT_S,
        db_default=QUEUE_WAIT_S,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_QUEUE_WAIT_S)],
        help_text="Seconds a question waits at most.",
    )
    claude_md = models.TextField(  # noqa: DJ001  the native API tells "never written" from "empty"
        null=True, blank=True, validators=[MaxLengthValidator(MAX_PAPER_CHARS)]
    )
    personalization_prompt = models.TextField(  # noqa: DJ001
        null=True, blank=True, validators=[MaxLengthValidator(MAX_PAPER_CHARS)]
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    revised_at = models.DateTimeField(
        default=timezone.now, db_default=Now(), editable=False, help_text="When a setting last changed."
    )
    published_at = models.DateTimeField(null=True, blank=True, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

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
    granted = AgentGrant.objects.filter(user_id=user_id).values("agent_id")
    limited = Q(access=Agent.Access.LIMITED, pk__in=granted)
    return Q(access=Agent.Access.PUBLIC) | Q(owner_id=user_id) | limited


class AgentGrant(models.Model):
    """A user whom a limited agent answers."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="grants")
    user = models.ForeignKey(User, models.CASCADE, related_name="agent_grants")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "user"], name="one_grant_per_agent_and_user")]

    def __str__(self) -> str:
        return f"grant {self.pk}"


class CallerBudget(models.Model):
    """One caller's daily budget at one agent, and what they spent of it.

    `daily_budget` null: the agent's `caller_budget`. `queries` are the asks accepted on the UTC day `day`, and
    `cost_microusd` what they cost, counted by the ledger while a budget or a limit on the cost holds for this
    caller; of another day they count as none.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="caller_budgets")
    caller = models.ForeignKey(User, models.CASCADE, related_name="agent_budgets")
    daily_budget = models.PositiveIntegerField(null=True, validators=[MaxValueValidator(MAX_BUDGET)])
    day = models.DateField(null=True)
    queries = models.PositiveIntegerField(default=0, db_default=0)
    cost_microusd = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "caller"], name="one_budget_per_agent_and_caller")]
        indexes = [
            models.Index(
                fields=["agent"], condition=Q(daily_budget__isnull=False), name="caller_budget_of_an_agent"
            ),
        ]

    def __str__(self) -> str:
        return f"caller budget {self.pk}"


class CallerBlock(models.Model):
    """A caller whom an owner's agents and sessions do not answer."""

    owner = models.ForeignKey(User, models.CASCADE, related_name="caller_blocks")
    caller = models.ForeignKey(User, models.CASCADE, related_name="blocked_by")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "caller"], name="one_block_per_owner_and_caller"),
            models.CheckConstraint(condition=~Q(owner=models.F("caller")), name="nobody_blocks_themselves"),
        ]

    def __str__(self) -> str:
        return f"block {self.pk}"


class DailyUsage(models.Model):
    """Asks an agent has accepted on one UTC day; the ledger keeps it at or under the budget."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="usage")
    day = models.DateField()
    queries = models.PositiveIntegerField(default=0)
    cost_microusd = models.BigIntegerField(
        default=0, db_default=0, help_text="What the agent reported that these asks cost."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "day"], name="one_usage_row_per_agent_and_day")]
        verbose_name_plural = "daily usage"

    def __str__(self) -> str:
        return f"{self.queries} on {self.day}"


REASON_CHARS = 200


class HaltQuerySet(models.QuerySet["Halt"]):
    def active(self) -> "HaltQuerySet":
        """Not lifted yet."""
        return self.filter(lifted_at=None)


class Halt(models.Model):
    """While it is not lifted, its agent, all of its owner's agents and sessions, or its caller's asks stand still.

    `by_staff`: an administrator's; the owner of an agent cannot lift it. `made_by` null: the command line.
    """

    class Kind(models.TextChoices):
        AGENT = "agent"
        OWNER = "owner"
        CALLER = "caller"

    kind = models.CharField(max_length=6, choices=Kind)
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, blank=True, related_name="halts", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="halts", db_index=False)
    by_staff = models.BooleanField()
    reason = models.CharField(max_length=REASON_CHARS, blank=True)
    made_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+", db_index=False)
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    lifted_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+", db_index=False)
    lifted_at = models.DateTimeField(null=True)

    objects: ClassVar[Any] = HaltQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="agent", agent__isnull=False, user=None)
                | Q(kind__in=["owner", "caller"], agent=None, user__isnull=False),
                name="a_halt_names_what_it_halts",
            ),
            models.UniqueConstraint(
                fields=["agent", "by_staff"], condition=Q(lifted_at=None), name="one_active_halt_of_an_agent"
            ),
            models.UniqueConstraint(
                fields=["user", "kind", "by_staff"], condition=Q(lifted_at=None), name="one_active_halt_of_a_user"
            ),
        ]

    def __str__(self) -> str:
        return f"halt {self.pk}"

    @property
    def whom(self) -> str:
        """What it halts, in words: an agent's handle, or whose agents, or whose asks."""
        if self.agent is not None:
            return str(self.agent)
        return f"{self.user}'s agents" if self.kind == self.Kind.OWNER else f"{self.user}'s questions"

"""Callers of an agent: what each may spend and spent, whom an owner does not answer, and the asks of a day."""

from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from agents.models.agent import MAX_BUDGET, Agent


class CallerBudget(models.Model):
    """The daily budget of one caller at one agent, and the part that is spent. The caller may be the account of a
    group: then the asks of all its members count, too.

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

"""What the directory sorts agents by, and the agents that users marked."""

from django.db import models
from django.utils import timezone

from accounts.models import User
from agents.models.agent import Agent


class AgentRank(models.Model):
    """The figures of an agent by which lists are sorted, as a job last counted them (`agents.core.ranking`).

    `asks`: accepted in the last 30 days. The others are of the agent's last answers; null without enough of them.
    """

    agent = models.OneToOneField(Agent, models.CASCADE, related_name="rank")
    asks = models.PositiveIntegerField(default=0)
    answered_percent = models.PositiveSmallIntegerField(null=True)
    rating_score = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="By thumbs of callers, of 1000: the lower bound of the share of thumbs up.",
    )
    latency_ms = models.PositiveIntegerField(null=True, help_text="The median.")
    ranked_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["ranked_at"], name="agent_rank_by_age")]

    def __str__(self) -> str:
        return f"rank of agent {self.agent_id}"


class Favourite(models.Model):
    """An agent that a user marked, to find it again."""

    user = models.ForeignKey(User, models.CASCADE, related_name="favourites", db_index=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="favourites")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "agent"], name="one_favourite_per_user_and_agent")]

    def __str__(self) -> str:
        return f"favourite {self.pk}"

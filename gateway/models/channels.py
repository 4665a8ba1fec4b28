"""Which processes hold clients that subscribed to the channels of a team."""

from django.db import models

from accounts.models import User
from agents.models import Process


class ChannelWatch(models.Model):
    """A process with subscribers of a team: frames for the team's channels are sent to it."""

    process = models.ForeignKey(Process, models.CASCADE, related_name="channel_watches")
    owner = models.ForeignKey(User, models.CASCADE, related_name="channel_watches")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "process"], name="one_watch_per_team_and_process")]

    def __str__(self) -> str:
        return f"watch {self.pk}"

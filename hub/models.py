"""The rows that the hub keeps about its own running."""

from django.db import models


class JobRun(models.Model):
    """The time when a job of this name was last done, by any process.

    An old time means that no process runs it.
    """

    SWEEP = "sweep"

    name = models.CharField(max_length=32, primary_key=True)
    ended_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.ended_at:%Y-%m-%d %H:%M:%S}"

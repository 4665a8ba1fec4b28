"""Ratings of answers by their callers."""

from django.core.validators import MaxLengthValidator
from django.db import models

from accounts.models import User
from agents.models.agent import Agent
from agents.models.turn import Turn

MAX_NOTE_CHARS = 1_000


class Rating(models.Model):
    """The thumb, up or down, that a caller gives to the answer of a turn, with a note for the agent's owner.

    `agent` and `caller` are those of the turn, repeated for their indexes. The database does not check `turn`, as
    in `ProblemNote`; a job deletes the ratings whose turn was deleted.
    """

    turn = models.OneToOneField(Turn, models.DO_NOTHING, related_name="rating", db_constraint=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="ratings", db_index=False)
    caller = models.ForeignKey(User, models.CASCADE, related_name="ratings")
    is_good = models.BooleanField(help_text="Thumb up; otherwise thumb down.")
    note = models.TextField(blank=True, validators=[MaxLengthValidator(MAX_NOTE_CHARS)])
    rated_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["agent", "rated_at"], name="rating_of_an_agent"),
            models.Index(fields=["agent", "is_good"], name="rating_by_thumb"),
        ]

    def __str__(self) -> str:
        return f"rating {self.pk}"

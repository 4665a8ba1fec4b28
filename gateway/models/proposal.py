"""Proposals of a team, and the votes on them."""

from django.db import models

from accounts.models import User


class Proposal(models.Model):
    """A proposal that members of a team vote on.

    `key`: its id on the wire: the correlation id, else the id of its frame; `alias`: the other of the two.
    `members`, `threshold`, `steward`: as they were when it was made. `steward` empty: no tie is broken.
    `carried`: what its frame had that the protocol does not name, by `content`, `metadata` and `extra`; passed on.
    `tie_broken_by`: the steward whose vote decided it. `awaits_decision`: the proposer's seat was not sent the
    decision yet. `home`: the process that holds the connection of a proposer without a seat.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        DELIBERATING = "deliberating"
        APPROVED = "approved"
        REJECTED = "rejected"
        BLOCKED = "blocked"
        ESCALATED = "escalated"

    owner = models.ForeignKey(User, models.CASCADE, related_name="proposals")
    key = models.CharField(max_length=128)
    alias = models.CharField(max_length=128, blank=True)
    proposer = models.CharField(max_length=160)
    text = models.TextField()
    reasoning = models.TextField(blank=True)
    category = models.CharField(max_length=32, blank=True)
    carried = models.JSONField(default=dict, blank=True)
    members = models.JSONField()
    steward = models.CharField(max_length=64, blank=True)
    threshold = models.CharField(max_length=13)
    state = models.CharField(max_length=12, choices=State, default=State.PENDING)
    has_consensus = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    deadline = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    tie_broken_by = models.CharField(max_length=64, blank=True)
    awaits_decision = models.BooleanField(default=False)
    home = models.CharField(max_length=64, blank=True)

    OPEN = (State.PENDING, State.DELIBERATING, State.ESCALATED)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "key"], name="one_proposal_per_key")]
        indexes = [
            models.Index(
                fields=["deadline"],
                condition=models.Q(state__in=["pending", "deliberating", "escalated"]),
                name="proposal_open_by_deadline",
            ),
            models.Index(fields=["owner", "created_at"], name="proposal_by_time"),
            models.Index(fields=["owner", "alias"], name="proposal_by_alias"),
            models.Index(
                fields=["owner", "proposer"],
                condition=models.Q(awaits_decision=True),
                name="proposal_awaits_decision",
            ),
        ]

    def __str__(self) -> str:
        return f"proposal {self.key}"


class Vote(models.Model):
    """A vote as it was sent. Of several of one member one `counts`; `is_late`: it came after the end."""

    proposal = models.ForeignKey(Proposal, models.CASCADE, related_name="votes")
    voter = models.CharField(max_length=64)
    vote = models.CharField(max_length=7)
    reasoning = models.TextField(blank=True)
    confidence = models.FloatField(null=True, blank=True)
    voted_at = models.DateTimeField()
    counts = models.BooleanField(default=True)
    is_late = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["proposal", "voter"], condition=models.Q(counts=True), name="one_vote_per_member_counts"
            )
        ]

    def __str__(self) -> str:
        return f"vote {self.pk} ({self.vote})"

"""A team: its agents, rules, proposals, the keys of its members, its subscribers, the audit of its frames."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from accounts.models import User
from agents.models import Process

MAX_VOTERS = 15
MAX_PEERS_NAMED = 100
MAX_FRAMES_KEPT_DAYS = 365
MAX_SESSION_HOURS = 24 * 365
HOUR_S = 3600
RULES = (  # the owner writes these
    *("queues_messages", "stores_told", "members", "steward", "breaks_ties", "threshold", "requires_signature"),
    *("session_ttl_s", "frames_kept_days"),
)


class TeamAgent(models.Model):
    """An agent of a team by its name.

    The row is made when the seat is first taken, or when the owner loads a team.

    `is_active`: enrolled. `status`: what the agent said of itself; it counts while the agent is connected.
    `may_send_to`, `may_hear_from`: names of peers; null: all of the team.
    """

    class Status(models.TextChoices):
        ONLINE = "online"
        IDLE = "idle"
        BUSY = "busy"
        ERROR = "error"

    owner = models.ForeignKey(User, models.CASCADE, related_name="team_agents")
    name = models.CharField(max_length=64)
    role = models.CharField(
        max_length=32, default="agent", help_text="As discovery shows it, such as triad-member or researcher."
    )
    is_active = models.BooleanField(
        "enrolled",
        default=True,
        help_text="An agent that is not enrolled is disconnected, and cannot come back.",
    )
    status = models.CharField(max_length=6, choices=Status, default=Status.ONLINE)
    status_at = models.DateTimeField(null=True, blank=True)
    config = models.JSONField(default=dict, blank=True)
    may_send_to = models.JSONField(null=True, blank=True)
    may_hear_from = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_team_agent_per_name")]

    def __str__(self) -> str:
        return self.name


def _default_members() -> list[str]:
    return ["alpha", "beta", "charlie"]


class TeamPolicy(models.Model):
    """The rules of an owner's team; without a row the defaults hold.

    `queues_messages`: messages without a `ttl` wait for an agent that is offline or busy, too. `stores_told`:
    messages that want no response are turns; if not, they pass between connected agents without a transcript.
    `members`: who votes on proposals. `steward`: who breaks ties, where `breaks_ties` is set.
    `session_ttl_s`: how long after its last entry a session takes new ones, null: for ever.
    """

    class Threshold(models.TextChoices):
        SIMPLE = "simple"
        SUPERMAJORITY = "supermajority"
        UNANIMOUS = "unanimous"

    owner = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="team_policy")
    queues_messages = models.BooleanField(
        "keep messages for agents that are offline or busy",
        default=False,
        help_text="Without this, only messages with a ttl wait.",
    )
    stores_told = models.BooleanField("keep messages that want no response in the transcript", default=True)
    members = models.JSONField(
        "voters",
        default=_default_members,
        help_text=f"The agents that vote on proposals, one on a line; at most {MAX_VOTERS}.",
    )
    steward = models.CharField("agent that breaks ties", max_length=64, default="steward", blank=True)
    breaks_ties = models.BooleanField(
        "an agent breaks ties", default=False, help_text="It is asked when the voters cannot decide."
    )
    threshold = models.CharField("votes that decide", max_length=13, choices=Threshold, default=Threshold.SIMPLE)
    requires_signature = models.BooleanField(
        "require signed frames", default=False, help_text="Frames without a valid signature are refused."
    )
    session_ttl_s = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(MAX_SESSION_HOURS * HOUR_S)]
    )
    frames_kept_days = models.PositiveSmallIntegerField(
        "days to keep records of frames",
        default=7,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_FRAMES_KEPT_DAYS)],
    )

    class Meta:
        verbose_name_plural = "team policies"

    def __str__(self) -> str:
        return f"team of user {self.pk}"


class EnvelopeKey(models.Model):
    """A shared secret of a team. `key_id`: its name in signatures. `secret`: sealed (`accounts.sealing`)."""

    owner = models.ForeignKey(User, models.CASCADE, related_name="envelope_keys")
    key_id = models.CharField(max_length=40, unique=True)
    name = models.CharField(max_length=100)
    secret = models.TextField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return self.key_id


class ChannelWatch(models.Model):
    """A process with subscribers of a team: frames for the team's channels are sent to it."""

    process = models.ForeignKey(Process, models.CASCADE, related_name="channel_watches")
    owner = models.ForeignKey(User, models.CASCADE, related_name="channel_watches")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "process"], name="one_watch_per_team_and_process")]

    def __str__(self) -> str:
        return f"watch {self.pk}"


class FrameRecord(models.Model):
    """One frame of a client: its addresses, type and sizes, never its content.

    `owner`: its team. `error_code`: 0 when it was served. `latency_ms`: until then.
    """

    owner = models.ForeignKey(User, models.CASCADE, related_name="frame_records")
    at = models.DateTimeField()
    message_id = models.CharField(max_length=128, blank=True)
    source = models.CharField(max_length=160)
    destination = models.CharField(max_length=160, blank=True)
    type = models.CharField(max_length=16)
    outcome = models.CharField(max_length=16)
    error_code = models.PositiveSmallIntegerField(default=0)
    bytes = models.PositiveIntegerField()
    latency_ms = models.PositiveIntegerField(default=0)
    session_id = models.CharField(max_length=128, blank=True)

    class Meta:
        indexes = [models.Index(fields=["owner", "at"], name="frame_record_by_time")]

    def __str__(self) -> str:
        return f"frame {self.pk} ({self.type})"


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

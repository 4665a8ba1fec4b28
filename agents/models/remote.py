"""A remote A2A server as an agent: where it is, how the hub identifies itself, and whether it answers."""

from datetime import datetime
from typing import Literal

from django.db import models

from accounts.models import User
from agents.models.session import Session

REMOTE_LINK = "remote"  # `Session.link` of sessions with a `RemoteServer`
MAX_URL_CHARS = 2048
MAX_SCHEME_CHARS = 32
MAX_ID_CHARS = 256
MAX_FAILURE_CHARS = 300
DIGEST_CHARS = 64
SWITCHES = (
    "tells_caller",
    "requires_task",
)  # columns of `RemoteServer` that are on or off; a change of them needs no look at the card


class RemoteServer(models.Model):
    """The far side of a session that has no socket: the hub calls it.

    `card_keys`: public JWKs that the owner pinned; one of them signed the card, or nothing is asked.

    The breaker is closed while `retry_at` is null, open until then, and half-open after: one call may try. Each
    change of the breaker is written to `Session.reachable_from` too (`agents.links.remote.server_state`). `opens`:
    how often in a row it opened. `card_digest`: of the approved card (`RemoteCard`); empty: the next card that is
    fetched is the approved one. `card_changed_at`: since when another one waits for the owner. `card_refusal`: why
    the card that was fetched last keeps the hub from asking.
    """

    session = models.OneToOneField(Session, models.CASCADE, related_name="remote")
    card_url = models.CharField(max_length=MAX_URL_CHARS)
    auth_scheme = models.CharField(max_length=MAX_SCHEME_CHARS, blank=True, help_text="Such as Bearer.")
    credentials = models.TextField(blank=True, editable=False, help_text="Sealed.")
    retry_at = models.DateTimeField(null=True, editable=False)
    opens = models.PositiveSmallIntegerField(default=0, editable=False)
    last_failure = models.CharField(max_length=MAX_FAILURE_CHARS, blank=True, editable=False)
    tells_caller = models.BooleanField(
        default=False, db_default=False, help_text="It is told who asks, by a JWT in each request."
    )
    requires_task = models.BooleanField(
        default=False, db_default=False, help_text="An answer that is a message, and no task, fails the question."
    )
    card_keys = models.JSONField(default=list, db_default=[], blank=True, editable=False)
    card_digest = models.CharField(max_length=DIGEST_CHARS, blank=True, default="", db_default="", editable=False)
    card_changed_at = models.DateTimeField(null=True, editable=False)
    card_refusal = models.CharField(
        max_length=MAX_FAILURE_CHARS, blank=True, default="", db_default="", editable=False
    )

    def __str__(self) -> str:
        return self.card_url

    def breaker(self, now: datetime) -> Literal["closed", "open", "half-open"]:
        """`closed`, `open` or `half-open`."""
        if self.retry_at is None:
            return "closed"
        return "open" if self.retry_at > now else "half-open"


class RemoteCard(models.Model):
    """The card by which the hub calls a server, as its owner approved it; and a changed one that waits for that.

    `kept_digest`: of a changed card that the owner saw and did not approve.
    """

    server = models.OneToOneField(RemoteServer, models.CASCADE, related_name="card")
    approved = models.JSONField()
    waiting = models.JSONField(null=True)
    waiting_digest = models.CharField(max_length=DIGEST_CHARS, blank=True)
    kept_digest = models.CharField(max_length=DIGEST_CHARS, blank=True)

    def __str__(self) -> str:
        return f"card of {self.server_id}"


class RemoteName(models.Model):
    """A remote server's name for a conversation of one caller, or for a task that waits for the caller's input."""

    class Kind(models.TextChoices):
        CONTEXT = "context"
        TASK = "task"

    server = models.ForeignKey(RemoteServer, models.CASCADE, related_name="names")
    caller = models.ForeignKey(User, models.CASCADE, related_name="remote_names")
    kind = models.CharField(max_length=7, choices=Kind)
    ours = models.CharField(max_length=MAX_ID_CHARS)
    theirs = models.CharField(max_length=MAX_ID_CHARS)
    used_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["server", "caller", "kind", "ours"], name="one_remote_name_each"),
        ]
        indexes = [models.Index(fields=["used_at"], name="remote_name_by_use")]

    def __str__(self) -> str:
        return f"{self.kind} {self.ours}"

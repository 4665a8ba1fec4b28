"""Tables of the bridge."""

from typing import Any, ClassVar
from uuid import uuid4

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import Membership, User
from agents.models import Agent
from kit.clock import db_now
from kit.full_text import PLACE, TEXT, FullText
from webhooks.models import MAX_URL_CHARS, Sendable

MAX_TITLE_CHARS = 200
THREAD_WORDS = FullText(  # as the last `AddFullText` of the migrations has it
    "a2a_bridge_threadtask", {"whose": PLACE, "question": TEXT, "answer": TEXT}
)


class SendKey(models.Model):
    """An `Idempotency-Key` that a caller sent with a message: the turn that the message began, and its result.

    `result` is the task as it was at the end of that turn, as JSON; empty until then. `is_plain`: nothing but a
    reply came of it.
    """

    caller = models.ForeignKey(User, models.CASCADE, related_name="send_keys")
    handle = models.CharField(max_length=160)
    key = models.CharField(max_length=64, help_text="The key's digest.")
    body = models.CharField(max_length=32, help_text="The digest of the message.")
    task_id = models.CharField(max_length=64)
    chat_id = models.CharField(max_length=64)
    result = models.TextField(blank=True, default="")
    is_plain = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["caller", "handle", "key"], name="one_send_per_key"),
        ]
        indexes = [models.Index(fields=["created_at"], name="send_key_by_age")]

    def __str__(self) -> str:
        return f"send key {self.pk}"


class StoredTask(models.Model):
    """A task in the database journal: its latest snapshot, the columns of searches, and the seq of its last event.

    `snapshot` is JSON in the form of `schema_version` (`tasks.stored`): the task as it was at `snapshot_seq`; what
    happened since is in its events. SQL writes it (`tasks.journal_rows`), its end in the transaction that settles.
    A task that `is_message` is only read as part of its thread.
    """

    id = models.CharField(max_length=64, primary_key=True)
    caller = models.ForeignKey(User, models.CASCADE, related_name="stored_tasks", db_index=False)
    handle = models.CharField(max_length=160, help_text="The agent's, as it was asked.")
    context_id = models.TextField()
    chat_id = models.CharField(max_length=64, help_text="Of its last turn.")
    home = models.CharField(max_length=32, help_text="The process of that turn.")
    state = models.CharField(max_length=16)
    has_ended = models.BooleanField()
    updated_at = models.DateTimeField(help_text="When its state was set.")
    seq = models.PositiveIntegerField(help_text="Of its last event.")
    snapshot = models.TextField()
    snapshot_seq = models.PositiveIntegerField()
    snapshot_bytes = models.PositiveIntegerField()
    events_bytes = models.PositiveIntegerField()
    schema_version = models.PositiveSmallIntegerField()
    is_message = models.BooleanField(
        default=False, db_default=False, help_text="Its caller got the answer as a message, and no task."
    )
    is_indexed = models.BooleanField(
        default=False, db_default=False, help_text="Its thread has the words of its last snapshot."
    )

    class Meta:
        indexes = [
            models.Index(fields=["caller"], condition=Q(is_indexed=False), name="stored_task_to_index"),
            models.Index(fields=["caller", "handle", "-updated_at"], name="stored_task_by_caller"),
            models.Index(fields=["updated_at"], name="stored_task_by_age"),
        ]

    def __str__(self) -> str:
        return self.id


class StoredEvent(models.Model):
    """An event of a task in the journal: JSON of a `a2a_bridge.wire.task.TaskEvent`, never changed."""

    task = models.ForeignKey(StoredTask, models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveIntegerField()
    body = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "seq"], name="one_event_per_seq_of_a_task")]

    def __str__(self) -> str:
        return f"{self.task_id}.{self.seq}"


class Thread(models.Model):
    """A conversation: the tasks of one A2A context of one caller at one agent, as the journal keeps them.

    A thread begins with the first task that is read into it (`a2a_bridge.service.threads`), and is deleted with
    its last task. `title` is the beginning of the first question until its caller gives it another.
    """

    public_id = models.UUIDField(default=uuid4, unique=True, editable=False, help_text="Its id in addresses.")
    caller = models.ForeignKey(User, models.CASCADE, related_name="threads", db_index=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="threads", db_index=False)
    context_id = models.TextField(help_text="The A2A context that its tasks have in common.")
    title = models.CharField(max_length=MAX_TITLE_CHARS)
    began_at = models.DateTimeField(help_text="When its first question was asked.")
    last_asked_at = models.DateTimeField(help_text="When its last question was asked.")
    archived_at = models.DateTimeField(null=True, help_text="When its caller took it out of the list.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["caller", "agent", "context_id"], name="one_thread_per_context"),
        ]
        indexes = [
            models.Index(fields=["caller", "-last_asked_at", "-id"], name="thread_by_caller"),
            models.Index(fields=["agent"], name="thread_by_agent"),
        ]

    def __str__(self) -> str:
        return f"thread {self.public_id}"


class ThreadTask(models.Model):
    """A task of a thread, with the words by which searches find the task.

    `whose`: a word for the caller, so that the index of words finds the rows of one caller alone.
    """

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="tasks", db_index=False)
    task = models.OneToOneField(StoredTask, models.CASCADE, related_name="of_thread")
    asked_at = models.DateTimeField(help_text="When its first question was asked.")
    whose = models.CharField(max_length=24)
    question = models.TextField(help_text="The searched text of its questions.")
    answer = models.TextField(help_text="The searched text of its answers.")

    full_text: ClassVar = THREAD_WORDS

    class Meta:
        indexes = [models.Index(fields=["thread", "asked_at", "id"], name="task_of_a_thread")]

    def __str__(self) -> str:
        return f"task of thread {self.thread_id}"


class RecordedExchange(models.Model):
    """A request that asked an agent, and its response, as they were sent but without secrets.

    Rows are written after the response by a `BatchWriter` (`a2a_bridge.service.exchange_log`), so a row may be
    missing. Long bodies are cut: `request_bytes` and `response_bytes` count what was sent.
    """

    chat_id = models.CharField(max_length=64, help_text="Of the turn that the request began or joined.")
    caller = models.ForeignKey(User, models.CASCADE, related_name="recorded_exchanges", db_index=False)
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, related_name="recorded_exchanges")
    protocol = models.CharField(max_length=64, help_text="The version and binding, such as A2A 1.0 over JSON-RPC.")
    method = models.CharField(max_length=8, help_text="Of HTTP.")
    path = models.TextField(help_text="Without the query.")
    request_headers = models.TextField(help_text="JSON: those of a list of names that hold no secrets.")
    request_body = models.TextField(blank=True)
    request_bytes = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(help_text="Of HTTP; 0: the client left before a response began.")
    response_headers = models.TextField(help_text="JSON: those of a list of names that hold no secrets.")
    response_body = models.TextField(blank=True, help_text="Of a long stream the first and the last frames.")
    response_bytes = models.PositiveIntegerField()
    frames = models.PositiveIntegerField(default=0, help_text="Of a stream; 0: the response is no stream.")
    received_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["chat_id"], name="exchange_by_ask"),
            models.Index(fields=["caller", "-id"], name="exchange_by_caller"),
            models.Index(fields=["received_at"], name="exchange_by_age"),
        ]

    def __str__(self) -> str:
        return f"exchange {self.pk}"


class PushConfig(models.Model):
    """One address of one task. `sealed`: what each POST carries besides (`a2a_bridge.service.push_configs`).

    `chat_id`: the task's last turn, as far as this row knows. `ended_seq`: the event of the task's end, once that
    is queued; null while more may come. `touched_at`: when something was last written here.
    """

    task_id = models.CharField(max_length=64)
    config_id = models.CharField(max_length=128)
    caller = models.ForeignKey(User, models.CASCADE, related_name="push_configs")
    context_id = models.CharField(max_length=128)
    chat_id = models.CharField(max_length=64)
    url = models.CharField(max_length=MAX_URL_CHARS)
    sealed = models.TextField(help_text="Token, scheme and credentials, sealed.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    touched_at = models.DateTimeField()
    ended_seq = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task_id", "config_id"], name="a_task_has_one_push_config_by_an_id")
        ]
        indexes = [
            models.Index(fields=["chat_id"], condition=Q(ended_seq=None), name="push_config_of_an_open_turn"),
            models.Index(fields=["touched_at"], name="push_config_by_age"),
        ]

    def __str__(self) -> str:
        return f"push config {self.pk}"


class Push(Sendable):
    """One event of a task for one address. `seq` is the event's: they go out in this order, one by one."""

    config = models.ForeignKey(PushConfig, models.CASCADE, related_name="pushes", db_index=False)
    seq = models.PositiveIntegerField()

    class Meta:
        verbose_name_plural = "pushes"
        constraints = [
            models.UniqueConstraint(fields=["config", "seq"], name="an_event_is_pushed_once_to_an_address"),
            models.CheckConstraint(
                condition=~Q(status__in=["pending", "sending"]) | Q(next_attempt_at__isnull=False),
                name="an_unsettled_push_is_tried_again",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["next_attempt_at"], condition=Q(status__in=["pending", "sending"]), name="push_due"
            ),
            models.Index(fields=["queued_at"], name="push_by_age"),
        ]

    def __str__(self) -> str:
        return f"push {self.pk}"


class AnswerShareQuerySet(models.QuerySet["AnswerShare"]):
    def open(self) -> "AnswerShareQuerySet":
        """The shares that show their answer now: not expired, and still allowed by the agent's owner."""
        return self.filter(
            expires_at__gt=db_now(),
            agent__caller_sharing=True,
            agent__deleted_at=None,
            agent__owner__is_active=True,
            owner__is_active=True,
        )

    def shared_with(self, user_id: int) -> "AnswerShareQuerySet":
        """What others share with this user: by name, by a group, or with everyone who is signed in."""
        groups = Membership.objects.asking().filter(user=user_id).values("group")
        is_for = Q(user=user_id) | Q(user__in=groups) | Q(audience=AnswerShare.Audience.EVERYONE)
        return self.filter(is_for).exclude(owner=user_id)


class AnswerShare(models.Model):
    """An answer, or all answers of a thread, that the caller shows to others with the questions (docs/adr/0194).

    `content` is a copy, made when the answer was shared: JSON, a list of tasks of A2A 1.0 (`wire.shared`). The row
    is deleted when its owner ends the share, or deletes the thread. `title`: the beginning of the question.
    """

    class Audience(models.TextChoices):
        USER = "user", "one user"
        GROUP = "group", "a group"
        EVERYONE = "everyone", "everyone who is signed in"
        LINK = "link", "everyone who has the link"

    owner = models.ForeignKey(User, models.CASCADE, related_name="answer_shares", db_index=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="answer_shares")
    task_id = models.CharField(max_length=64, blank=True, help_text="Blank of a thread.")
    context_id = models.TextField(help_text="The A2A context of the task or thread.")
    audience = models.CharField(max_length=8, choices=Audience)
    user = models.ForeignKey(
        User,
        models.CASCADE,
        null=True,
        related_name="answers_shown",
        db_index=False,
        help_text="The user who may read it, or the account of the group.",
    )
    digest = models.CharField(max_length=64, null=True, unique=True, help_text="Of the link.")  # noqa: DJ001
    title = models.CharField(max_length=200)
    content = models.TextField()
    content_bytes = models.PositiveIntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    objects: ClassVar[Any] = AnswerShareQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "agent", "context_id", "task_id", "user"],
                condition=Q(audience__in=["user", "group"]),
                name="an_answer_is_shared_once_with_a_user",
            ),
            models.UniqueConstraint(
                fields=["owner", "agent", "context_id", "task_id"],
                condition=Q(audience="everyone"),
                name="an_answer_is_shared_once_with_everyone",
            ),
            models.CheckConstraint(
                condition=Q(audience__in=["user", "group"], user__isnull=False, digest=None)
                | Q(audience="everyone", user=None, digest=None)
                | Q(audience="link", user=None, digest__isnull=False),
                name="an_answer_share_names_its_audience",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="answer_share_by_owner"),
            models.Index(fields=["user", "-id"], condition=Q(user__isnull=False), name="answer_share_by_user"),
            models.Index(fields=["-id"], condition=Q(audience="everyone"), name="answer_share_with_everyone"),
            models.Index(fields=["expires_at"], name="answer_share_by_expiry"),
        ]

    def __str__(self) -> str:
        return f"answer share {self.pk}"

    @property
    def is_of_thread(self) -> bool:
        """True if the share shows a whole thread."""
        return not self.task_id

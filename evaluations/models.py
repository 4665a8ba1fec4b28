"""Tables of saved questions: a set and its questions, its runs, and the result of each question in a run."""

from typing import Any, ClassVar

from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from agents.models import Agent

MAX_NAME_CHARS = 80
MAX_HANDLE_CHARS = 160
MAX_TEXT_CHARS = 8_000
MAX_EXPECTATION_CHARS = 8_000
MAX_DAILY_BUDGET = 10_000
MAX_ANSWER_CHARS = 4_000
MAX_DETAIL_CHARS = 500
MAX_VERSION_CHARS = 40
DIGEST_CHARS = 64


class QuestionSetQuerySet(models.QuerySet["QuestionSet"]):
    def kept(self) -> "QuestionSetQuerySet":
        """The sets of agents that are not deleted; those of a deleted agent come back with it."""
        return self.filter(agent__deleted_at=None)

    def owned_by(self, owner: User) -> "QuestionSetQuerySet":
        """The sets of this owner's agents, without deleted agents."""
        return self.kept().filter(agent__owner=owner)


class QuestionSet(models.Model):
    """Questions to one agent, whose owner is their caller.

    `due_at`: when the schedule starts the next run; null without a schedule. `card_digest`: of the agent's card
    when a run last began, or when the set was made. `asks_spent` of the budget were asked on `spent_on`, in UTC.
    """

    class Schedule(models.TextChoices):
        OFF = "off", "never"
        HOURLY = "hourly", "every hour"
        DAILY = "daily", "every day"
        WEEKLY = "weekly", "every week"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="question_sets")
    name = models.CharField(max_length=MAX_NAME_CHARS)
    schedule = models.CharField("runs by itself", max_length=6, choices=Schedule, default=Schedule.OFF)
    runs_on_new_card = models.BooleanField(
        "runs when the card changes",
        default=False,
        help_text="Once for each new version of the agent’s card, or of the remote card that you approved.",
    )
    daily_budget = models.PositiveIntegerField(
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_DAILY_BUDGET)],
        help_text="Asks of this set on one UTC day; a judged question is two. Questions beyond it are left out.",
    )
    due_at = models.DateTimeField(null=True, editable=False)
    card_digest = models.CharField(max_length=DIGEST_CHARS, blank=True, editable=False)
    spent_on = models.DateField(null=True, editable=False)
    asks_spent = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[Any] = QuestionSetQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "name"], name="one_question_set_per_name")]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="question_set_due"),
            models.Index(fields=["id"], condition=Q(runs_on_new_card=True), name="question_set_on_new_card"),
        ]

    def __str__(self) -> str:
        return self.name


class SavedQuestion(models.Model):
    """One question of a set, and the property that its answer is expected to have.

    `revised_at`: results from before it are of another question, or of another expectation.
    """

    class Property(models.TextChoices):
        CONTAINS = "contains", "contains a text"
        MATCHES = "matches", "matches a regular expression"
        JSON_SCHEMA = "json_schema", "is JSON of a schema"
        JUDGED = "judged", "is judged by another agent"

    question_set = models.ForeignKey(QuestionSet, models.CASCADE, related_name="questions", db_index=False)
    position = models.PositiveSmallIntegerField(editable=False)
    text = models.TextField("question", validators=[MaxLengthValidator(MAX_TEXT_CHARS)])
    expected = models.CharField("the answer", max_length=11, choices=Property, default=Property.CONTAINS)
    expectation = models.TextField(
        validators=[MaxLengthValidator(MAX_EXPECTATION_CHARS)],
        help_text="The text, in any case; the expression, in the syntax of RE2; the JSON Schema; or what a good"
        " answer says, for the judge.",
    )
    judge = models.CharField(
        max_length=MAX_HANDLE_CHARS,
        blank=True,
        help_text="Of a judged answer: the agent that is asked whether the answer is as expected, as owner/name.",
    )
    revised_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        indexes = [models.Index(fields=["question_set", "position", "id"], name="question_of_a_set")]

    def __str__(self) -> str:
        return f"saved question {self.pk}"


class EvaluationRun(models.Model):
    """The questions of a set, asked once each. A set has at most one run that has not ended.

    `card_version`: what a remote card calls its version; empty for others.
    """

    class Cause(models.TextChoices):
        BY_HAND = "by_hand", "by hand"
        CARD = "card", "new card"
        SCHEDULE = "schedule", "on schedule"

    question_set = models.ForeignKey(QuestionSet, models.CASCADE, related_name="runs", db_index=False)
    cause = models.CharField(max_length=8, choices=Cause)
    card_digest = models.CharField(max_length=DIGEST_CHARS)
    card_version = models.CharField(max_length=MAX_VERSION_CHARS, blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    is_stopped = models.BooleanField(default=False, help_text="Its owner stopped it.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["question_set"], condition=Q(ended_at=None), name="one_open_run_per_question_set"
            )
        ]
        indexes = [
            models.Index(fields=["question_set", "-started_at", "-id"], name="run_of_a_question_set"),
            models.Index(fields=["started_at"], name="run_by_age"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def version(self) -> str:
        """A short name of the card's version."""
        return self.card_version or self.card_digest[:8]


class EvaluationResult(models.Model):
    """What came of one question in a run; a row of an outbox until it is asked (`kit.outbox`).

    `asked`, `judged`: the chat ids of the asks; empty without one. `answer`: its beginning.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        PASSED = "passed"
        NOT_PASSED = "not_passed", "not passed"
        FAILED = "failed"
        LEFT_OUT = "left_out", "left out"

    run = models.ForeignKey(EvaluationRun, models.CASCADE, related_name="results", db_index=False)
    question = models.ForeignKey(SavedQuestion, models.CASCADE, related_name="results")
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    asked = models.CharField(max_length=64, blank=True)
    judged = models.CharField(max_length=64, blank=True)
    answer = models.TextField(blank=True)
    detail = models.CharField(max_length=MAX_DETAIL_CHARS, blank=True)
    ended_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "question"], name="one_result_per_question_of_a_run"),
            models.CheckConstraint(
                condition=~Q(state="waiting") | Q(next_attempt_at__isnull=False),
                name="a_waiting_result_is_asked_again",
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=Q(state="waiting"), name="evaluation_result_due"),
        ]

    def __str__(self) -> str:
        return f"result {self.pk}"

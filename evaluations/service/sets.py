"""Changes sets of questions: makes, revises and deletes sets, and writes their questions."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction

from a2a_bridge.surface.cards import common
from accounts.models import User
from agents.core.directory import find_askable
from agents.models import Agent, RemoteCard
from evaluations import limits, settings
from evaluations.models import MAX_VERSION_CHARS, QuestionSet, SavedQuestion
from evaluations.service.completion import end_if_complete, lock_open_run
from evaluations.service.properties import Property, check_expectation
from kit.clock import db_now

EVERY = {
    QuestionSet.Schedule.HOURLY.value: timedelta(hours=1),
    QuestionSet.Schedule.DAILY.value: timedelta(days=1),
    QuestionSet.Schedule.WEEKLY.value: timedelta(days=7),
}
WRITTEN = ("text", "expected", "expectation", "judge", "revised_at")
SETTINGS = ("name", "schedule", "runs_on_new_card", "daily_budget")  # columns that owners write


class NameTaken(Exception):
    """The agent has another set of this name."""

    def __init__(self) -> None:
        super().__init__("the agent has a set of this name already")


class NoSuchQuestion(Exception):
    """The set has no such question."""

    def __init__(self) -> None:
        super().__init__("no such question in the set")


class BadJudge(ValueError):
    """The agent cannot judge answers of the set; the text says why."""


class CardVersion(NamedTuple):
    """The version of an agent's card: a digest of what it says, and what a remote card calls its version."""

    digest: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionDraft:
    """A question as its owner wrote it. `question_id`: the question that it changes; None: a new one."""

    text: str
    expected: str
    expectation: str
    judge: str = ""
    question_id: int | None = None


def read_card_version(agent: Agent) -> CardVersion:
    """The version of the card that callers of an agent read, and of the remote card that its owner approved."""
    remote = RemoteCard.objects.filter(server__session=agent.session_id).values_list("approved", flat=True).first()
    facts = [common(agent, settings.PUBLIC_URL), remote]
    named = remote.get("version") if isinstance(remote, dict) else None
    name = named if isinstance(named, str) and named.isprintable() else ""
    return CardVersion(
        hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest(), name[:MAX_VERSION_CHARS]
    )


def check_question(owner: User, agent: Agent, draft: QuestionDraft) -> None:
    """Check a question before it is stored.

    Raises:
        BadExpectation: no answer can be checked by it.
        BadJudge: its judge is missing, cannot be asked by the owner, or is the agent itself.
    """
    check_expectation(draft.expected, draft.expectation)
    if draft.expected != Property.JUDGED:
        return
    judge = find_askable(draft.judge, owner.pk) if draft.judge.isprintable() else None
    if judge is None:
        raise BadJudge("want the handle of an agent that you may ask, as owner/name")
    if judge.pk == agent.pk:
        raise BadJudge("an agent does not judge its own answers: want another agent")


@transaction.atomic
def create_set(
    owner: User, agent: Agent, columns: Mapping[str, Any], drafts: Sequence[QuestionDraft] = ()
) -> QuestionSet:
    """Make a set of questions for an agent of the owner. `columns`: of SETTINGS; `drafts` were checked.

    Raises:
        NameTaken, QuotaExceeded: nothing was written.
    """
    limits.QUESTION_SETS.check(owner.pk)
    made = QuestionSet(agent=agent, card_digest=read_card_version(agent).digest, **columns)
    made.due_at = next_due(made.schedule, db_now())
    _save(made)
    replace_questions(made, drafts)
    return made


@transaction.atomic
def revise_set(
    question_set: QuestionSet, columns: Mapping[str, Any], drafts: Sequence[QuestionDraft] | None = None
) -> None:
    """Change settings of a set, and with `drafts` all of its questions.

    Raises:
        NameTaken, NoSuchQuestion, QuotaExceeded: nothing was written.
    """
    now = db_now()
    locked = QuestionSet.objects.select_for_update(no_key=True).filter(pk=question_set.pk).first()
    if locked is None:
        return
    if columns.get("schedule", locked.schedule) != locked.schedule:
        columns = {**columns, "due_at": next_due(columns["schedule"], now)}
    if columns.get("runs_on_new_card") and not locked.runs_on_new_card:  # changes of the past start no run
        columns = {**columns, "card_digest": read_card_version(question_set.agent).digest}
    for name, value in columns.items():
        setattr(locked, name, value)
    if columns:
        _save(locked, [*columns])
    if drafts is not None:
        replace_questions(locked, drafts)


def replace_questions(question_set: QuestionSet, drafts: Sequence[QuestionDraft]) -> None:
    """Make these the questions of a set, in this order. A question that is not among them goes with its results;
    an open run that waited for no other ends. The calling transaction has locked the set.

    Raises:
        NoSuchQuestion, QuotaExceeded: the calling function's transaction is to be rolled back.
    """
    limits.QUESTIONS.check_number(0, len(drafts))
    known = {one.pk: one for one in question_set.questions.all()}
    kept = [one.question_id for one in drafts if one.question_id is not None]
    if len(kept) != len(set(kept)) or not set(kept) <= set(known):
        raise NoSuchQuestion
    if not set(known) <= set(kept):
        _delete(question_set, set(known) - set(kept))
    now, made = db_now(), []
    for position, draft in enumerate(drafts):
        question = known[draft.question_id] if draft.question_id is not None else None
        question = question or SavedQuestion(question_set=question_set)
        if _write(question, draft):
            question.revised_at = now
        question.position = position
        made.append(question)
    SavedQuestion.objects.bulk_create([one for one in made if one.pk not in known])
    SavedQuestion.objects.bulk_update([one for one in made if one.pk in known], [*WRITTEN, "position"])


@transaction.atomic
def add_question(question_set: QuestionSet, draft: QuestionDraft) -> SavedQuestion:
    """Add a question that was checked at the end of a set.

    Raises:
        QuotaExceeded: the set has as many questions as it may have.
    """
    list(QuestionSet.objects.select_for_update(no_key=True).filter(pk=question_set.pk).values_list("pk"))
    held = list(question_set.questions.order_by("-position").values_list("position", flat=True))
    limits.QUESTIONS.check_number(len(held))
    question = SavedQuestion(question_set=question_set, position=held[0] + 1 if held else 0)
    _write(question, draft)
    question.save()
    return question


def revise_question(question: SavedQuestion, draft: QuestionDraft) -> None:
    """Change a question to a draft that was checked. Results from before are shown as outdated."""
    if _write(question, draft):
        question.revised_at = db_now()
        question.save(update_fields=WRITTEN)


@transaction.atomic
def delete_question(question: SavedQuestion) -> None:
    """Delete a question with its results. An open run that waited for no other ends."""
    list(QuestionSet.objects.select_for_update(no_key=True).filter(pk=question.question_set_id).values_list("pk"))
    _delete(question.question_set, {question.pk})


def next_due(schedule: str, after: datetime) -> datetime | None:
    """When a schedule that starts now first runs; None without a schedule."""
    return after + EVERY[schedule] if schedule in EVERY else None


def _delete(question_set: QuestionSet, question_ids: Collection[int]) -> None:
    """Delete questions of a set. The run is locked before its results, as where a result is stored."""
    open_run = lock_open_run(question_set.pk)
    question_set.questions.filter(pk__in=question_ids).delete()
    if open_run is not None:
        end_if_complete(open_run)


def _write(question: SavedQuestion, draft: QuestionDraft) -> bool:
    """Write a draft into a question; True if that changed it."""
    judge = draft.judge if draft.expected == Property.JUDGED else ""
    wanted = (draft.text, draft.expected, draft.expectation, judge)
    has_changed = (question.text, question.expected, question.expectation, question.judge) != wanted
    question.text, question.expected, question.expectation, question.judge = wanted
    return has_changed


def _save(question_set: QuestionSet, columns: Sequence[str] | None = None) -> None:
    try:
        with transaction.atomic():
            question_set.save(update_fields=columns)
    except IntegrityError:
        raise NameTaken from None

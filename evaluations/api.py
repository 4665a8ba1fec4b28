"""REST views of sets of saved questions, for the owner of the agent; those of runs are in `run_api`."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Body, Conflict, caller_of
from agents.models import Agent
from evaluations import limits
from evaluations.models import (
    MAX_DAILY_BUDGET,
    MAX_EXPECTATION_CHARS,
    MAX_HANDLE_CHARS,
    MAX_NAME_CHARS,
    MAX_TEXT_CHARS,
    QuestionSet,
    SavedQuestion,
)
from evaluations.run_api import ApiRun, get_own_set, show_run
from evaluations.service import reading, runs, sets
from evaluations.service.properties import BadExpectation
from evaluations.service.reading import ShownRun
from evaluations.service.sets import BadJudge, NameTaken, NoSuchQuestion, QuestionDraft
from kit.clock import iso
from kit.describe import ErrorBody, Page, Time
from kit.rows import show_each

LISTED = 100
MAX_CHECK_S = 2.0  # of CPU, for all questions of a body
TOO_LONG = "checking the expectations so far took too long: want simpler schemas, or fewer of them in the set"

Property = Literal["contains", "matches", "json_schema", "judged"]


class ApiSavedQuestion(TypedDict):
    """A question with the property that its answer is expected to have. `judge`: of a judged answer."""

    id: int
    text: str
    expected: Property
    expectation: str
    judge: str


class ApiQuestionSet(TypedDict):
    """A set of questions to an agent of yours. `asksToday`: of `dailyBudget`; `latestRun`: null without a run."""

    id: int
    agent: str
    name: str
    schedule: Literal["off", "hourly", "daily", "weekly"]
    runsOnNewCard: bool
    dailyBudget: int
    asksToday: int
    nextRunAt: Time | None
    questions: int
    latestRun: ApiRun | None


class ApiWholeQuestionSet(TypedDict):
    """A set with its questions, in their order."""

    id: int
    agent: str
    name: str
    schedule: Literal["off", "hourly", "daily", "weekly"]
    runsOnNewCard: bool
    dailyBudget: int
    asksToday: int
    nextRunAt: Time | None
    questions: list[ApiSavedQuestion]
    latestRun: ApiRun | None


class QuestionBody(Body):
    """A question. `id`: of a question of the set that it changes; without it the question is new."""

    id = serializers.IntegerField(required=False, min_value=1)
    text = serializers.CharField(max_length=MAX_TEXT_CHARS)
    expected = serializers.ChoiceField(choices=SavedQuestion.Property.values)
    expectation = serializers.CharField(max_length=MAX_EXPECTATION_CHARS, trim_whitespace=False)
    judge = serializers.CharField(default="", allow_blank=True, max_length=MAX_HANDLE_CHARS + 1)


class QuestionSetBody(Body):
    """The settings of a set, and its questions."""

    name = serializers.CharField(max_length=MAX_NAME_CHARS)
    schedule = serializers.ChoiceField(choices=QuestionSet.Schedule.values, default=QuestionSet.Schedule.OFF)
    runsOnNewCard = serializers.BooleanField(default=False, source="runs_on_new_card")
    dailyBudget = serializers.IntegerField(
        default=100, min_value=1, max_value=MAX_DAILY_BUDGET, source="daily_budget"
    )
    questions = QuestionBody(many=True, required=False)

    def to_internal_value(self, data: Any) -> Any:
        """Refuse too many questions before any of them is read."""
        given = data.get("questions") if isinstance(data, Mapping) else None
        if isinstance(given, list):
            limits.QUESTIONS.check_number(0, len(given))
        return super().to_internal_value(data)


class NewQuestionSet(QuestionSetBody):
    """The body of POST. `agent`: the handle of one of your agents."""

    agent = serializers.CharField(max_length=MAX_HANDLE_CHARS + 1)


class QuestionSetQuery(PageQuery):
    """The sets to list."""

    agent = serializers.CharField(required=False, max_length=MAX_HANDLE_CHARS, source="agent__handle_key")

    def validate_agent(self, handle: str) -> str:
        """The handle as it is compared: in lower case, without its @."""
        return handle.removeprefix("@").lower()


class QuestionSets(APIView):
    """`/evaluations`"""

    @extend_schema(parameters=[QuestionSetQuery], responses=Page[ApiQuestionSet])
    def get(self, request: Request) -> Response:
        """The sets of questions of your agents, by agent and name."""
        own = QuestionSet.objects.owned_by(caller_of(request)).filter(**read_filters(QuestionSetQuery, request))
        ordered = own.select_related("agent").order_by("agent__handle_key", "name", "pk")
        return page(request, ordered, _show_sets, QuestionSetQuery, most=LISTED)

    @extend_schema(request=NewQuestionSet, responses={201: ApiWholeQuestionSet, 409: ErrorBody})
    def post(self, request: Request) -> Response:
        """Make a set of questions for one of your agents. You are the caller of its asks."""
        owner = caller_of(request)
        columns = dict(NewQuestionSet.read(request).validated_data)
        handle = columns.pop("agent").removeprefix("@").lower()
        agent = Agent.objects.kept().owned_by(owner).select_related("session").filter(handle_key=handle).first()
        if agent is None:
            raise serializers.ValidationError({"agent": "want the handle of an agent of yours"})
        drafts = _read_drafts(owner, agent, columns.pop("questions", []))
        try:
            made = sets.create_set(owner, agent, columns, drafts)
        except NameTaken as taken:
            raise Conflict(str(taken)) from None
        except NoSuchQuestion as absent:
            raise serializers.ValidationError({"questions": str(absent)}) from None
        return Response(_show_whole(made), status=201)


class OneQuestionSet(APIView):
    """`/evaluations/{id}`"""

    @extend_schema(responses={200: ApiWholeQuestionSet, 404: ErrorBody})
    def get(self, request: Request, set_id: int) -> Response:
        """A set of questions of one of your agents."""
        return Response(_show_whole(get_own_set(set_id, caller_of(request))))

    @extend_schema(
        request=QuestionSetBody(partial=True), responses={200: ApiWholeQuestionSet, 404: ErrorBody, 409: ErrorBody}
    )
    def patch(self, request: Request, set_id: int) -> Response:
        """Change settings of the set, or all of its questions.

        `questions` are all questions from now on, in this order; those left out are deleted with their results.
        """
        owner = caller_of(request)
        question_set = get_own_set(set_id, owner)
        columns = dict(QuestionSetBody.read(request, partial=True).validated_data)
        given = columns.pop("questions", None)
        drafts = None if given is None else _read_drafts(owner, question_set.agent, given)
        try:
            sets.revise_set(question_set, columns, drafts)
        except NameTaken as taken:
            raise Conflict(str(taken)) from None
        except NoSuchQuestion as absent:
            raise serializers.ValidationError({"questions": str(absent)}) from None
        return Response(_show_whole(get_own_set(set_id, owner)))

    @extend_schema(responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, set_id: int) -> Response:
        """Delete the set with its questions and runs. The asks stay in the audit."""
        get_own_set(set_id, caller_of(request)).delete()
        return Response(status=204)


def _read_drafts(owner: User, agent: Agent, given: Sequence[Mapping[str, Any]]) -> list[QuestionDraft]:
    """The questions of a body.

    Raises:
        ValidationError: one of them is not sound; the error says which.
    """
    drafts = []
    ends_at = time.thread_time() + MAX_CHECK_S
    for number, one in enumerate(given):
        if time.thread_time() > ends_at:
            raise serializers.ValidationError({f"questions[{number}].expectation": TOO_LONG})
        draft = QuestionDraft(
            text=one["text"],
            expected=one["expected"],
            expectation=one["expectation"],
            judge=one["judge"].removeprefix("@"),
            question_id=one.get("id"),
        )
        try:
            sets.check_question(owner, agent, draft)
        except (BadExpectation, BadJudge) as bad:
            name = "judge" if isinstance(bad, BadJudge) else "expectation"
            raise serializers.ValidationError({f"questions[{number}].{name}": str(bad)}) from None
        drafts.append(draft)
    return drafts


def _show_sets(found: Sequence[QuestionSet]) -> list[ApiQuestionSet]:
    ids = [one.pk for one in found]
    counts, latest = reading.count_questions(ids), reading.latest_runs(ids)
    return [_show_set(one, latest.get(one.pk), questions=counts.get(one.pk, 0)) for one in found]


def _show_whole(one: QuestionSet) -> ApiWholeQuestionSet:
    questions = show_each(ApiSavedQuestion)(one.questions.order_by("position", "pk"))
    one.refresh_from_db()
    shown: ApiWholeQuestionSet = _show_set(one, reading.latest_runs([one.pk]).get(one.pk), questions=questions)
    return shown


def _show_set(one: QuestionSet, latest: ShownRun | None, *, questions: Any) -> Any:
    return {
        "id": one.pk,
        "agent": one.agent.handle,
        "name": one.name,
        "schedule": one.schedule,
        "runsOnNewCard": one.runs_on_new_card,
        "dailyBudget": one.daily_budget,
        "asksToday": runs.asks_today(one),
        "nextRunAt": iso(one.due_at) if one.due_at else None,
        "questions": questions,
        "latestRun": show_run(latest) if latest else None,
    }


urlpatterns = [
    path("evaluations", QuestionSets.as_view(), name="evaluations-api"),
    path("evaluations/<int:set_id>", OneQuestionSet.as_view(), name="evaluation-api"),
]

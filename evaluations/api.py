"""REST views of saved questions: sets, their questions, runs and results, for the owner of the agent."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Body, Conflict, caller_of, check_no_fields, get_one
from agents.models import Agent
from evaluations import limits
from evaluations.models import (
    MAX_DAILY_BUDGET,
    MAX_EXPECTATION_CHARS,
    MAX_HANDLE_CHARS,
    MAX_NAME_CHARS,
    MAX_TEXT_CHARS,
    EvaluationRun,
    QuestionSet,
    SavedQuestion,
)
from evaluations.service import reading, runs, sets
from evaluations.service.properties import BadExpectation
from evaluations.service.reading import ShownRun
from evaluations.service.runs import CannotRun
from evaluations.service.sets import BadJudge, NameTaken, NoSuchQuestion, QuestionDraft
from kit.clock import iso
from kit.describe import ErrorBody, Page, Time
from kit.rows import RowSource, show, show_each

LISTED = 100
MAX_CHECK_S = 2.0  # of CPU, for all questions of a body
TOO_LONG = "checking the expectations so far took too long: want simpler schemas, or fewer of them in the set"
NO_SET = "no such set of questions"
NO_RUN = "no such run of the set"

Property = Literal["contains", "matches", "json_schema", "judged"]


class ApiSavedQuestion(TypedDict):
    """A question with the property that its answer is expected to have. `judge`: of a judged answer."""

    id: int
    text: str
    expected: Property
    expectation: str
    judge: str


class ApiRun(TypedDict):
    """A run of a set; `endedAt` is null while it goes on.

    `cardVersion`: what a remote card calls its version, else the first characters of `cardDigest`. `failed`
    answers could not be had or compared; `leftOut` were beyond the budget, or the run was stopped.
    """

    id: int
    cause: Literal["by_hand", "card", "schedule"]
    cardVersion: str
    cardDigest: str
    startedAt: Time
    endedAt: Time | None
    stopped: bool
    waiting: int
    passed: int
    notPassed: int
    failed: int
    leftOut: int


class ApiResult(TypedDict):
    """What came of a question. `routeId`, `judgeRouteId`: of the asks, for `/questions/{id}`; empty without one.

    `answer`: its first 4,000 characters; `detail`: why it did not pass, or the judge's reason.
    """

    questionId: Annotated[int, RowSource("question_id")]
    question: Annotated[str, RowSource("question.text")]
    state: Literal["waiting", "passed", "not_passed", "failed", "left_out"]
    routeId: Annotated[str, RowSource("asked")]
    judgeRouteId: Annotated[str, RowSource("judged")]
    answer: str
    detail: str
    endedAt: Time | None


class ApiWholeRun(ApiRun):
    """The same with the result of each question."""

    results: list[ApiResult]


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


class QuestionSetRuns(APIView):
    """`/evaluations/{id}/runs`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiRun])
    def get(self, request: Request, set_id: int) -> Response:
        """The runs of a set, newest first."""
        question_set = get_own_set(set_id, caller_of(request))
        return page(request, reading.runs_of(question_set), _show_runs, most=LISTED)

    @extend_schema(request=None, responses={201: ApiRun, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, set_id: int) -> Response:
        """Ask all questions of the set now; the answer does not wait for them. 409 while the set is being run."""
        check_no_fields(request)
        question_set = get_own_set(set_id, caller_of(request))
        try:
            run = runs.start_run(question_set, EvaluationRun.Cause.BY_HAND)
        except CannotRun as refused:
            raise Conflict(str(refused)) from None
        return Response(_show_runs([run])[0], status=201)


class OneRun(APIView):
    """`/evaluations/{id}/runs/{runId}`"""

    @extend_schema(responses={200: ApiWholeRun, 404: ErrorBody})
    def get(self, request: Request, set_id: int, run_id: int) -> Response:
        """A run with the result of each question."""
        run = _get_own_run(set_id, run_id, caller_of(request))
        return Response({**_show_runs([run])[0], "results": show_each(ApiResult)(reading.results_of(run))})


class StopRun(APIView):
    """`/evaluations/{id}/runs/{runId}/stop`"""

    @extend_schema(request=None, responses={200: ApiRun, 404: ErrorBody})
    def post(self, request: Request, set_id: int, run_id: int) -> Response:
        """Ask no further question of the run. A run that has ended stays as it is."""
        check_no_fields(request)
        owner = caller_of(request)
        runs.stop_run(_get_own_run(set_id, run_id, owner))
        return Response(_show_runs([_get_own_run(set_id, run_id, owner)])[0])


def get_own_set(set_id: int, owner: User) -> QuestionSet:
    """A set of this owner's agents.

    Raises:
        NotFound
    """
    own = QuestionSet.objects.owned_by(owner).select_related("agent__session")
    found: QuestionSet = get_one(own.filter(pk=set_id), NO_SET)
    return found


def _get_own_run(set_id: int, run_id: int, owner: User) -> EvaluationRun:
    question_set = get_own_set(set_id, owner)
    run: EvaluationRun = get_one(reading.runs_of(question_set).filter(pk=run_id), NO_RUN)
    return run


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
        "latestRun": _show_run(latest) if latest else None,
    }


def _show_runs(found: Sequence[EvaluationRun]) -> list[ApiRun]:
    return [_show_run(one) for one in reading.show_runs(found)]


def _show_run(shown: ShownRun) -> ApiRun:
    figures = shown.figures
    return show(
        ApiRun,
        shown.run,
        cardVersion=shown.run.version,
        stopped=shown.run.is_stopped,
        waiting=figures.waiting,
        passed=figures.passed,
        notPassed=figures.not_passed,
        failed=figures.failed,
        leftOut=figures.left_out,
    )


urlpatterns = [
    path("evaluations", QuestionSets.as_view(), name="evaluations-api"),
    path("evaluations/<int:set_id>", OneQuestionSet.as_view(), name="evaluation-api"),
    path("evaluations/<int:set_id>/runs", QuestionSetRuns.as_view(), name="evaluation-runs-api"),
    path("evaluations/<int:set_id>/runs/<int:run_id>", OneRun.as_view(), name="evaluation-run-api"),
    path("evaluations/<int:set_id>/runs/<int:run_id>/stop", StopRun.as_view(), name="evaluation-stop-api"),
]

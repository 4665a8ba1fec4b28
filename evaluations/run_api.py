"""REST views of the runs of a set of saved questions, and of their results, for the owner of the agent."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page
from accounts.rest import Conflict, caller_of, check_no_fields, get_one
from evaluations.models import EvaluationRun, QuestionSet
from evaluations.service import reading, runs
from evaluations.service.reading import ShownRun
from evaluations.service.runs import CannotRun
from kit.describe import ErrorBody, Page, Time
from kit.rows import RowSource, show, show_each

LISTED = 100
NO_SET = "no such set of questions"
NO_RUN = "no such run of the set"


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


class QuestionSetRuns(APIView):
    """`/evaluations/{id}/runs`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiRun])
    def get(self, request: Request, set_id: int) -> Response:
        """The runs of a set, newest first."""
        question_set = get_own_set(set_id, caller_of(request))
        return page(request, reading.runs_of(question_set), show_runs, most=LISTED)

    @extend_schema(request=None, responses={201: ApiRun, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, set_id: int) -> Response:
        """Ask all questions of the set now; the answer does not wait for them. 409 while the set is being run."""
        check_no_fields(request)
        question_set = get_own_set(set_id, caller_of(request))
        try:
            run = runs.start_run(question_set, EvaluationRun.Cause.BY_HAND)
        except CannotRun as refused:
            raise Conflict(str(refused)) from None
        return Response(show_runs([run])[0], status=201)


class OneRun(APIView):
    """`/evaluations/{id}/runs/{runId}`"""

    @extend_schema(responses={200: ApiWholeRun, 404: ErrorBody})
    def get(self, request: Request, set_id: int, run_id: int) -> Response:
        """A run with the result of each question."""
        run = _get_own_run(set_id, run_id, caller_of(request))
        return Response({**show_runs([run])[0], "results": show_each(ApiResult)(reading.results_of(run))})


class StopRun(APIView):
    """`/evaluations/{id}/runs/{runId}/stop`"""

    @extend_schema(request=None, responses={200: ApiRun, 404: ErrorBody})
    def post(self, request: Request, set_id: int, run_id: int) -> Response:
        """Ask no further question of the run. A run that has ended stays as it is."""
        check_no_fields(request)
        owner = caller_of(request)
        runs.stop_run(_get_own_run(set_id, run_id, owner))
        return Response(show_runs([_get_own_run(set_id, run_id, owner)])[0])


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


def show_runs(found: Sequence[EvaluationRun]) -> list[ApiRun]:
    """Runs with the numbers of their results."""
    return [show_run(one) for one in reading.show_runs(found)]


def show_run(shown: ShownRun) -> ApiRun:
    """A run with the numbers of its results."""
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
    path("evaluations/<int:set_id>/runs", QuestionSetRuns.as_view(), name="evaluation-runs-api"),
    path("evaluations/<int:set_id>/runs/<int:run_id>", OneRun.as_view(), name="evaluation-run-api"),
    path("evaluations/<int:set_id>/runs/<int:run_id>/stop", StopRun.as_view(), name="evaluation-stop-api"),
]

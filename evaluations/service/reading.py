"""What pages, REST and commands show of sets: the figures of runs, and results side by side."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Max, OuterRef, QuerySet, Subquery

from evaluations.models import EvaluationResult, EvaluationRun, QuestionSet, SavedQuestion

State = EvaluationResult.State
SIDE_BY_SIDE = 6


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The numbers of results of a run, by state. `left_out`: questions that the budget or the owner left out."""

    waiting: int = 0
    passed: int = 0
    not_passed: int = 0
    failed: int = 0
    left_out: int = 0

    @property
    def all(self) -> int:
        """The number of questions."""
        return self.waiting + self.passed + self.not_passed + self.failed + self.left_out

    @property
    def done(self) -> int:
        """The number of questions that no longer wait."""
        return self.all - self.waiting


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run with its figures."""

    run: EvaluationRun
    figures: RunFigures


@dataclass(frozen=True, slots=True)
class ResultCell:
    """The result of a question in a run; None: the run did not have the question.

    `is_outdated`: the question, or what is expected of its answer, was changed since.
    """

    run: EvaluationRun
    result: EvaluationResult | None
    is_outdated: bool = False


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """A question with its results in the runs of a table, in the order of the runs."""

    question: SavedQuestion
    cells: Sequence[ResultCell]


def count_results(run_ids: Collection[int]) -> Mapping[int, RunFigures]:
    """The figures of these runs."""
    rows = EvaluationResult.objects.filter(run__in=run_ids).order_by().values_list("run", "state")
    found: dict[int, dict[str, int]] = {}
    for run_id, state, count in rows.annotate(count=Count("pk")):
        found.setdefault(run_id, {})[state] = count
    return {run_id: RunFigures(**counts) for run_id, counts in found.items()}


def show_runs(runs: Sequence[EvaluationRun]) -> list[ShownRun]:
    """These runs with their figures."""
    figures = count_results([one.pk for one in runs])
    return [ShownRun(one, figures.get(one.pk, RunFigures())) for one in runs]


def runs_of(question_set: QuestionSet) -> QuerySet[EvaluationRun]:
    """The runs of a set, the newest first."""
    return EvaluationRun.objects.filter(question_set=question_set).order_by("-started_at", "-pk")


def newest_of_each_version(question_set: QuestionSet) -> QuerySet[EvaluationRun]:
    """The newest run of each version of the card, the newest first. A version that came back stands once."""
    newest = runs_of(question_set).filter(card_digest=OuterRef("card_digest")).values("pk")[:1]
    return runs_of(question_set).filter(pk=Subquery(newest))


def latest_runs(set_ids: Collection[int]) -> Mapping[int, ShownRun]:
    """The newest run of each of these sets."""
    last = EvaluationRun.objects.filter(question_set__in=set_ids).order_by().values("question_set")
    ids = [row["last"] for row in last.annotate(last=Max("pk"))]
    return {one.run.question_set_id: one for one in show_runs(list(EvaluationRun.objects.filter(pk__in=ids)))}


def questions_of(question_set: QuestionSet) -> QuerySet[SavedQuestion]:
    """The questions of a set, in their order."""
    return question_set.questions.order_by("position", "pk")


def compare_runs(questions: Sequence[SavedQuestion], runs: Sequence[EvaluationRun]) -> list[QuestionLine]:
    """These questions of a set with their results in these runs."""
    rows = EvaluationResult.objects.filter(run__in=[one.pk for one in runs], question__in=questions).defer(
        "answer"
    )
    results = {(one.question_id, one.run_id): one for one in rows}
    lines = []
    for question in questions:
        cells = [
            ResultCell(run, results.get((question.pk, run.pk)), question.revised_at > run.started_at)
            for run in runs
        ]
        lines.append(QuestionLine(question, cells))
    return lines


def results_of(run: EvaluationRun) -> QuerySet[EvaluationResult]:
    """The results of a run with their questions, in the order of the questions."""
    rows = EvaluationResult.objects.filter(run=run).select_related("question")
    return rows.order_by("question__position", "question")


def count_questions(set_ids: Collection[int]) -> Mapping[int, int]:
    """The number of questions of each of these sets."""
    rows = SavedQuestion.objects.filter(question_set__in=set_ids).order_by().values_list("question_set")
    return dict(rows.annotate(count=Count("pk")))

"""Ends runs that wait for no result: all questions were asked, or the last ones that waited were deleted."""

from django.db.models import Exists, OuterRef

from evaluations.models import EvaluationResult, EvaluationRun
from kit.clock import db_now

State = EvaluationResult.State


def lock_open_run(set_id: int) -> int | None:
    """Lock the open run of a set, and return its key; None without one."""
    found = EvaluationRun.objects.select_for_update(no_key=True).filter(question_set=set_id, ended_at=None)
    run_id: int | None = found.values_list("pk", flat=True).first()
    return run_id


def end_if_complete(run_id: int) -> None:
    """End a run that has no waiting result. The calling transaction has locked the run."""
    if not EvaluationResult.objects.filter(run=run_id, state=State.WAITING).exists():
        EvaluationRun.objects.filter(pk=run_id, ended_at=None).update(ended_at=db_now())


def end_complete() -> int:
    """End every open run that has no waiting result; returns their number.

    A deletion past `sets`, such as one by SQL, ends no run by itself.
    """
    waiting = EvaluationResult.objects.filter(run=OuterRef("pk"), state=State.WAITING)
    return EvaluationRun.objects.filter(~Exists(waiting), ended_at=None).update(ended_at=db_now())

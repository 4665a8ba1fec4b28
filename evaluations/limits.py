"""The limits of an account that count rows of `evaluations`."""

from accounts.quotas import AccountLimit, CountedRows
from evaluations.models import QuestionSet

QUESTION_SETS = AccountLimit(
    "sets of saved questions",
    100,
    counted=[CountedRows(QuestionSet.objects.kept, "agent__owner")],
    refusal="you have {held} sets of questions, and {most} are the most: delete one first",
)
QUESTIONS = AccountLimit(
    "questions of a set",
    100,
    refusal="a set may have {most} questions: make another set for more",
)
RUNS = AccountLimit("kept runs of a set of questions", 200, one_more="kept; within an hour the oldest are deleted")

"""The limits of an account that count rows of `a2a_bridge`."""

from django.db.models import Sum

from a2a_bridge import settings
from a2a_bridge.models import AnswerShare, PushConfig, RecordedExchange
from accounts.quotas import MIB, AccountLimit, CountedRows

PUSH_CONFIGS = AccountLimit(
    "push configs",
    (settings, "PUSH_CONFIGS_PER_CALLER"),
    counted=[CountedRows(PushConfig.objects.all, "caller")],
    refusal="your tasks have {most} push configs already",
    one_more="-32602",
)
PUSH_CONFIGS_OF_TASK = AccountLimit(
    "push configs of a task", 10, refusal="the task has {most} push configs already", one_more="-32602"
)
EXCHANGES = AccountLimit(
    "recorded exchanges",
    (settings, "EXCHANGES_PER_CALLER"),
    counted=[CountedRows(RecordedExchange.objects.all, "caller")],
    one_more="kept; within a minute the oldest are deleted",
)
SHARES = AccountLimit(
    "shared answers",
    (settings, "SHARES_PER_OWNER"),
    counted=[CountedRows(AnswerShare.objects.all, "owner")],
    refusal="you share {held} answers, and {most} are the most: end a share first, on /shares",
)
SHARED_BYTES = AccountLimit(
    "content of shared answers",
    100,
    counted=[CountedRows(AnswerShare.objects.all, "owner", number=Sum("content_bytes"))],
    unit=MIB,
    refusal="your shared answers may have {most} MiB together: end a share first, on /shares",
    counts="questions, answers and their files, once for each user, link or the like",
)

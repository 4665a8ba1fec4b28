"""The limits of an account that count rows of `a2a_bridge`."""

from a2a_bridge import settings
from a2a_bridge.models import PushConfig
from accounts.quotas import AccountLimit, CountedRows

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

"""The limits of an account that count rows of `a2a_bridge`."""

from a2a_bridge import settings
from a2a_bridge.models import PushConfig
from accounts.quotas import AccountLimit, CountedRows

PUSH_CONFIGS = AccountLimit(
    name="push configs",
    settings=settings,
    setting="PUSH_CONFIGS_PER_CALLER",
    counted=[CountedRows("push configs", PushConfig.objects.all, "caller")],
    refusal="your tasks have {most} push configs already",
    counts="of all the caller's tasks",
    one_more="-32602",
)
PUSH_CONFIGS_OF_TASK = AccountLimit(
    name="push configs of a task", fixed=10, refusal="the task has {most} push configs already", one_more="-32602"
)

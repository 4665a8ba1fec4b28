"""The limits of an account, and of an API key, that count rows of `webhooks`."""

from django.db.models import Q

from accounts.quotas import AccountLimit, CountedRows
from webhooks import settings
from webhooks.models import Subscription

WEBHOOKS = AccountLimit(
    "webhooks",
    (settings, "WEBHOOKS_PER_OWNER"),
    counted=[CountedRows(Subscription.objects.all, where=Q(credential=None))],
    refusal="you have {most} webhooks already",
    one_more="409 `conflict`",
)
WEBHOOKS_OF_KEY = AccountLimit(
    "webhooks of an API key",
    10,
    refusal="this key has {most} webhooks already",
    counts="beside those of its owner",
    one_more="409 `conflict`",
)

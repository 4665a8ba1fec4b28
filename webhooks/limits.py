"""The limit of an account that counts rows of `webhooks`."""

from accounts.quotas import AccountLimit, CountedRows
from webhooks import settings
from webhooks.models import Subscription

WEBHOOKS = AccountLimit(
    "webhooks",
    (settings, "WEBHOOKS_PER_OWNER"),
    counted=[CountedRows(Subscription.objects.all)],
    refusal="you have {most} webhooks already",
    one_more="409 `conflict`",
)

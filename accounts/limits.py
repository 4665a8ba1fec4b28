"""The limits of an account that count rows of `accounts`."""

from django.db.models import Q

from accounts import settings
from accounts.models import Credential
from accounts.quotas import AccountLimit, CountedRows

Kind, Source = Credential.Kind, Credential.Source

LIVE_TOKENS = AccountLimit(
    name="live tokens",
    settings=settings,
    setting="TOKENS_PER_OWNER",
    counted=[
        CountedRows(
            "live tokens", Credential.objects.live, "user", Q(kind__in=(Kind.CHANNEL, Kind.APP, Kind.AGNT))
        )
    ],
    counts="channel and app tokens, AGNT keys",
)
MINTED_APP_TOKENS = AccountLimit(
    name="app tokens that the user made",
    fixed=20,
    counted=[
        CountedRows("minted app tokens", Credential.objects.live, "user", Q(kind=Kind.APP, source=Source.MINT))
    ],
    refusal="you hold {most} app tokens: revoke one first",
    counts="live ones; they are live tokens too",
)

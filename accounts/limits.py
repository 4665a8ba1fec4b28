"""The limits of an account that count rows of `accounts`."""

from django.db.models import Q

from accounts import settings
from accounts.models import ClientGrant, Credential, GroupInvitation, Membership
from accounts.quotas import AccountLimit, CountedRows

Kind, Source = Credential.Kind, Credential.Source
COUNTED_TOKENS = Q(kind__in=(Kind.CHANNEL, Kind.APP, Kind.AGNT), grant=None)
MINTED_APPS = Q(kind=Kind.APP, source=Source.MINT)

LIVE_TOKENS = AccountLimit(
    "live tokens",
    (settings, "TOKENS_PER_OWNER"),
    counted=[
        CountedRows(Credential.objects.live, "user", where=COUNTED_TOKENS),
        CountedRows(ClientGrant.objects.live, "user", name="clients that refresh their tokens"),
    ],
)
MINTED_APP_TOKENS = AccountLimit(
    "app tokens that the user made",
    20,
    counted=[CountedRows(Credential.objects.live, "user", where=MINTED_APPS)],
    refusal="you hold {most} app tokens: revoke one first",
    counts="live ones; they are live tokens too",
)
GROUPS_MAINTAINED = AccountLimit(
    "groups of which the user is a maintainer",
    50,
    counted=[CountedRows(Membership.objects.all, "user", where=Q(role=Membership.Role.MAINTAINER))],
    refusal="you are a maintainer of {most} groups: leave or delete one first",
    counts="checked when the user creates a group, or becomes a maintainer",
)
GROUP_MEMBERS = AccountLimit(
    "members of the group",
    1000,
    counted=[CountedRows(Membership.objects.all, "group__account")],
    refusal="the group has {most} members, which are the most: remove some first",
    counts="members, maintainers and auditors of a group, which is an account too",
)
GROUP_INVITATIONS = AccountLimit(
    "open links to join the group",
    100,
    counted=[CountedRows(GroupInvitation.objects.open, "group__account")],
    refusal="the group has {most} open links to join: revoke some first",
    counts="links that are not used, revoked or expired; of a group, which is an account too",
)

"""What an account has: its sign-ins, tokens, programs, groups, halts, and the part of each limit that it uses."""

from dataclasses import dataclass

from django.db.models import QuerySet

from accounts.models import ClientGrant, Credential, Membership, User
from accounts.quotas import MIB, AccountLimit
from agents.models import Halt
from hub.pages import LIMITS

COUNTED_LIMITS = tuple(one for one in LIMITS if one.counted)
SESSION = Credential.Kind.SESSION
CALLER, OWNER = Halt.Kind.CALLER, Halt.Kind.OWNER


@dataclass(frozen=True, slots=True)
class UsedLimit:
    """One limit of accounts, and how much of it one account uses, in the unit in which its rows are counted."""

    limit: AccountLimit
    used: int

    @property
    def name(self) -> str:
        """The name of the limited rows or bytes."""
        return self.limit.name

    @property
    def unit(self) -> str:
        """`bytes`, or empty for a number of rows."""
        return "bytes" if self.limit.unit == MIB else ""

    @property
    def most(self) -> int | None:
        """The limit; None: no limit."""
        return self.limit.most or None

    @property
    def setting(self) -> str:
        """The setting that has the limit of all accounts; empty for a fixed one."""
        return self.limit.setting

    @property
    def is_full(self) -> bool:
        """True if the hub refuses one more."""
        return self.most is not None and self.used >= self.most


def find_sessions(user: User) -> QuerySet[Credential]:
    """The live sign-ins of a user, newest first."""
    found: QuerySet[Credential] = user.credentials.live().filter(kind=SESSION).order_by("-created_at", "-pk")
    return found


def find_tokens(user: User) -> QuerySet[Credential]:
    """The live tokens of a user, newest first; those of programs that refresh theirs are in `find_clients`."""
    tokens = user.credentials.live().exclude(kind=SESSION).filter(grant=None)
    found: QuerySet[Credential] = tokens.select_related("user").order_by("-created_at", "-pk")
    return found


def find_clients(user: User) -> QuerySet[ClientGrant]:
    """The programs that stay signed in as the user, newest first."""
    found: QuerySet[ClientGrant] = user.client_grants.live().order_by("-created_at", "-pk")
    return found


def find_memberships(user: User) -> QuerySet[Membership]:
    """The groups of a user with the user's role, by slug."""
    rows = Membership.objects.filter(user=user).select_related("group__account", "user", "added_by")
    found: QuerySet[Membership] = rows.order_by("group__account__login")
    return found


def find_halts(user: User) -> QuerySet[Halt]:
    """The halts of the staff that hold for the user's asks, or for the user's agents and sessions."""
    rows = Halt.objects.active().filter(user=user, by_staff=True)
    found: QuerySet[Halt] = rows.select_related("agent", "user", "made_by", "lifted_by").order_by("pk")
    return found


def count_limits(user: User) -> list[UsedLimit]:
    """The limits that count rows, each with the part that the user uses: one query for each kind of rows."""
    return [UsedLimit(one, one.count_used(user.pk)) for one in COUNTED_LIMITS]


def name_kind(user: User) -> str:
    """The holder of an account: a group, a program or a person."""
    return "group" if user.is_group else "program" if user.is_service else "person"

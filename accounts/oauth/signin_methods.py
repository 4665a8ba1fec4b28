"""The sign-in methods that a hub has set up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from accounts import settings
from accounts.errors import NotConfigured
from accounts.models import Passkey, User
from accounts.oauth.identity_providers import has_github
from accounts.passkeys import passkeys_work
from accounts.signup import Provider

NOTHING_SET_UP = (
    "this hub has no sign-in set up yet: its operator makes a link for you with manage.py invite, or sets up"
    " GitHub or an OpenID Connect provider"
)


@dataclass(frozen=True, slots=True)
class AccountMethod:
    """A way to sign in to one account. `made_at`, `used_at`: None where the hub does not keep them."""

    name: str
    made_at: datetime | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SignInMethods:
    """The sign-in methods that `/signin` offers."""

    github: bool
    providers: Sequence[Provider]
    passkey: bool
    password: bool
    development: bool

    @property
    def is_any(self) -> bool:
        """True if any way to sign in is set up."""
        return bool(self.github or self.providers or self.passkey or self.password or self.development)

    @property
    def is_github_alone(self) -> bool:
        """True if there is nothing to choose from but GitHub."""
        return self.github and not (self.providers or self.passkey or self.password)


def find_signin_methods() -> SignInMethods:
    """Find the methods that are set up now. Passkeys and passwords count once an account has one."""
    with_password = User.objects.filter(is_active=True).exclude(Q(password="") | Q(password__startswith="!"))  # noqa: S106
    is_vouched = has_github() or bool(settings.OIDC_PROVIDERS)
    return SignInMethods(
        github=has_github(),
        providers=settings.OIDC_PROVIDERS,
        passkey=passkeys_work() and Passkey.objects.filter(user__is_active=True).exists(),
        password=with_password.exists(),
        development=settings.DEV_LOGIN and not is_vouched,
    )


def check_signin_possible() -> None:
    """Check that there is a way to sign in.

    Raises:
        NotConfigured: no method is set up.
    """
    if not find_signin_methods().is_any:
        raise NotConfigured(NOTHING_SET_UP)


def list_signin_methods(user: User) -> list[AccountMethod]:
    """The ways in which a user can sign in; empty for an account that only holds tokens."""
    found = [AccountMethod(f"GitHub (account {user.github_id})")] if user.github_id is not None else []
    found += [
        AccountMethod(one.issuer, one.created_at, one.last_used_at)
        for one in user.provider_identities.order_by("pk")
    ]
    found += [
        AccountMethod(f"a passkey made on {one.name}", one.created_at, one.last_used_at)
        for one in user.passkeys.order_by("pk")
    ]
    return found + ([AccountMethod("a password")] if user.password and user.has_usable_password() else [])

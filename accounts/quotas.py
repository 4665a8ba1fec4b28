"""How much one owner may have. Counted under a lock on the owner's row, so that a race passes no limit."""

from accounts import settings
from accounts.errors import Refused
from accounts.models import Credential, User

TOKENS = (Credential.Kind.CHANNEL, Credential.Kind.APP, Credential.Kind.AGNT)


class QuotaExceeded(Refused):
    """The user has as many of these as one may."""

    status = 429
    code = "quota_exceeded"


def lock_owner(user_id: int) -> None:
    """Lock the user's row until the transaction ends, so that quota checks of one user run one after another."""
    list(User.objects.select_for_update(no_key=True).filter(pk=user_id).values_list("pk"))


def check(held: int, most: int, what: str) -> None:
    """Refuse one more; `most` 0: there is no limit.

    Raises:
        QuotaExceeded: `held` is as many as one may have.
    """
    if most and held >= most:
        raise QuotaExceeded(f"you have {held} {what}, and {most} are the most: remove some first")


def check_tokens(user: User) -> None:
    """Refuse another token that is counted; call it in the transaction that makes it.

    Raises:
        QuotaExceeded: there are as many live ones as one may have.
    """
    if most := settings.TOKENS_PER_OWNER:
        lock_owner(user.pk)
        held = Credential.objects.live().filter(user=user, kind__in=TOKENS).count()
        check(held, most, "live tokens")
